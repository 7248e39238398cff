//! Which port an extension wanted that somebody else has.

/// The port that an error says is taken: `listen EADDRINUSE: address already in use 127.0.0.1:3000`.
pub(super) fn taken_port(message: &str) -> Option<u16> {
    let taken = ["EADDRINUSE", "AddrInUse", "ddress already in use"];
    if !taken.iter().any(|sign| message.contains(sign)) {
        return None;
    }
    let words = message.split_whitespace().rev();
    words.filter_map(|word| word.rsplit_once(':')?.1.parse().ok()).find(|&port| port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_from_the_error() {
        let message = "Error: listen EADDRINUSE: address already in use 127.0.0.1:3000";
        assert_eq!(taken_port(message), Some(3000));
        assert_eq!(taken_port("AddrInUse: Address already in use (os error 98)"), None);
        assert_eq!(taken_port("TypeError: x:3000"), None);
    }
}
