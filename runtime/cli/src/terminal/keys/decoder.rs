//! The bytes that a terminal sends, as keys. The fuzz targets compile this file on its own.

/// A key, or what was pasted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// A character together with the control key; a small letter.
    Ctrl(char),
    /// A character together with the alt key.
    Alt(char),
    /// Return, or enter.
    Enter,
    /// The same together with the alt key.
    AltEnter,
    /// Tabulator.
    Tab,
    /// Deletes backwards.
    Backspace,
    /// Deletes the word before.
    AltBackspace,
    /// Deletes forwards.
    Delete,
    /// Escape, alone.
    Esc,
    /// Arrow keys.
    Left,
    /// Arrow keys.
    Right,
    /// Arrow keys.
    Up,
    /// Arrow keys.
    Down,
    /// A word to the left.
    WordLeft,
    /// A word to the right.
    WordRight,
    /// To the beginning.
    Home,
    /// To the end.
    End,
    /// Text that nobody typed.
    Paste(String),
}

/// The most that is pasted at once, in bytes; the rest is left out. More than any agent reads with profit.
pub const MAX_PASTE: usize = 1024 * 1024;

/// The longest sequence of a key, in bytes. What is longer is none.
const MAX_SEQUENCE: usize = 32;

/// What ends what is pasted.
const PASTE_END: &[u8] = b"\x1b[201~";

/// Takes bytes as they come.
#[derive(Debug, Default)]
pub struct Decoder {
    state: State,
    /// What belongs to the state.
    bytes: Vec<u8>,
    /// The last bytes of what is pasted, when there is no more room for it.
    tail: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    /// After `ESC [`.
    Sequence,
    /// After `ESC O`.
    Single,
    /// Inside a character of several bytes.
    Character,
    Paste,
}

impl Decoder {
    /// The keys that these bytes complete.
    pub fn decode(&mut self, bytes: &[u8]) -> Vec<Key> {
        bytes.iter().filter_map(|byte| self.take(*byte)).collect()
    }

    /// Whether it depends on what comes next, and when.
    pub fn is_waiting(&self) -> bool {
        matches!(self.state, State::Escape | State::Single)
    }

    /// Nothing has come in time.
    pub fn give_up_waiting(&mut self) -> Option<Key> {
        let key = match self.state {
            State::Escape => Key::Esc,
            State::Single => Key::Alt('O'),
            _ => return None,
        };
        self.state = State::Ground;
        Some(key)
    }

    fn take(&mut self, byte: u8) -> Option<Key> {
        match self.state {
            State::Ground => self.ground(byte),
            State::Escape => self.escape(byte),
            State::Sequence => self.sequence(byte),
            // It was cut off; another begins.
            State::Single if byte == 0x1b => {
                self.state = State::Escape;
                Some(Key::Alt('O'))
            }
            State::Single => {
                self.state = State::Ground;
                arrow(byte)
            }
            State::Character => self.character(byte),
            State::Paste => self.paste(byte),
        }
    }

    fn ground(&mut self, byte: u8) -> Option<Key> {
        match byte {
            0x1b => {
                self.state = State::Escape;
                None
            }
            b'\r' | b'\n' => Some(Key::Enter),
            b'\t' => Some(Key::Tab),
            0x7f | 0x08 => Some(Key::Backspace),
            1..=26 => Some(Key::Ctrl(char::from(byte - 1 + b'a'))),
            b' '..=b'~' => Some(Key::Char(char::from(byte))),
            0xc2..=0xf4 => {
                self.state = State::Character;
                self.bytes = vec![byte];
                None
            }
            _ => None,
        }
    }

    fn character(&mut self, byte: u8) -> Option<Key> {
        if byte & 0xc0 != 0x80 {
            // It was cut off; this is something else.
            self.state = State::Ground;
            return self.ground(byte);
        }
        self.bytes.push(byte);
        let length = match self.bytes[0] {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            _ => 4,
        };
        if self.bytes.len() < length {
            return None;
        }
        self.state = State::Ground;
        let text = std::str::from_utf8(&self.bytes).ok()?;
        text.chars().next().filter(|c| !c.is_control()).map(Key::Char)
    }

    fn escape(&mut self, byte: u8) -> Option<Key> {
        self.state = State::Ground;
        match byte {
            b'[' => {
                self.state = State::Sequence;
                self.bytes.clear();
                None
            }
            b'O' => {
                self.state = State::Single;
                None
            }
            // Pressed twice: the second may begin a sequence.
            0x1b => {
                self.state = State::Escape;
                Some(Key::Esc)
            }
            b'\r' | b'\n' => Some(Key::AltEnter),
            0x7f | 0x08 => Some(Key::AltBackspace),
            b' '..=b'~' => Some(Key::Alt(char::from(byte))),
            _ => None,
        }
    }

    fn sequence(&mut self, byte: u8) -> Option<Key> {
        match byte {
            b' '..=b'?' if self.bytes.len() < MAX_SEQUENCE => {
                self.bytes.push(byte);
                None
            }
            b'@'..=b'~' => {
                self.state = State::Ground;
                let parameters = std::mem::take(&mut self.bytes);
                if byte == b'~' && parameters == b"200" {
                    self.state = State::Paste;
                    self.tail.clear();
                    return None;
                }
                named(&parameters, byte)
            }
            // It was cut off; another begins.
            0x1b => {
                self.state = State::Escape;
                None
            }
            _ => {
                self.state = State::Ground;
                None
            }
        }
    }

    fn paste(&mut self, byte: u8) -> Option<Key> {
        if self.bytes.len() < MAX_PASTE {
            self.bytes.push(byte);
            if !self.bytes.ends_with(PASTE_END) {
                return None;
            }
            self.bytes.truncate(self.bytes.len() - PASTE_END.len());
        } else {
            if self.tail.is_empty() {
                // The end may have begun where the room ended.
                self.tail.extend_from_slice(&self.bytes[MAX_PASTE - PASTE_END.len()..]);
            }
            self.tail.push(byte);
            if !self.tail.ends_with(PASTE_END) {
                if self.tail.len() > 2 * PASTE_END.len() {
                    self.tail.drain(..PASTE_END.len());
                }
                return None;
            }
        }
        self.state = State::Ground;
        let text = String::from_utf8_lossy(&std::mem::take(&mut self.bytes)).into_owned();
        Some(Key::Paste(text.replace("\r\n", "\n").replace('\r', "\n")))
    }
}

/// Arrow keys, and those that go to an end.
fn arrow(byte: u8) -> Option<Key> {
    Some(match byte {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        _ => return None,
    })
}

/// The key that a sequence stands for.
fn named(parameters: &[u8], last: u8) -> Option<Key> {
    match (parameters, last) {
        // With the control or the alt key.
        (b"1;5" | b"1;3" | b"5" | b"3", b'C') => Some(Key::WordRight),
        (b"1;5" | b"1;3" | b"5" | b"3", b'D') => Some(Key::WordLeft),
        (b"1" | b"7", b'~') => Some(Key::Home),
        (b"4" | b"8", b'~') => Some(Key::End),
        (b"3", b'~') => Some(Key::Delete),
        // With the shift key, from terminals that tell it apart.
        (b"13;2" | b"13;3", b'u') | (b"27;2;13", b'~') => Some(Key::AltEnter),
        (b"27", b'u') => Some(Key::Esc),
        (_, last) => arrow(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut decoder = Decoder::default();
        let mut keys = decoder.decode(bytes);
        keys.extend(decoder.give_up_waiting());
        keys
    }

    #[test]
    fn keys_are_told_by_their_bytes() {
        let cases: [(&[u8], Key); 22] = [
            (b"a", Key::Char('a')),
            ("é".as_bytes(), Key::Char('é')),
            ("👋".as_bytes(), Key::Char('👋')),
            (b"\r", Key::Enter),
            (b"\n", Key::Enter),
            (b"\x1b\r", Key::AltEnter),
            (b"\t", Key::Tab),
            (b"\x7f", Key::Backspace),
            (b"\x1b\x7f", Key::AltBackspace),
            (b"\x03", Key::Ctrl('c')),
            (b"\x1b", Key::Esc),
            (b"\x1bb", Key::Alt('b')),
            (b"\x1b[A", Key::Up),
            (b"\x1bOB", Key::Down),
            (b"\x1b[1;5C", Key::WordRight),
            (b"\x1b[1;3D", Key::WordLeft),
            (b"\x1b[H", Key::Home),
            (b"\x1b[4~", Key::End),
            (b"\x1b[3~", Key::Delete),
            (b"\x1b[13;2u", Key::AltEnter),
            (b"\x1bO", Key::Alt('O')),
            (b"\x1b[200~x\r\ny\x1b[201~", Key::Paste("x\ny".to_owned())),
        ];
        for (bytes, key) in cases {
            assert_eq!(keys(bytes), [key], "{bytes:?}");
        }
    }

    #[test]
    fn it_does_not_matter_in_which_parts_bytes_come() {
        let bytes = "aé\x1b[A\x1b[200~p\x1b[31mq\x1b[201~\x1b[1;5Cz".as_bytes();
        let mut decoder = Decoder::default();
        let single: Vec<_> = bytes.iter().flat_map(|byte| decoder.decode(&[*byte])).collect();
        assert_eq!(single, keys(bytes));
        let pasted = Key::Paste("p\x1b[31mq".to_owned());
        let expected =
            [Key::Char('a'), Key::Char('é'), Key::Up, pasted, Key::WordRight, Key::Char('z')];
        assert_eq!(single, expected);
    }

    #[test]
    fn what_is_no_key_is_passed_over() {
        assert_eq!(keys(b"\xff\x80\x00a"), [Key::Char('a')]);
        assert_eq!(keys(b"\xc3a"), [Key::Char('a')]);
        assert_eq!(keys(b"\x1b[99;99Xa"), [Key::Char('a')]);
        let long = [b"\x1b[".as_slice(), &[b'1'; 40], b"a"].concat();
        assert!(keys(&long).ends_with(&[Key::Char('a')]));
        assert_eq!(keys(b"\x1b\x1b[A"), [Key::Esc, Key::Up]);
        assert_eq!(keys(b"\x1b[1;\x1b[A"), [Key::Up]);
        assert_eq!(keys(b"\x1bO\x1b[A"), [Key::Alt('O'), Key::Up]);
    }

    #[test]
    fn what_is_pasted_is_limited_and_its_end_is_found() {
        let text = "x".repeat(MAX_PASTE + 100);
        for length in [MAX_PASTE + 100, MAX_PASTE, MAX_PASTE - 3] {
            let paste = [b"\x1b[200~".as_slice(), &text.as_bytes()[..length], PASTE_END, b"a"];
            let keys = keys(&paste.concat());
            assert_eq!(keys.len(), 2, "{length}");
            assert!(matches!(&keys[0], Key::Paste(text) if text.len() <= MAX_PASTE), "{length}");
            assert_eq!(keys[1], Key::Char('a'), "{length}");
        }
    }
}
