//! What comes by HTTP and MCP: bodies, headers, calls of the two tools that never change, schemas, and which announced call
//! a call belongs to.

#![no_main]

use std::collections::HashSet;
use std::net::IpAddr;
use std::pin::pin;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;

use arbitrary::Result;
use arbitrary::Unstructured;
use http::HeaderMap;
use http::HeaderValue;
use http::header;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use serde_json::json;
use tenon_acp::endpoint::CallLedger;
use tenon_acp::endpoint::DISPATCH_CALL;
use tenon_acp::endpoint::DISPATCH_LIST;
use tenon_acp::endpoint::fuzzing::MAX_QUESTION_BYTES;
use tenon_acp::endpoint::fuzzing::decline_discovery;
use tenon_acp::endpoint::fuzzing::is_local_origin;
use tenon_acp::endpoint::fuzzing::is_own_host;
use tenon_acp::endpoint::fuzzing::route;
use tenon_acp::endpoint::fuzzing::schema;
use url::Host;
use url::Url;

const WORDS: &[&str] = &[
    "name",
    "arguments",
    "args",
    "echo",
    "type",
    "object",
    "properties",
    "required",
    "string",
    "null",
    "{\"a\":1}",
    "[1]",
    "",
    " ",
    "callId",
    "toolCallId",
    "claudecode/toolUseId",
    "1",
    "2",
    "3",
];

const DISCOVER: &str = "server/discover";

fuzz_target!(|data: &[u8]| {
    let Some((&kind, rest)) = data.split_first() else { return };
    match kind % 5 {
        0 => body(rest),
        1 => host(rest),
        2 => origin(rest),
        3 => drop(call(rest)),
        _ => drop(ledger(rest)),
    }
});

fn body(body: &[u8]) {
    let answer = ready(decline_discovery(body));
    let message = serde_json::from_slice::<Value>(body).unwrap_or_default();
    let asks = message.get("method").is_some_and(|method| method == DISCOVER);
    // The words may be written with escapes, which nobody does who means them.
    let is_plain = body.windows(DISCOVER.len()).any(|part| part == DISCOVER.as_bytes());
    assert_eq!(answer.is_some(), asks && is_plain && body.len() <= MAX_QUESTION_BYTES);
    if let Some((status, answer)) = answer {
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!((status, &answer["error"]["code"]), (200, &json!(-32601)));
        assert!(tenon_fuzz::is_same(&answer["id"], &message["id"]));
    }
}

fn host(text: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(text) else { return };
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, value.clone());
    let is_own = is_own_host(&headers, 8080);
    if is_own {
        let text = value.to_str().unwrap();
        let url = Url::parse(&format!("http://{text}/")).unwrap();
        assert!(is_loopback(&url) && url.port() == Some(8080), "{text}");
        assert!(url.username().is_empty() && url.path() == "/" && url.query().is_none(), "{text}");
    }
    headers.append(header::HOST, value);
    assert!(!is_own_host(&headers, 8080), "there are two");
}

fn origin(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    if !is_local_origin(text) {
        return;
    }
    // A browser sends a port that there is.
    let Ok(url) = Url::parse(text) else { return };
    assert!(is_loopback(&url) && matches!(url.scheme(), "http" | "https"), "{text}");
    assert!(url.username().is_empty() && url.path() == "/" && url.query().is_none(), "{text}");
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
        None => false,
    }
}

/// A call of a tool.
fn call(data: &[u8]) -> Result<()> {
    let u = &mut Unstructured::new(data);
    let args = tenon_fuzz::json(u, WORDS)?;
    let name = *u.choose(&[DISPATCH_LIST, DISPATCH_CALL, "echo"])?;
    match (name, route(name, args.clone())) {
        (DISPATCH_LIST, routed) => assert_eq!(routed, Ok(None)),
        (DISPATCH_CALL, Ok(Some((tool, inner)))) => {
            assert!(args["name"] == *tool && inner.is_object());
            let given = [&args["arguments"], &args["args"]];
            if let Some(given) = given.iter().find(|it| !it.is_null()).filter(|it| it.is_object()) {
                assert_eq!(inner, **given);
            }
        }
        (DISPATCH_CALL, Ok(None)) => panic!("a call lists"),
        (DISPATCH_CALL, Err(why)) => {
            assert!(!args["name"].is_string() || why.contains("must be an object"), "{why}");
        }
        (name, routed) => assert_eq!(routed, Ok(Some((name.to_owned(), args.clone())))),
    }
    let made = schema(Some(&args));
    assert!(made["type"] == "object" && made["properties"].is_object());
    assert_eq!(schema(Some(&made)), made);
    Ok(())
}

/// Calls that are announced by ACP and made by MCP: none is claimed twice.
fn ledger(data: &[u8]) -> Result<()> {
    const IDS: [&str; 4] = ["1", "2", "3", "4"];
    let u = &mut Unstructured::new(data);
    let ledger = CallLedger::default();
    let (mut announced, mut claimed) = (HashSet::new(), HashSet::new());
    while !u.is_empty() {
        let tool = *u.choose(&["echo", "find"])?;
        let id = *u.choose(&IDS)?;
        let args = [json!({}), json!({ "a": 1 }), json!({ "a": 2 })];
        match u.int_in_range(0..=3)? {
            0 => {
                let args = u.arbitrary::<bool>()?.then_some(u.choose(&args)?);
                ledger.announce(tool, args, id);
                announced.insert(id.to_owned());
            }
            1 => {
                let meta = json!({ *u.choose(&["callId", "other"])?: id });
                let meta = u.arbitrary::<bool>()?.then_some(&meta);
                if let Some(id) = ledger.claim(tool, u.choose(&args)?, meta) {
                    let told = meta.is_some_and(|meta| meta["callId"] == *id);
                    assert!(told || announced.contains(&id), "{id} was never announced");
                    assert!(claimed.insert(id.clone()), "{id} was claimed twice");
                }
            }
            2 => {
                ledger.forget(id);
                announced.remove(id);
                claimed.remove(id);
            }
            _ => {}
        }
    }
    Ok(())
}

/// What a future gives that waits for nothing.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits, and nothing will wake it"),
    }
}
