//! Times, durations and counts in a few characters.

/// Milliseconds since 1970 of an event's time; none if it is written otherwise.
pub fn milliseconds(time: &str) -> Option<i64> {
    Some(chrono::DateTime::parse_from_rfc3339(time).ok()?.timestamp_millis())
}

/// A duration, given in milliseconds.
pub fn duration(milliseconds: i64) -> String {
    match milliseconds.max(0) {
        ms @ 0..1_000 => format!("{ms} ms"),
        ms @ 1_000..60_000 => format!("{:.1} s", ms as f64 / 1000.0),
        ms => format!("{} min {} s", ms / 60_000, ms / 1000 % 60),
    }
}

/// A count: `950`, `1.2k`, `200k`, `3.4M`.
pub fn count(number: u64) -> String {
    let (shown, unit) = match number {
        0..1_000 => return number.to_string(),
        1_000..1_000_000 => (number as f64 / 1e3, "k"),
        _ => (number as f64 / 1e6, "M"),
    };
    // Beyond a hundred the tenths are of no interest.
    if shown < 100.0 { format!("{shown:.1}{unit}") } else { format!("{shown:.0}{unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(milliseconds("1970-01-01T00:00:00.000Z"), Some(0));
        assert_eq!(milliseconds("2026-01-31T12:00:00.250Z"), Some(1_769_860_800_250));
        assert_eq!(milliseconds("now"), None);
    }

    #[test]
    fn figures_are_short() {
        let shown = [duration(0), duration(999), duration(1_240), duration(75_400), duration(-5)];
        assert_eq!(shown, ["0 ms", "999 ms", "1.2 s", "1 min 15 s", "0 ms"]);
        let shown = [count(950), count(1_234), count(200_000), count(3_400_000)];
        assert_eq!(shown, ["950", "1.2k", "200k", "3.4M"]);
    }
}
