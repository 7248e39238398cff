//! What the targets share: JSON made of bytes, and what counts as the same.

use arbitrary::Result;
use arbitrary::Unstructured;
use serde_json::Map;
use serde_json::Number;
use serde_json::Value;

/// How deep made values are nested, at most.
const MAX_DEPTH: usize = 5;

/// A JSON value in which `words` come up more often than other texts, also as the names of fields.
pub fn json(u: &mut Unstructured<'_>, words: &[&str]) -> Result<Value> {
    value(u, words, MAX_DEPTH)
}

/// The same, but an object.
pub fn object(u: &mut Unstructured<'_>, words: &[&str]) -> Result<Map<String, Value>> {
    fields(u, words, MAX_DEPTH)
}

/// A text: mostly one of `words`, or two of them.
pub fn text(u: &mut Unstructured<'_>, words: &[&str]) -> Result<String> {
    Ok(match u.int_in_range(0..=7)? {
        0 => u.arbitrary()?,
        1 => format!("{}{}", u.choose(words)?, u.arbitrary::<&str>()?),
        2 => format!("{}{}", u.choose(words)?, u.choose(words)?),
        _ => (*u.choose(words)?).to_owned(),
    })
}

fn value(u: &mut Unstructured<'_>, words: &[&str], depth: usize) -> Result<Value> {
    let kinds = if depth == 0 { 6 } else { 9 };
    Ok(match u.int_in_range(0..=kinds)? {
        0 => Value::Null,
        1 => u.arbitrary::<bool>()?.into(),
        2 => u.arbitrary::<i64>()?.into(),
        3 => u.int_in_range(0..=20)?.into(),
        4 => Number::from_f64(u.arbitrary()?).map_or(Value::Null, Value::Number),
        5 | 6 => text(u, words)?.into(),
        7 => {
            let count = u.int_in_range(0..=3)?;
            (0..count).map(|_| value(u, words, depth - 1)).collect::<Result<Vec<_>>>()?.into()
        }
        _ => fields(u, words, depth)?.into(),
    })
}

fn fields(u: &mut Unstructured<'_>, words: &[&str], depth: usize) -> Result<Map<String, Value>> {
    let count = u.int_in_range(0..=6)?;
    (0..count).map(|_| Ok((text(u, words)?, value(u, words, depth.saturating_sub(1))?))).collect()
}

/// Whether two values are the same. Numbers with a fraction may differ in their last digit: reading them is not exact.
pub fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (a, b) = (one.as_f64().unwrap_or(0.0), other.as_f64().unwrap_or(0.0));
            one == other || (one.is_f64() && (a - b).abs() <= a.abs() * 1e-14 + f64::MIN_POSITIVE)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, a)| other.get(name).is_some_and(|b| is_same(a, b)))
        }
        (one, other) => one == other,
    }
}

/// Whether a character does nothing on a terminal but show itself.
pub fn is_harmless(c: char) -> bool {
    let reverses = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    matches!(c, '\n' | '\t') || (!c.is_control() && !reverses)
}
