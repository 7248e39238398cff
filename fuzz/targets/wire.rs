//! Frames of the socket between a session and an extension's process.
//!
//! What is read is written and read again as the same message, however the bytes are cut; the decoder never has more room
//! than what has come needs; the same bytes always end the same way.

#![no_main]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use arbitrary::Result;
use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde_json::Value;
use tenon_fuzz::is_same;
use tenon_protocol::message::CallKind;
use tenon_protocol::message::FromIsolate;
use tenon_protocol::message::LoadSpec;
use tenon_protocol::message::LoadedFile;
use tenon_protocol::message::LogLevel;
use tenon_protocol::message::LogRecord;
use tenon_protocol::message::ScriptError;
use tenon_protocol::message::ToIsolate;
use tenon_protocol::wire::Decoder;
use tenon_protocol::wire::Json;
use tenon_protocol::wire::Message;
use tenon_protocol::wire::WireError;
use tenon_protocol::wire::encode;
use tenon_protocol::zygote::Order;
use tenon_protocol::zygote::Report;

/// The room for one read beyond what was read and not taken yet, in bytes; a vector may double.
const ROOM: usize = 16 * 1024;

fuzz_target!(|data: &[u8]| {
    let Some((&kind, rest)) = data.split_first() else { return };
    match kind % 8 {
        0 => stream::<ToIsolate>(rest, json),
        1 => stream::<FromIsolate>(rest, json),
        2 => stream::<Json<LoadSpec>>(rest, |it| json(&it.0)),
        3 => stream::<Json<Order>>(rest, |it| json(&it.0)),
        4 => stream::<Json<Report>>(rest, |it| json(&it.0)),
        5 | 6 => drop(sent(rest)),
        _ => drop(reported(rest)),
    }
});

fn json(message: &impl Serialize) -> Value {
    serde_json::to_value(message).unwrap()
}

/// Bytes that somebody sends.
fn stream<M: Message>(data: &[u8], json: impl Fn(&M) -> Value) {
    let Some((&cut, bytes)) = data.split_first() else { return };
    let whole = take_all::<M>(bytes, bytes.len().max(1));
    let parts = take_all::<M>(bytes, usize::from(cut % 7) + 1);
    assert_eq!(whole.1, parts.1);
    assert_eq!(whole.0.len(), parts.0.len());
    for (one, other) in whole.0.iter().zip(&parts.0) {
        assert!(is_same(&json(one), &json(other)));
        round(one, &json);
    }
}

/// All messages in a stream, and whether it ends in an error.
fn take_all<M: Message>(bytes: &[u8], part: usize) -> (Vec<M>, bool) {
    let mut decoder = Decoder::default();
    let mut messages = Vec::new();
    let mut rest = 0;
    for part in bytes.chunks(part) {
        let room = decoder.room();
        assert!(room.capacity() > room.len(), "there is no room for a read");
        room.extend_from_slice(part);
        rest += part.len();
        loop {
            match decoder.take::<M>() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(_) => return (messages, true),
            }
        }
        assert!(decoder.room().capacity() <= 4 * (rest + ROOM), "more room than was needed");
    }
    (messages, false)
}

/// A message is written, read, and is the same.
fn round<M: Message>(message: &M, json: &impl Fn(&M) -> Value) {
    let frame = encode(message).unwrap();
    let mut decoder = Decoder::default();
    let (last, first) = frame.split_last().unwrap();
    decoder.room().extend_from_slice(first);
    assert!(matches!(decoder.take::<M>(), Ok(None)), "it was given before it was there");
    decoder.room().push(*last);
    let read = decoder.take::<M>().unwrap().unwrap();
    assert!(is_same(&json(&read), &json(message)), "{} became {}", json(message), json(&read));
    assert!(decoder.take::<M>().unwrap().is_none());
    assert!(decoder.room().is_empty());
}

const KINDS: [CallKind; 6] = [
    CallKind::Tool,
    CallKind::Hook,
    CallKind::Command,
    CallKind::Canvas,
    CallKind::Handler,
    CallKind::Listens,
];

/// A message as a session sends it.
fn sent(data: &[u8]) -> Result<()> {
    let u = &mut Unstructured::new(data);
    let message = match u.int_in_range(0..=5)? {
        0 => ToIsolate::Call {
            call: u.arbitrary()?,
            kind: *u.choose(&KINDS)?,
            payload: u.arbitrary()?,
        },
        1 => ToIsolate::Cancel { call: u.arbitrary()?, reason: u.arbitrary()? },
        2 => ToIsolate::Answer {
            request: u.arbitrary()?,
            result: if u.arbitrary()? {
                Ok(tenon_fuzz::json(u, &["a", "\\", "\""])?)
            } else {
                Err(u.arbitrary()?)
            },
        },
        3 => ToIsolate::Events { batch: u.arbitrary()? },
        4 => ToIsolate::HoldStart { held: u.arbitrary()? },
        _ => ToIsolate::Measure,
    };
    round(&message, &json);
    Ok(())
}

/// A message as an extension's process sends it.
fn reported(data: &[u8]) -> Result<()> {
    let u = &mut Unstructured::new(data);
    let message = match u.int_in_range(0..=4)? {
        0 => FromIsolate::Request {
            request: u.arbitrary()?,
            method: u.arbitrary()?,
            params: tenon_fuzz::json(u, &["a", "\\", "\""])?,
        },
        1 => FromIsolate::Reply { call: u.arbitrary()?, result: Ok(u.arbitrary()?) },
        2 => {
            let error = ScriptError {
                file: u.arbitrary()?,
                line: u.arbitrary()?,
                column: u.arbitrary()?,
                source_line: u.arbitrary()?,
                stack: u.arbitrary()?,
                ..ScriptError::message(u.arbitrary::<String>()?)
            };
            FromIsolate::Reply { call: u.arbitrary()?, result: Err(error) }
        }
        3 => FromIsolate::Log(LogRecord { level: LogLevel::Error, text: u.arbitrary()? }),
        _ => {
            let path = OsString::from_vec(u.arbitrary()?);
            let is_text = path.to_str().is_some();
            let file = LoadedFile {
                path: path.into(),
                hash: u.arbitrary()?,
                is_package: u.arbitrary()?,
                is_refused: u.arbitrary()?,
            };
            let message = FromIsolate::Loaded { files: vec![file] };
            if !is_text {
                // What cannot be said is not sent in half.
                assert!(matches!(encode(&message), Err(WireError::Unwritable(_))));
                return Ok(());
            }
            message
        }
    };
    round(&message, &json);
    Ok(())
}
