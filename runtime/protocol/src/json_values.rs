//! How many values a JSON text has: a short text may have very many, and each takes far more memory than its text.

use crate::limits::MAX_JSON_VALUES;

/// A text has more values than may be made of it.
#[derive(Debug, thiserror::Error)]
#[error("{count} values of JSON are more than {MAX_JSON_VALUES}")]
pub struct TooManyValues {
    count: usize,
}

/// Refuses a text that would take too much memory as values. Whether it is JSON at all is for the parser to say.
pub fn check(text: &[u8]) -> Result<(), TooManyValues> {
    // Each but the first takes two bytes at least.
    if text.len() / 2 < MAX_JSON_VALUES {
        return Ok(());
    }
    let count = count(text);
    if count > MAX_JSON_VALUES { Err(TooManyValues { count }) } else { Ok(()) }
}

/// How many values a text has, lists and objects included; an empty one of these counts as two.
pub fn count(text: &[u8]) -> usize {
    let (mut count, mut is_in_string, mut is_escaped) = (1, false, false);
    for &byte in text {
        if is_in_string {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => is_in_string = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => is_in_string = true,
                b',' | b'[' | b'{' => count += 1,
                _ => {}
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_and_the_contents_of_strings_are_not() {
        assert_eq!(count(b"1"), 1);
        assert_eq!(count(br#"{"a": [1, 2, {"b": null}], "c": "x"}"#), 7);
        assert_eq!(count(br#"["a,[{\",\\", "b"]"#), 3);
        assert_eq!(count(b"[]"), 2);
    }

    #[test]
    fn a_text_of_too_many_values_is_refused() {
        let list = |count: usize| format!("[{}0]", "0,".repeat(count - 2)).into_bytes();
        assert!(check(&list(MAX_JSON_VALUES)).is_ok());
        assert!(check(&list(MAX_JSON_VALUES + 1)).is_err());
        // A long string is one value.
        assert!(check(format!("\"{}\"", ",".repeat(4 * MAX_JSON_VALUES)).as_bytes()).is_ok());
    }
}
