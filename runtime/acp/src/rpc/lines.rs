//! Bytes become lines, none of them longer than is good for us.

use std::borrow::Cow;

use tokio::io::AsyncBufReadExt;
use tokio::io::AsyncRead;
use tokio::io::BufReader;

/// The longest line, in bytes, that is kept to be understood: a message with a large image or file has room,
/// and one that never ends does not fill our memory.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// How many bytes of a line that is no message are reported: enough to recognise who wrote it.
pub const SHOWN_BYTES: usize = 200;

/// Bytes that are read at a time: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;

/// Bytes of room that are kept for the next line; what a longer one needed is given back.
const KEPT_BYTES: usize = 1024 * 1024;

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// It was longer than allowed and is gone.
    TooLong {
        /// How it began.
        start: &'a [u8],
        /// How many bytes it had.
        length: usize,
    },
}

/// Reads line by line.
pub struct Lines<R> {
    reader: BufReader<R>,
    limit: usize,
    line: Vec<u8>,
    /// Bytes of the line so far, also those that were not kept.
    length: usize,
    /// The line was handed out; the next call begins another.
    given: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `limit` bytes.
    pub fn new(reader: R, limit: usize) -> Self {
        let reader = BufReader::with_capacity(READ_BYTES, reader);
        Self { reader, limit, line: Vec::new(), length: 0, given: false }
    }

    /// The next line; `None` at the end. What stands after the last line end counts as a line. Nothing is
    /// lost when the future is dropped.
    pub async fn next(&mut self) -> std::io::Result<Option<Line<'_>>> {
        if std::mem::take(&mut self.given) {
            self.line.clear();
            self.line.shrink_to(KEPT_BYTES);
            self.length = 0;
        }
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                if self.length == 0 {
                    return Ok(None);
                }
                break;
            }
            // Of a slice this is the system's search for a byte.
            let count = std::io::BufRead::skip_until(&mut &available[..], b'\n')?;
            let part = &available[..count];
            let (part, ended) = match part.strip_suffix(b"\n") {
                Some(part) => (part, true),
                None => (part, false),
            };
            self.length += part.len();
            if self.length <= self.limit {
                self.line.extend_from_slice(part);
            } else {
                self.line.extend_from_slice(&part[..part.len().min(SHOWN_BYTES)]);
                self.line.truncate(SHOWN_BYTES);
            }
            self.reader.consume(count);
            if ended {
                break;
            }
        }
        self.given = true;
        Ok(Some(if self.length <= self.limit {
            Line::Whole(&self.line)
        } else {
            Line::TooLong { start: &self.line, length: self.length }
        }))
    }
}

/// The beginning of a line as text, for a report.
pub fn shown(line: &[u8]) -> Cow<'_, str> {
    let mut end = line.len().min(SHOWN_BYTES);
    // Not in the middle of a character, which has at most three bytes after its first.
    for _ in 0..3 {
        if line.get(end).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000) {
            end -= 1;
        }
    }
    String::from_utf8_lossy(&line[..end])
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    /// Every line of `bytes`, which arrive in pieces of `piece` bytes; those that were too long as their
    /// length.
    async fn lines(bytes: &[u8], piece: usize, limit: usize) -> Vec<Result<String, usize>> {
        let (mut writer, reader) = tokio::io::duplex(piece);
        let bytes = bytes.to_vec();
        tokio::spawn(async move { writer.write_all(&bytes).await });
        let mut lines = Lines::new(reader, limit);
        let mut found = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            found.push(match line {
                Line::Whole(line) => Ok(String::from_utf8(line.to_vec()).unwrap()),
                Line::TooLong { length, .. } => Err(length),
            });
        }
        found
    }

    fn whole(text: &str) -> Result<String, usize> {
        Ok(text.to_owned())
    }

    #[tokio::test]
    async fn lines_are_found_however_the_bytes_arrive() {
        for piece in [1, 2, 3, 1024] {
            assert_eq!(
                lines("one\n\nzwölf\r\nlast".as_bytes(), piece, 100).await,
                [whole("one"), whole(""), whole("zwölf\r"), whole("last")]
            );
            assert!(lines(b"", piece, 100).await.is_empty());
            assert_eq!(lines(b"\n", piece, 100).await, [whole("")]);
        }
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_left_out_up_to_its_end() {
        for piece in [1, 4, 1024] {
            assert_eq!(
                lines(b"12345\n123456\n12345\n1234567", piece, 5).await,
                [whole("12345"), Err(6), whole("12345"), Err(7)]
            );
        }
    }

    #[tokio::test]
    async fn of_a_line_over_the_limit_only_the_beginning_is_kept() {
        let text: String = ('a'..='z').cycle().take(100_000).collect();
        for piece in [1, 150, 64 * 1024] {
            let (mut writer, reader) = tokio::io::duplex(piece);
            let bytes = text.clone().into_bytes();
            tokio::spawn(async move { writer.write_all(&bytes).await });
            let mut lines = Lines::new(reader, 1000);
            let start = &text.as_bytes()[..SHOWN_BYTES];
            let expected = Line::TooLong { start, length: text.len() };
            assert_eq!(lines.next().await.unwrap(), Some(expected));
            assert_eq!(lines.next().await.unwrap(), None);
        }
    }

    #[tokio::test]
    async fn the_room_for_a_long_line_is_given_back() {
        let (mut writer, reader) = tokio::io::duplex(READ_BYTES);
        tokio::spawn(async move {
            writer.write_all(&vec![b'x'; 8 * KEPT_BYTES]).await.unwrap();
            writer.write_all(b"\nshort\n").await.unwrap();
        });
        let mut lines = Lines::new(reader, MAX_LINE_BYTES);
        let long = vec![b'x'; 8 * KEPT_BYTES];
        assert!(lines.next().await.unwrap() == Some(Line::Whole(&long)));
        assert_eq!(lines.next().await.unwrap(), Some(Line::Whole(b"short")));
        assert!(lines.line.capacity() <= KEPT_BYTES);
    }

    #[test]
    fn what_is_shown_of_a_line_ends_with_a_whole_character() {
        assert_eq!(shown(b"short"), "short");
        assert_eq!(shown(&[b'x'; 500]), "x".repeat(SHOWN_BYTES));
        let text = format!("{}{}", "x".repeat(SHOWN_BYTES - 1), "é".repeat(10));
        assert_eq!(shown(text.as_bytes()), "x".repeat(SHOWN_BYTES - 1));
        let text = format!("{}{}", "x".repeat(SHOWN_BYTES - 3), "🦀".repeat(10));
        assert_eq!(shown(text.as_bytes()), "x".repeat(SHOWN_BYTES - 3));
        assert_eq!(shown(b"a\xFFb"), "a\u{FFFD}b");
        // No text at all: the search for a character's beginning ends.
        assert!(!shown(&[0x80; 500]).is_empty());
    }
}
