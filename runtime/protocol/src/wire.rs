//! Messages as bytes, for the socket between a session and an isolate in another process.
//!
//! A frame is a length, a tag and a body. What is sent all the time (calls, replies, events) is written as
//! it is, because its text is JSON already and would only be escaped and copied; everything else is JSON.

use crate::json_values;
use crate::json_values::TooManyValues;
use crate::limits::MAX_MESSAGE_BYTES;
use crate::message::CallKind;
use crate::message::FromIsolate;
use crate::message::ToIsolate;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes before a frame's body: its length, which counts the tag, and the tag.
const HEADER: usize = 5;

const JSON: u8 = 0;
const CALL: u8 = 1;
const EVENTS: u8 = 2;
const ANSWER: u8 = 3;
const REPLY: u8 = 4;
const EVENTS_SEEN: u8 = 5;
const REQUEST: u8 = 6;

/// A frame that is no message.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// Longer than any message may be.
    #[error("a message of {0} bytes is longer than {MAX_MESSAGE_BYTES}")]
    TooLong(usize),
    /// It would take too much memory.
    #[error("a message is too large: {0}")]
    TooManyValues(#[from] TooManyValues),
    /// Not what was agreed on.
    #[error("a message cannot be read: {0}")]
    Garbled(String),
    /// It has no JSON text: a path in it is no text.
    #[error("a message cannot be written: {0}")]
    Unwritable(String),
}

fn garbled(what: impl std::fmt::Display) -> WireError {
    WireError::Garbled(what.to_string())
}

/// What can be sent as a frame.
pub trait Message: Sized {
    /// Writes the body and returns the tag.
    fn write(&self, body: &mut Vec<u8>) -> Result<u8, WireError>;
    /// Reads a body.
    fn read(tag: u8, body: &[u8]) -> Result<Self, WireError>;
}

/// A message as a frame.
pub fn encode(message: &impl Message) -> Result<Vec<u8>, WireError> {
    let mut frame = vec![0; HEADER];
    let tag = message.write(&mut frame)?;
    let length = frame.len() - HEADER + 1;
    if length > MAX_MESSAGE_BYTES {
        return Err(WireError::TooLong(length));
    }
    frame[..4].copy_from_slice(&(length as u32).to_le_bytes());
    frame[4] = tag;
    Ok(frame)
}

/// The least room for a read, in bytes: most messages are shorter. A session has such a buffer for every extension.
const LEAST_ROOM: usize = 1024;

/// The most room for a read, in bytes, while much comes at once.
const MOST_ROOM: usize = 16 * 1024;

/// Takes bytes as they come and gives whole messages.
#[derive(Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// Where the first byte is that was not given yet.
    start: usize,
}

impl Decoder {
    /// The buffer, with room for at least one more read. The caller appends what it reads.
    pub fn room(&mut self) -> &mut Vec<u8> {
        let was_full = self.bytes.len() == self.bytes.capacity() && !self.bytes.is_empty();
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        if was_full {
            self.bytes.reserve(MOST_ROOM);
        } else {
            if self.bytes.is_empty() {
                self.bytes.shrink_to(LEAST_ROOM);
            }
            self.bytes.reserve(LEAST_ROOM);
        }
        &mut self.bytes
    }

    /// The next whole message.
    pub fn take<M: Message>(&mut self) -> Result<Option<M>, WireError> {
        let rest = &self.bytes[self.start..];
        let Some(length) = rest.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_MESSAGE_BYTES {
            return Err(WireError::TooLong(length));
        }
        let Some(frame) = rest.get(4..4 + length) else { return Ok(None) };
        let Some((tag, body)) = frame.split_first() else { return Err(garbled("an empty frame")) };
        let message = M::read(*tag, body)?;
        self.start += 4 + length;
        Ok(Some(message))
    }
}

fn write_json(value: &impl Serialize, body: &mut Vec<u8>) -> Result<u8, WireError> {
    let written = serde_json::to_writer(body, value);
    written.map(|()| JSON).map_err(|error| WireError::Unwritable(error.to_string()))
}

fn read_json<T: DeserializeOwned>(tag: u8, body: &[u8]) -> Result<T, WireError> {
    if tag != JSON {
        return Err(garbled(format!("the tag {tag}")));
    }
    serde_json::from_slice(body).map_err(garbled)
}

/// A number at the front, and what follows it.
fn number(body: &[u8]) -> Result<(u64, &[u8]), WireError> {
    let (number, rest) = body.split_first_chunk::<8>().ok_or_else(|| garbled("too short"))?;
    Ok((u64::from_le_bytes(*number), rest))
}

fn byte(body: &[u8]) -> Result<(u8, &[u8]), WireError> {
    body.split_first().map(|(byte, rest)| (*byte, rest)).ok_or_else(|| garbled("too short"))
}

fn text(body: &[u8]) -> Result<String, WireError> {
    String::from_utf8(body.to_vec()).map_err(garbled)
}

/// The kinds of calls, by their number on the wire.
const KINDS: [CallKind; 6] = [
    CallKind::Tool,
    CallKind::Hook,
    CallKind::Command,
    CallKind::Canvas,
    CallKind::Handler,
    CallKind::Listens,
];

impl Message for ToIsolate {
    fn write(&self, body: &mut Vec<u8>) -> Result<u8, WireError> {
        Ok(match self {
            Self::Call { call, kind, payload } => {
                body.extend_from_slice(&call.to_le_bytes());
                body.push(KINDS.iter().position(|known| known == kind).unwrap_or_default() as u8);
                body.extend_from_slice(payload.as_bytes());
                CALL
            }
            Self::Events { batch } => {
                body.extend_from_slice(batch.as_bytes());
                EVENTS
            }
            Self::Answer { request, result } => {
                body.extend_from_slice(&request.to_le_bytes());
                body.push(result.is_ok().into());
                match result {
                    Ok(value) => drop(write_json(value, body)?),
                    Err(message) => body.extend_from_slice(message.as_bytes()),
                }
                ANSWER
            }
            Self::Cancel { .. } | Self::HoldStart { .. } | Self::Measure | Self::Stop => {
                write_json(self, body)?
            }
        })
    }

    fn read(tag: u8, body: &[u8]) -> Result<Self, WireError> {
        Ok(match tag {
            CALL => {
                let (call, rest) = number(body)?;
                let (kind, payload) = byte(rest)?;
                let kind = *KINDS.get(kind as usize).ok_or_else(|| garbled("a kind of call"))?;
                Self::Call { call, kind, payload: text(payload)? }
            }
            EVENTS => Self::Events { batch: text(body)? },
            ANSWER => {
                let (request, rest) = number(body)?;
                let (ok, rest) = byte(rest)?;
                let result = if ok == 1 { Ok(read_json(JSON, rest)?) } else { Err(text(rest)?) };
                Self::Answer { request, result }
            }
            tag => read_json(tag, body)?,
        })
    }
}

impl Message for FromIsolate {
    fn write(&self, body: &mut Vec<u8>) -> Result<u8, WireError> {
        Ok(match self {
            Self::Reply { call, result: Ok(value) } => {
                body.extend_from_slice(&call.to_le_bytes());
                body.extend_from_slice(value.as_bytes());
                REPLY
            }
            Self::EventsSeen => EVENTS_SEEN,
            Self::Request { request, method, params } => {
                body.extend_from_slice(&request.to_le_bytes());
                body.extend_from_slice(&(method.len() as u64).to_le_bytes());
                body.extend_from_slice(method.as_bytes());
                write_json(params, body)?;
                REQUEST
            }
            other => write_json(other, body)?,
        })
    }

    fn read(tag: u8, body: &[u8]) -> Result<Self, WireError> {
        Ok(match tag {
            REPLY => {
                let (call, value) = number(body)?;
                Self::Reply { call, result: Ok(text(value)?) }
            }
            EVENTS_SEEN => Self::EventsSeen,
            REQUEST => {
                let (request, rest) = number(body)?;
                let (length, rest) = number(rest)?;
                let (method, params) =
                    rest.split_at_checked(length as usize).ok_or_else(|| garbled("too short"))?;
                json_values::check(params)?;
                Self::Request { request, method: text(method)?, params: read_json(JSON, params)? }
            }
            tag => {
                json_values::check(body)?;
                read_json(tag, body)?
            }
        })
    }
}

/// A message that is only ever JSON.
pub struct Json<T>(pub T);

impl<T: Serialize + DeserializeOwned> Message for Json<T> {
    fn write(&self, body: &mut Vec<u8>) -> Result<u8, WireError> {
        write_json(&self.0, body)
    }

    fn read(tag: u8, body: &[u8]) -> Result<Self, WireError> {
        read_json(tag, body).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use crate::layers::Layers;
    use crate::message::Breach;
    use crate::message::EndReason;
    use crate::message::EngineName;
    use crate::message::IsolateUsage;
    use crate::message::LoadedFile;
    use crate::message::LogLevel;
    use crate::message::LogRecord;
    use crate::message::ReadyReport;
    use crate::message::ScriptError;
    use serde_json::Value;
    use serde_json::json;

    use super::*;

    fn round<M: Message + serde::Serialize>(message: &M) {
        let frame = encode(message).unwrap();
        let mut decoder = Decoder::default();
        // Byte by byte: a message is given when its last byte has come, not before.
        for (index, byte) in frame.iter().enumerate() {
            decoder.room().push(*byte);
            let next = decoder.take::<M>().unwrap();
            assert_eq!(next.is_some(), index + 1 == frame.len());
            if let Some(next) = next {
                assert_eq!(
                    serde_json::to_value(next).unwrap(),
                    serde_json::to_value(message).unwrap()
                );
            }
        }
    }

    #[test]
    fn every_message_arrives_as_it_was_sent() {
        for kind in KINDS {
            round(&ToIsolate::Call { call: 7, kind, payload: "{\"a\":\"é\\n\"}".into() });
        }
        round(&ToIsolate::Events { batch: "[1,2]".into() });
        round(&ToIsolate::Answer { request: 1, result: Ok(json!({ "x": [null] })) });
        round(&ToIsolate::Answer { request: 1, result: Err("no".into()) });
        round(&ToIsolate::Cancel { call: 9, reason: "why".into() });
        round(&ToIsolate::HoldStart { held: true });
        round(&ToIsolate::Measure);
        round(&ToIsolate::Stop);
        round(&FromIsolate::Started { pid: 7, layers: Layers::every() });
        round(&FromIsolate::Measured(IsolateUsage { pid: 7, ..IsolateUsage::default() }));
        round(&FromIsolate::Reply { call: 3, result: Ok("[]".into()) });
        round(&FromIsolate::Reply { call: 3, result: Err(ScriptError::message("boom")) });
        round(&FromIsolate::EventsSeen);
        let ends = [
            EndReason::Stopped,
            EndReason::Script(ScriptError::message("boom")),
            EndReason::Exited { code: 1, joined: true },
            EndReason::NoJoin { deadline_ms: 1 },
            EndReason::Terminated { reason: "why".into() },
            EndReason::Limit(Breach {
                limit: "cpu-ms".into(),
                allowed: "much".into(),
                stack: "at x".into(),
            }),
            EndReason::ProcessDied { how: "so".into(), with_zygote: true },
            EndReason::Setup { message: "no".into() },
        ];
        for end in ends {
            round(&FromIsolate::Ended(end));
        }
        round(&FromIsolate::Log(LogRecord { level: LogLevel::Info, text: "x".into() }));
        let (wall_us, cpu_us, engine) = (1, 2, EngineName::V8);
        round(&FromIsolate::Ready(ReadyReport { wall_us, cpu_us, engine }));
        let file = LoadedFile {
            path: "/x".into(),
            hash: String::new(),
            is_package: true,
            is_refused: false,
        };
        round(&FromIsolate::Loaded { files: vec![file] });
        let params = json!({ "deep": [{}] });
        round(&FromIsolate::Request { request: 4, method: "session.join".into(), params });
    }

    #[test]
    fn a_short_text_of_very_many_values_is_refused() {
        let params = Value::Array(vec![json!(0); crate::limits::MAX_JSON_VALUES]);
        let request = FromIsolate::Request { request: 1, method: "x".into(), params };
        let mut decoder = Decoder::default();
        decoder.room().extend(encode(&request).unwrap());
        assert!(matches!(decoder.take::<FromIsolate>(), Err(WireError::TooManyValues(_))));
    }

    #[test]
    fn a_value_nested_as_deep_as_json_may_be_arrives() {
        let mut value = Value::Null;
        for _ in 0..126 {
            value = json!([value]);
        }
        round(&ToIsolate::Answer { request: 1, result: Ok(value) });
    }

    #[test]
    fn the_room_grows_while_much_comes_and_is_given_back() {
        let frame = encode(&ToIsolate::Events { batch: "x".repeat(10 * MOST_ROOM) }).unwrap();
        let (mut decoder, mut rest) = (Decoder::default(), frame.as_slice());
        let mut rooms = Vec::new();
        while !rest.is_empty() {
            assert!(decoder.take::<ToIsolate>().unwrap().is_none());
            let bytes = decoder.room();
            let room = bytes.capacity() - bytes.len();
            rooms.push(room);
            let (now, later) = rest.split_at(room.min(rest.len()));
            bytes.extend_from_slice(now);
            rest = later;
        }
        assert!(rooms[0] < 2 * LEAST_ROOM && rooms[1] >= MOST_ROOM, "{rooms:?}");
        assert!(decoder.take::<ToIsolate>().unwrap().is_some());
        assert!(decoder.room().capacity() < 2 * LEAST_ROOM);
    }

    #[test]
    fn a_path_that_is_no_text_is_not_sent_in_half() {
        use std::os::unix::ffi::OsStrExt;
        let path = std::ffi::OsStr::from_bytes(b"/x\xff").into();
        let file = LoadedFile { path, hash: String::new(), is_package: true, is_refused: false };
        let refused = encode(&FromIsolate::Loaded { files: vec![file] });
        assert!(matches!(refused, Err(WireError::Unwritable(_))));
    }

    #[test]
    fn a_frame_that_is_too_long_or_no_message_is_refused() {
        let mut decoder = Decoder::default();
        decoder.room().extend_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(decoder.take::<ToIsolate>(), Err(WireError::TooLong(_))));
        let mut decoder = Decoder::default();
        decoder.room().extend_from_slice(&[2, 0, 0, 0, 99, 1]);
        assert!(matches!(decoder.take::<ToIsolate>(), Err(WireError::Garbled(_))));
    }
}
