//! `session/prompt`: a command of an extension, or a turn of the agent.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt;
use serde::Deserialize;
use serde_json::Value;
use serde_json::json;
use tenon_host::session::CommandError;
use tenon_host::session::Message;
use tenon_host::session::TurnEnd;

use super::commands;
use super::commands::Own;
use super::live::LiveSession;
use super::live::Prompting;
use super::opening;
use crate::content;
use crate::rpc::RpcError;

/// How long a cancelled turn may take to end. The session gives an agent five seconds to stop; then the client
/// hears that it was cancelled, whatever still runs.
const CANCEL_DEADLINE: Duration = Duration::from_secs(10);

/// A prompt as extensions and the agent get it.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The text blocks.
    pub text: String,
    /// The files it refers to, as the public contract describes them.
    pub attachments: Vec<Value>,
    /// All of it, as the client sent it.
    pub params: Value,
}

impl Prompt {
    /// Reads the parameters of `session/prompt`.
    pub fn of(params: &mut Value) -> Result<Self, RpcError> {
        let Some(Value::Array(blocks)) = params.get("prompt") else {
            return Err(RpcError::invalid_params("`prompt` must be an array of content blocks"));
        };
        let text = content::text(blocks);
        let attachments = blocks.iter().filter_map(attachment).collect();
        Ok(Self { text, attachments, params: params.take() })
    }
}

/// A block that refers to a file, or brings one along.
fn attachment(block: &Value) -> Option<Value> {
    let (uri, name) = match block["type"].as_str()? {
        "resource_link" => (&block["uri"], &block["name"]),
        "resource" => (&block["resource"]["uri"], &Value::Null),
        _ => return None,
    };
    let path = content::path_of(uri.as_str()?);
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or(&path);
    let name = name.as_str().unwrap_or(last).to_owned();
    Some(json!({ "type": "file", "path": path, "displayName": name }))
}

/// How a prompt ended, as the client is told.
///
/// A prompt that an extension did not let through is a `refusal`: of all reasons it is the one that says that the
/// prompt is not part of the conversation. Who refused and why is in `_meta.tenon`, and was shown.
fn ended(end: TurnEnd) -> Result<Value, RpcError> {
    match end {
        TurnEnd::Ended(answer) => Ok(answer.native.unwrap_or_else(|| stopped(&answer.stop.0))),
        TurnEnd::Cancelled => Ok(stopped("cancelled")),
        TurnEnd::Blocked { by, reason } => {
            let mut answer = stopped("refusal");
            answer["_meta"] = json!({ "tenon": { "blockedBy": by, "reason": reason } });
            Ok(answer)
        }
        TurnEnd::Failed(failed) => Err(match failed.native.map(RpcError::deserialize) {
            // The code tells editors what to do, such as to offer the login.
            Some(Ok(error)) => RpcError { message: failed.message, ..error },
            _ => RpcError::internal(failed.message),
        }),
    }
}

fn stopped(reason: &str) -> Value {
    json!({ "stopReason": reason })
}

/// Works on a prompt of the client. Dropping the future aborts it.
pub async fn run(live: &Arc<LiveSession>, mut params: Value) -> Result<Value, RpcError> {
    let mut prompting = live.prompting();
    let prompt = match Prompt::of(&mut params) {
        Ok(prompt) => prompt,
        Err(error) => {
            prompting.over();
            return Err(error);
        }
    };
    live.first_words().await;
    let commanded = match commands::parse(&prompt.text) {
        Some((name, args)) => command(live, &mut prompting, name, args).await,
        None => None,
    };
    let answer = match commanded {
        Some(answer) => Ok(answer),
        None => turn(live, &mut prompting, prompt).await,
    };
    prompting.over();
    // What was said about it stands before the end of it.
    live.told().await;
    answer
}

/// Runs a command of an extension, if it is one, and the turns it leads to.
async fn command(
    live: &Arc<LiveSession>,
    prompting: &mut Prompting,
    name: &str,
    args: &str,
) -> Option<Value> {
    let session = live.session();
    let own = Own::of(session);
    let is_agents = live.front.is_agents_command(name).await;
    let name = &commands::meant(&own, name, is_agents)?.name;
    let work = async {
        if let Err(CommandError::Unknown { .. }) = session.run_command(name, args).await {
            // Its extension has just gone.
            return None;
        }
        // Any other error was an event, and was shown. A command that sends a prompt is over when that is.
        session.idle().await;
        Some(stopped("end_turn"))
    };
    tokio::select! {
        biased;
        () = prompting.cancelled() => Some(stopped("cancelled")),
        answer = work => answer,
    }
}

/// Has the agent work on a prompt.
async fn turn(
    live: &Arc<LiveSession>,
    prompting: &mut Prompting,
    prompt: Prompt,
) -> Result<Value, RpcError> {
    let session = live.session();
    let message = Message {
        prompt: prompt.text,
        attachments: prompt.attachments.into(),
        native: Some(Arc::new(prompt.params)),
        ..Message::default()
    };
    let begun = AtomicBool::new(false);
    let mut working = std::pin::pin!(async {
        begun.store(true, Ordering::Relaxed);
        live.conversation.prompt(message).await
    });
    let end = tokio::select! {
        biased;
        () = prompting.cancelled() => {
            if !begun.load(Ordering::Relaxed) || session.idle().now_or_never().is_some() {
                // It has not begun, and will not.
                return Ok(stopped("cancelled"));
            }
            match tokio::time::timeout(CANCEL_DEADLINE, working).await {
                Ok(end) => end,
                Err(_) => return Ok(stopped("cancelled")),
            }
        }
        end = &mut working => end,
    };
    ended(end.map_err(opening::as_rpc)?)
}

#[cfg(test)]
mod tests {
    use tenon_host::front::AgentError;
    use tenon_host::front::Answer;
    use tenon_host::front::ErrorContext;
    use tenon_host::front::StopReason;

    use super::*;

    #[test]
    fn a_prompt_is_its_text_its_files_and_everything_as_it_was() {
        let blocks = json!([
            { "type": "text", "text": "look at", "annotations": { "x": 1 } },
            { "type": "resource_link", "uri": "file:///a%20b/c.rs#L3", "name": "c.rs", "odd": 1 },
            { "type": "image", "data": "eA==", "mimeType": "image/png" },
            { "type": "resource", "resource": { "uri": "zed:///thread/1", "text": "..." } },
            { "type": "from the future" },
            { "type": "text", "text": "this" },
        ]);
        let mut params = json!({ "sessionId": "s", "prompt": blocks });
        let prompt = Prompt::of(&mut params).unwrap();
        assert_eq!(prompt.text, "look at\nthis");
        let files = [
            json!({ "type": "file", "path": "/a b/c.rs", "displayName": "c.rs" }),
            json!({ "type": "file", "path": "zed:///thread/1", "displayName": "1" }),
        ];
        assert_eq!(prompt.attachments, files);
        assert_eq!(prompt.params["prompt"], blocks);
    }

    #[test]
    fn a_prompt_that_is_no_list_of_blocks_is_refused() {
        for mut params in [json!({}), json!({ "prompt": "hello" }), Value::Null] {
            let refused = Prompt::of(&mut params).unwrap_err();
            assert_eq!(refused.code, RpcError::INVALID_PARAMS);
        }
        assert_eq!(Prompt::of(&mut json!({ "prompt": [] })).unwrap().text, "");
    }

    #[test]
    fn the_agents_own_answer_reaches_the_client_whole() {
        let response = json!({ "stopReason": "max_tokens", "usage": { "inputTokens": 3 } });
        let stop = StopReason("max_tokens".to_owned());
        let end = TurnEnd::Ended(Answer { stop, native: Some(response.clone()) });
        assert_eq!(ended(end).unwrap(), response);
        let bare = TurnEnd::Ended(StopReason::end_turn().into());
        assert_eq!(ended(bare).unwrap(), json!({ "stopReason": "end_turn" }));
    }

    #[test]
    fn what_did_not_end_by_itself_says_so() {
        assert_eq!(ended(TurnEnd::Cancelled).unwrap(), json!({ "stopReason": "cancelled" }));
        let blocked = TurnEnd::Blocked { by: "user:a".to_owned(), reason: "secrets".to_owned() };
        let expected = json!({
            "stopReason": "refusal",
            "_meta": { "tenon": { "blockedBy": "user:a", "reason": "secrets" } },
        });
        assert_eq!(ended(blocked).unwrap(), expected);
        let failed = |native| {
            TurnEnd::Failed(AgentError {
                message: "demo ended unexpectedly: exit code 1".to_owned(),
                context: ErrorContext::System,
                recoverable: true,
                native,
            })
        };
        let ours = ended(failed(None)).unwrap_err();
        assert!(ours.message.contains("exit code 1") && ours.code == RpcError::INTERNAL);
        let login = json!({ "code": RpcError::AUTH_REQUIRED, "message": "log in", "data": [1] });
        let theirs = ended(failed(Some(login))).unwrap_err();
        assert_eq!((theirs.code, theirs.data), (RpcError::AUTH_REQUIRED, Some(json!([1]))));
        assert_eq!(theirs.message, ours.message);
    }
}
