//! JSON-RPC lines of agents and editors.
//!
//! Lines are found however the bytes come, and none is kept that is too long; what is read can be written as one line that is
//! read as the same; only an object answers a request; no error of the other side says that it is gone.

#![no_main]

use std::pin::pin;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tenon_acp::rpc::RpcError;
use tenon_acp::rpc::fuzzing::Incoming;
use tenon_acp::rpc::fuzzing::Line;
use tenon_acp::rpc::fuzzing::Lines;
use tenon_acp::rpc::fuzzing::Outgoing;
use tenon_acp::rpc::fuzzing::SHOWN_BYTES;
use tenon_acp::rpc::fuzzing::answered;
use tenon_acp::rpc::fuzzing::read;
use tenon_acp::rpc::fuzzing::shown;
use tenon_fuzz::is_same;

fuzz_target!(|data: &[u8]| {
    let Some((&limit, bytes)) = data.split_first() else { return };
    split(bytes, usize::from(limit));
    for line in bytes.split(|byte| *byte == b'\n') {
        one(line);
    }
});

/// The lines of a stream, beside those that the standard library finds.
fn split(bytes: &[u8], limit: usize) {
    let mut lines = Lines::new(bytes, limit);
    let mut expected: Vec<_> = bytes.split(|byte| *byte == b'\n').collect();
    if expected.last().is_some_and(|last| last.is_empty()) {
        expected.pop();
    }
    for expected in expected {
        match ready(lines.next()).unwrap().unwrap() {
            Line::Whole(line) => {
                assert!(line.len() <= limit);
                assert_eq!(line, expected);
            }
            Line::TooLong { start, length } => {
                assert!(length > limit && start.len() <= SHOWN_BYTES);
                assert_eq!(length, expected.len());
                assert!(expected.starts_with(start));
            }
        }
    }
    assert_eq!(ready(lines.next()).unwrap(), None);
}

/// What a future gives that waits for nothing.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits, and nothing will wake it"),
    }
}

fn one(line: &[u8]) {
    assert!(shown(line).len() <= 3 * SHOWN_BYTES);
    let answers = answered(line);
    assert!(answers.is_none() || line.first() == Some(&b'{'), "no message, and it answers");
    let message = match read(line) {
        Ok(message) => message,
        Err(why) => {
            assert!(!why.is_empty());
            return;
        }
    };
    match message {
        Incoming::Request { id, method, params } => {
            assert!(id.is_number() || id.is_string(), "{id}");
            assert_eq!(answers, None);
            // Only requests of ours have ids that we choose, so the id of this one goes back with the answer.
            let again = round(&Outgoing::Response { id: id.clone(), result: Ok(params.clone()) });
            let Incoming::Response { id: same, result: Ok(value) } = again else { panic!() };
            assert!(is_same(&id, &same) && is_same(&params, &value));
            let again = round(&Outgoing::Request {
                id: 7,
                method: method.clone(),
                params: params.clone().into(),
            });
            let Incoming::Request { id, method: same, params: value } = again else { panic!() };
            assert!(id == 7 && method == same && is_same(&params, &value));
        }
        Incoming::Notification { method, params } => {
            let again = round(&Outgoing::Notification {
                method: method.clone(),
                params: params.clone().into(),
            });
            let Incoming::Notification { method: same, params: value } = again else { panic!() };
            assert!(method == same && is_same(&params, &value));
        }
        Incoming::Response { id, result } => {
            assert!(id.is_number() || id.is_string(), "{id}");
            if let Err(error) = &result {
                assert_ne!(error.code, RpcError::CLOSED);
            }
            let again = round(&Outgoing::Response { id: id.clone(), result: result.clone() });
            let Incoming::Response { id: same, result: value } = again else { panic!() };
            assert!(is_same(&id, &same));
            assert!(is_same(&plain(&result), &plain(&value)), "{result:?} became {value:?}");
        }
    }
}

/// Writes a message, which is one line, and reads it.
fn round(message: &Outgoing) -> Incoming {
    let mut line = Vec::new();
    message.write(&mut line);
    assert_eq!(line.pop(), Some(b'\n'));
    assert!(!line.contains(&b'\n') && std::str::from_utf8(&line).is_ok());
    read(&line).unwrap()
}

fn plain(result: &Result<Value, RpcError>) -> Value {
    serde_json::to_value(result.as_ref().map_err(|error| serde_json::to_value(error).unwrap()))
        .unwrap()
}
