//! An extension that misbehaves, in one way after the other.

use parking_lot::Mutex;
use std::collections::BTreeMap;

use serde_json::json;
use tenon_console::error::CliError;
use tenon_host::session::ToolCall;
use tenon_host::tool::ResultType;

use crate::measured;
use crate::measured::MeasuredSession;

/// Its name.
pub const NAME: &str = "culprit";

/// What it can do; the argument says which.
pub const SOURCE: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
import { spawn } from "node:child_process";
spawn("sleep", ["86400"], { stdio: "ignore" });
const ways = {
  "throws": () => { throw new Error("as asked"); },
  "loops": () => { for (;;); },
  "grows": () => { const all = []; for (;;) all.push(new Array(10000).fill(all.length)); },
  "exits": () => process.exit(3),
  "crashes later": () => { setTimeout(() => { throw new Error("later"); }); return new Promise(() => {}); },
  "floods the log": () => { for (let i = 0; i < 5000; i += 1) console.log("again and again", i); throw new Error("flooded"); },
};
await joinSession({ tools: [{ name: "misbehave", description: "x", handler: ({ way }) => ways[way]() }] });
"#;

/// Ways that are tool calls; each must be answered with a failure.
const WAYS: [&str; 6] = ["throws", "loops", "grows", "exits", "crashes later", "floods the log"];

/// A way that is a file: it must change nothing.
const BROKEN_SAVE: &str = "is saved broken";

/// What was done so far.
#[derive(Debug, Default)]
pub struct Faults(Mutex<BTreeMap<&'static str, u64>>);

impl Faults {
    /// How often each was done.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().clone()
    }

    /// Does the next.
    pub async fn next(&self, measured: &MeasuredSession) -> Result<(), CliError> {
        let done: u64 = self.counts().values().sum();
        let place = done as usize % (WAYS.len() + 1);
        let way = match WAYS.get(place) {
            Some(&way) => {
                misbehave(measured, way).await?;
                way
            }
            None => {
                save_broken(measured).await?;
                BROKEN_SAVE
            }
        };
        let mut counts = self.0.lock();
        *counts.entry(way).or_default() += 1;
        Ok(())
    }
}

async fn misbehave(measured: &MeasuredSession, way: &str) -> Result<(), CliError> {
    measured::until("the culprit is back", || measured.serves(NAME)).await?;
    let call = ToolCall::new("misbehave", json!({ "way": way }));
    // Nobody has the tool if its process has just been killed; that is an answer too.
    match measured.session.call_tool(call).await {
        Ok(outcome) if outcome.result.result_type == ResultType::Success => {
            let text = outcome.result.text_result_for_llm;
            Err(CliError::new(format!("a call that {way} was answered with {text:?}")))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// A version that does not load: the one that runs goes on, and the error is shown.
async fn save_broken(measured: &MeasuredSession) -> Result<(), CliError> {
    measured::until("the culprit is back", || measured.serves(NAME)).await?;
    measured.write(NAME, "this is no JavaScript")?;
    measured::until("the broken file is noticed", || {
        measured.info(NAME).is_some_and(|info| info.error.is_some())
    })
    .await?;
    measured.write(NAME, SOURCE)?;
    measured::until("the corrected file serves", || {
        measured.serves(NAME) && measured.info(NAME).is_some_and(|info| info.error.is_none())
    })
    .await
}
