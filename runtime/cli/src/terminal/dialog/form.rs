//! Forms: the fields of a JSON Schema, what is asked for each, and whether what was typed fits.

use serde_json::Value;
use serde_json::json;

use crate::sanitise::one_line;

/// The most choices that are listed; more than that nobody reads.
const MAX_CHOICES: usize = 100;

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name in the answer.
    pub name: String,
    title: String,
    description: Option<String>,
    kind: Kind,
    required: bool,
    /// What it is if nothing is typed.
    default: Option<Value>,
}

/// What can be typed.
#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Text {
        min: Option<u64>,
        max: Option<u64>,
        format: Option<String>,
    },
    Number {
        whole: bool,
        min: Option<f64>,
        max: Option<f64>,
    },
    YesNo,
    /// One of the choices.
    One(Vec<Choice>),
    /// Any number of the choices, within limits.
    Many(Vec<Choice>, Option<u64>, Option<u64>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Choice {
    value: String,
    title: String,
}

/// The fields of a form, in order. What is not known is asked for as text.
pub fn fields(schema: &Value) -> Vec<Field> {
    let required: Vec<_> = list(&schema["required"]).collect();
    let fields = schema["properties"].as_object().into_iter().flatten();
    fields
        .map(|(name, field)| Field {
            name: name.clone(),
            title: text(field, "title").unwrap_or_else(|| name.clone()),
            description: text(field, "description"),
            kind: kind(field),
            required: required.contains(&name.as_str()),
            default: field.get("default").filter(|default| !default.is_null()).cloned(),
        })
        .collect()
}

fn text(field: &Value, name: &str) -> Option<String> {
    field[name].as_str().map(str::to_owned).filter(|text| !text.trim().is_empty())
}

fn list(values: &Value) -> impl Iterator<Item = &str> {
    values.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn kind(field: &Value) -> Kind {
    let choices = choices(field);
    match field["type"].as_str() {
        Some("boolean") => Kind::YesNo,
        Some(kind @ ("number" | "integer")) => Kind::Number {
            whole: kind == "integer",
            min: field["minimum"].as_f64(),
            max: field["maximum"].as_f64(),
        },
        Some("array") => {
            let choices = self::choices(&field["items"]);
            Kind::Many(choices, field["minItems"].as_u64(), field["maxItems"].as_u64())
        }
        _ if !choices.is_empty() => Kind::One(choices),
        _ => Kind::Text {
            min: field["minLength"].as_u64(),
            max: field["maxLength"].as_u64(),
            format: text(field, "format"),
        },
    }
}

/// What a field can be, with names for people where there are some.
fn choices(field: &Value) -> Vec<Choice> {
    let names: Vec<_> = list(&field["enumNames"]).collect();
    let plain = list(&field["enum"]).enumerate().map(|(number, value)| {
        let title = names.get(number).unwrap_or(&value);
        Choice { value: value.to_owned(), title: (*title).to_owned() }
    });
    let titled = ["oneOf", "anyOf"].into_iter().filter_map(|name| field[name].as_array());
    let titled = titled.flatten().filter_map(|choice| {
        let value = choice["const"].as_str()?.to_owned();
        Some(Choice { title: text(choice, "title").unwrap_or_else(|| value.clone()), value })
    });
    plain.chain(titled).take(MAX_CHOICES).collect()
}

impl Field {
    /// Lines that explain it.
    pub fn explanation(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(description) = &self.description {
            lines.push(format!("{}: {}", one_line(&self.title, 100), one_line(description, 500)));
        }
        if let Kind::One(choices) | Kind::Many(choices, ..) = &self.kind {
            for (number, choice) in choices.iter().enumerate() {
                lines.push(format!("{}) {}", number + 1, one_line(&choice.title, 200)));
            }
        }
        lines
    }

    /// What stands before what is typed.
    pub fn prompt(&self) -> String {
        let mut notes = Vec::new();
        match &self.kind {
            Kind::Text { min, max, format } => {
                notes.extend(format.clone());
                notes.extend(range(min.map(|it| it as f64), max.map(|it| it as f64), "characters"));
            }
            Kind::Number { whole, min, max } => {
                notes.push(if *whole { "a whole number" } else { "a number" }.to_owned());
                notes.extend(range(*min, *max, ""));
            }
            Kind::YesNo => notes.push("y or n".to_owned()),
            Kind::One(_) => notes.push("a number from the list".to_owned()),
            Kind::Many(_, min, max) => {
                notes.push("numbers from the list, with commas".to_owned());
                notes.extend(range(min.map(|it| it as f64), max.map(|it| it as f64), "of them"));
            }
        }
        if !self.required && self.default.is_none() {
            notes.push("may be left out".to_owned());
        }
        let notes = match notes.is_empty() {
            true => String::new(),
            false => format!(" ({})", notes.join(", ")),
        };
        let default = match &self.default {
            Some(default) => format!(" [{}]", one_line(&self.shown(default), 60)),
            None => String::new(),
        };
        format!("{}{notes}{default}: ", one_line(&self.title, 100))
    }

    /// A value as somebody would type it.
    fn shown(&self, value: &Value) -> String {
        match value {
            Value::Bool(yes) => if *yes { "y" } else { "n" }.to_owned(),
            Value::String(text) => text.clone(),
            Value::Array(values) => {
                values.iter().map(|value| self.shown(value)).collect::<Vec<_>>().join(", ")
            }
            other => other.to_string(),
        }
    }

    /// The value that was typed; none if it was left out, and may be. Otherwise what is wrong with it.
    pub fn read(&self, typed: &str) -> Result<Option<Value>, String> {
        let typed = typed.trim();
        if typed.is_empty() {
            return match (&self.default, self.required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, false) => Ok(None),
                (None, true) => Err(format!("{} is needed", one_line(&self.title, 100))),
            };
        }
        self.kind.read(typed).map(Some)
    }
}

impl Kind {
    fn read(&self, typed: &str) -> Result<Value, String> {
        match self {
            Self::Text { min, max, format } => read_text(typed, *min, *max, format.as_deref()),
            Self::Number { whole, min, max } => read_number(typed, *whole, *min, *max),
            Self::YesNo => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" | "1" => Ok(true.into()),
                "n" | "no" | "false" | "0" => Ok(false.into()),
                _ => Err("y or n is needed".to_owned()),
            },
            Self::One(choices) => pick(choices, typed).map(Value::from),
            Self::Many(choices, min, max) => read_many(choices, typed, *min, *max),
        }
    }
}

fn read_text(
    typed: &str,
    min: Option<u64>,
    max: Option<u64>,
    format: Option<&str>,
) -> Result<Value, String> {
    let length = typed.chars().count() as u64;
    if let Some(min) = min.filter(|min| length < *min) {
        return Err(format!("at least {min} characters are needed"));
    }
    if let Some(max) = max.filter(|max| length > *max) {
        return Err(format!("at most {max} characters are possible"));
    }
    let fits = match format {
        Some("email") => typed.split_once('@').is_some_and(|(name, host)| {
            !name.is_empty() && host.contains('.') && !typed.contains(char::is_whitespace)
        }),
        Some("uri") => typed.split_once(':').is_some_and(|(scheme, rest)| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
            let begins = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
            begins && scheme.chars().all(plain) && !rest.is_empty()
        }),
        Some("date") => is_date(typed),
        Some("date-time") => {
            typed.split_once(['T', 't']).is_some_and(|(date, time)| is_date(date) && is_time(time))
        }
        _ => true,
    };
    match (fits, format) {
        (true, _) | (false, None) => Ok(typed.into()),
        (false, Some(format)) => Err(match format {
            "email" => "an address such as name@example.org is needed".to_owned(),
            "uri" => "an address such as https://example.org is needed".to_owned(),
            "date" => "a date such as 2026-01-31 is needed".to_owned(),
            _ => "a time such as 2026-01-31T12:00:00Z is needed".to_owned(),
        }),
    }
}

/// `YYYY-MM-DD`.
fn is_date(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').collect();
    let digits =
        |part: &str, length| part.len() == length && part.bytes().all(|b| b.is_ascii_digit());
    match parts.as_slice() {
        [year, month, day] => {
            let within =
                |part: &str, max: u8| part.parse().is_ok_and(|n: u8| (1..=max).contains(&n));
            digits(year, 4)
                && digits(month, 2)
                && digits(day, 2)
                && within(month, 12)
                && within(day, 31)
        }
        _ => false,
    }
}

/// `HH:MM:SS` with a zone.
fn is_time(text: &str) -> bool {
    let offset = |rest: &str| rest.contains(['+', '-']);
    let zoned = text.ends_with(['Z', 'z']) || text.get(1..).is_some_and(offset);
    let clock = text.split(['Z', 'z', '+', '-', '.']).next().unwrap_or_default();
    let parts: Vec<_> = clock.split(':').map(str::parse::<u8>).collect();
    zoned && matches!(parts.as_slice(), [Ok(0..24), Ok(0..60), Ok(0..=60)])
}

fn read_number(
    typed: &str,
    whole: bool,
    min: Option<f64>,
    max: Option<f64>,
) -> Result<Value, String> {
    let number: f64 = match typed.parse() {
        Ok(number) if f64::is_finite(number) => number,
        _ => return Err("a number is needed".to_owned()),
    };
    if whole && number.fract() != 0.0 {
        return Err("a whole number is needed".to_owned());
    }
    if let Some(min) = min.filter(|min| number < *min) {
        return Err(format!("it must be at least {min}"));
    }
    if let Some(max) = max.filter(|max| number > *max) {
        return Err(format!("it can be at most {max}"));
    }
    // Large whole numbers are kept as they were typed.
    Ok(typed.parse::<i64>().map_or_else(|_| json!(number), Value::from))
}

fn read_many(
    choices: &[Choice],
    typed: &str,
    min: Option<u64>,
    max: Option<u64>,
) -> Result<Value, String> {
    let parts = typed.split(',').map(str::trim).filter(|part| !part.is_empty());
    let mut chosen: Vec<String> = Vec::new();
    for part in parts {
        let value = if choices.is_empty() { part.to_owned() } else { pick(choices, part)? };
        if !chosen.contains(&value) {
            chosen.push(value);
        }
    }
    let count = chosen.len() as u64;
    if let Some(min) = min.filter(|min| count < *min) {
        return Err(format!("at least {min} of them are needed"));
    }
    if let Some(max) = max.filter(|max| count > *max) {
        return Err(format!("at most {max} of them are possible"));
    }
    Ok(chosen.into())
}

/// The choice that is meant: by its number, its value or its name.
fn pick(choices: &[Choice], typed: &str) -> Result<String, String> {
    let by_number = typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let is_meant =
        |choice: &&Choice| choice.value == typed || choice.title.eq_ignore_ascii_case(typed);
    let found = choices.iter().find(|choice| choice.value == typed);
    let found = found.or_else(|| choices.get(by_number?));
    let found = found.or_else(|| choices.iter().find(is_meant));
    match found {
        Some(choice) => Ok(choice.value.clone()),
        None => Err(format!("one of 1 to {} is needed", choices.len())),
    }
}

/// What lies between limits, in words.
fn range(min: Option<f64>, max: Option<f64>, of: &str) -> Option<String> {
    let said = match (min, max) {
        (Some(min), Some(max)) => format!("{min} to {max} {of}"),
        (Some(min), None) => format!("at least {min} {of}"),
        (None, Some(max)) => format!("at most {max} {of}"),
        (None, None) => return None,
    };
    Some(said.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(field: Value, required: bool) -> Field {
        let required = if required { json!(["x"]) } else { json!([]) };
        let schema = json!({ "properties": { "x": field }, "required": required });
        fields(&schema).remove(0)
    }

    fn read(schema: Value, typed: &str) -> Result<Option<Value>, String> {
        field(schema, true).read(typed)
    }

    #[test]
    fn fields_come_in_the_order_of_the_schema() {
        let schema = json!({
            "type": "object",
            "properties": { "z": { "type": "string" }, "a": { "type": "boolean", "title": "Sure" } },
        });
        let names: Vec<_> = fields(&schema).into_iter().map(|field| field.name).collect();
        assert_eq!(names, ["z", "a"]);
        assert_eq!(fields(&Value::Null), []);
    }

    #[test]
    fn what_is_needed_is_asked_for_and_defaults_count() {
        let text = || json!({ "type": "string" });
        assert_eq!(field(text(), true).read("  "), Err("x is needed".to_owned()));
        assert_eq!(field(text(), false).read(""), Ok(None));
        let defaulted = json!({ "type": "integer", "default": 2 });
        assert_eq!(field(defaulted.clone(), true).read(""), Ok(Some(json!(2))));
        assert_eq!(field(defaulted, false).prompt(), "x (a whole number) [2]: ");
    }

    #[test]
    fn text_has_limits_and_formats() {
        let limited = || json!({ "type": "string", "minLength": 2, "maxLength": 3 });
        assert!(read(limited(), "a").is_err() && read(limited(), "abcd").is_err());
        assert_eq!(read(limited(), " äö "), Ok(Some(json!("äö"))));
        let cases = [
            ("email", "a@b.org", "a@b"),
            ("uri", "https://a.org/x", "nothing"),
            ("date", "2026-01-31", "2026-13-01"),
            ("date-time", "2026-01-31T12:00:00Z", "2026-01-31 12:00"),
            ("date-time", "2026-01-31T12:00:00.5+01:00", "2026-01-31T25:00:00Z"),
        ];
        for (format, good, bad) in cases {
            let schema = || json!({ "type": "string", "format": format });
            assert_eq!(read(schema(), good), Ok(Some(json!(good))), "{format}");
            assert!(read(schema(), bad).is_err(), "{format}");
        }
    }

    #[test]
    fn numbers_have_limits() {
        let whole = || json!({ "type": "integer", "minimum": 1, "maximum": 5 });
        assert_eq!(read(whole(), "5"), Ok(Some(json!(5))));
        for typed in ["0", "6", "1.5", "many", "NaN", "inf"] {
            assert!(read(whole(), typed).is_err(), "{typed}");
        }
        assert_eq!(read(json!({ "type": "number" }), "-0.5"), Ok(Some(json!(-0.5))));
        let large = "9007199254740993";
        assert_eq!(
            read(json!({ "type": "integer" }), large),
            Ok(Some(json!(9_007_199_254_740_993_i64)))
        );
        assert_eq!(field(whole(), true).prompt(), "x (a whole number, 1 to 5): ");
    }

    #[test]
    fn yes_and_no_are_said_in_several_ways() {
        let yes_no = || json!({ "type": "boolean", "default": true });
        assert_eq!(read(yes_no(), "Yes"), Ok(Some(json!(true))));
        assert_eq!(read(yes_no(), "n"), Ok(Some(json!(false))));
        assert_eq!(read(yes_no(), ""), Ok(Some(json!(true))));
        assert!(read(yes_no(), "maybe").is_err());
        assert_eq!(field(yes_no(), true).prompt(), "x (y or n) [y]: ");
    }

    #[test]
    fn choices_are_made_by_number_value_or_name() {
        let named =
            || json!({ "type": "string", "enum": ["s", "p"], "enumNames": ["Staging", "Live"] });
        for typed in ["2", "p", "live"] {
            assert_eq!(read(named(), typed), Ok(Some(json!("p"))), "{typed}");
        }
        assert!(read(named(), "3").is_err());
        let titled = json!({ "type": "string", "oneOf": [{ "const": "a", "title": "Alpha" }] });
        assert_eq!(field(titled, true).explanation(), ["1) Alpha"]);
        // A value that looks like a number is meant before the number.
        let numbers = json!({ "type": "string", "enum": ["2", "1"] });
        assert_eq!(read(numbers, "1"), Ok(Some(json!("1"))));
    }

    #[test]
    fn several_are_chosen_with_commas_and_within_limits() {
        let many = || {
            json!({
                "type": "array", "minItems": 1, "maxItems": 2,
                "items": { "type": "string", "enum": ["a", "b", "c"] },
            })
        };
        assert_eq!(read(many(), "1, c, 1"), Ok(Some(json!(["a", "c"]))));
        assert!(read(many(), "1,2,3").is_err());
        assert!(read(many(), "a, z").is_err());
        let free = json!({ "type": "array", "items": { "type": "string" } });
        assert_eq!(read(free, "x, y"), Ok(Some(json!(["x", "y"]))));
    }
}
