//! Numbers and words as they stand on the page.

/// What stands where there is no number.
pub const NOTHING: &str = "–";

/// Digits of a number that mean something.
const SIGNIFICANT_DIGITS: i32 = 3;

/// Less than this is nothing, whatever the unit.
const TINY: f64 = 1e-6;

/// Each once, in the order of its first appearance.
pub fn distinct(names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    names.fold(Vec::new(), |mut seen, name| {
        if !seen.contains(&name) {
            seen.push(name);
        }
        seen
    })
}

/// As it stands at the beginning of a line.
pub fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// A unit as it is written: `us` is there because it can be typed.
pub fn unit(unit: &str) -> String {
    let words: Vec<&str> =
        unit.split(' ').map(|word| if word == "us" { "µs" } else { word }).collect();
    words.join(" ")
}

/// With as many digits as mean something.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return NOTHING.to_owned();
    }
    if value.abs() < TINY {
        return "0".to_owned();
    }
    let last_digit = value.abs().log10().floor() as i32 - (SIGNIFICANT_DIGITS - 1);
    let step = 10f64.powi(last_digit);
    let decimals = usize::try_from(-last_digit).unwrap_or(0);
    let text = format!("{:.decimals$}", (value / step).round() * step);
    match text.split_once('.') {
        Some((whole, rest)) => match rest.trim_end_matches('0') {
            "" => thousands(whole),
            rest => format!("{}.{rest}", thousands(whole)),
        },
        None => thousands(&text),
    }
}

/// A number and its unit; no unit where there is no number.
pub fn amount(value: f64, unit: &str) -> String {
    if value.is_finite() { format!("{} {unit}", number(value)) } else { NOTHING.to_owned() }
}

/// A number of things.
pub fn count(value: usize) -> String {
    thousands(&value.to_string())
}

/// Digits with a comma before every third from the end.
fn thousands(digits: &str) -> String {
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        let left = digits.len() - place;
        if left.is_multiple_of(3) && text.chars().any(|before| before.is_ascii_digit()) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Text as it may stand in HTML and SVG, in quotes as well. Control characters may not in SVG.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            control if control.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}
