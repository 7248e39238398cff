//! Hooks around a prompt: rewrites chain, contexts add up, a block ends it.

use std::ops::ControlFlow;

use serde::ser::SerializeMap;

use super::Chain;
use super::Hook;
use super::Output;
use super::filled;
use super::flag;
use super::text;
use crate::front::Context;

/// `onUserPromptSubmitted`.
#[derive(Debug, Default)]
pub struct Submitted {
    /// The prompt, as rewritten so far.
    pub prompt: String,
    /// It is not the one that came.
    pub rewritten: bool,
    /// What extensions add to it.
    pub contexts: Vec<Context>,
    /// Who wants the prompt dropped, and why.
    pub blocked: Option<Blocked>,
    /// The prompt is not to be shown.
    pub suppress_output: bool,
}

/// A decision against something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// `scope:name`.
    pub by: String,
    /// In the extension's words.
    pub reason: String,
}

impl Submitted {
    /// Of a prompt as it came.
    pub fn new(prompt: &str) -> Self {
        Self { prompt: prompt.to_owned(), ..Self::default() }
    }
}

impl Chain for Submitted {
    const HOOK: Hook = Hook::UserPromptSubmitted;
    const DECIDES: bool = true;

    fn input<M: SerializeMap>(&self, input: &mut M) -> Result<(), M::Error> {
        input.serialize_entry("prompt", &self.prompt)
    }

    fn take(&mut self, extension: &str, mut output: Output) -> ControlFlow<()> {
        if let Some(prompt) = text(&mut output, "modifiedPrompt") {
            self.rewritten |= prompt != self.prompt;
            self.prompt = prompt;
        }
        if let Some(text) = filled(&mut output, "additionalContext") {
            self.contexts.push(Context { extension: extension.to_owned(), text });
        }
        self.suppress_output |= flag(&output, "suppressOutput");
        if output.get("decision").is_some_and(|decision| decision == "block") {
            let reason = filled(&mut output, "reason").unwrap_or_else(|| "no reason given".into());
            self.blocked = Some(Blocked { by: extension.to_owned(), reason });
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn fail_closed(&mut self, extension: &str, why: &str) -> ControlFlow<()> {
        self.blocked = Some(Blocked { by: extension.to_owned(), reason: why.to_owned() });
        ControlFlow::Break(())
    }
}

/// `onUserPromptTransformed`.
#[derive(Debug)]
pub struct Transformed {
    /// As it was submitted.
    pub prompt: String,
    /// As the agent is about to get it.
    pub transformed: String,
    /// That is not what was submitted.
    pub rewritten: bool,
}

impl Chain for Transformed {
    const HOOK: Hook = Hook::UserPromptTransformed;

    fn input<M: SerializeMap>(&self, input: &mut M) -> Result<(), M::Error> {
        input.serialize_entry("prompt", &self.prompt)?;
        input.serialize_entry("transformedPrompt", &self.transformed)
    }

    fn take(&mut self, _extension: &str, mut output: Output) -> ControlFlow<()> {
        if let Some(prompt) = text(&mut output, "modifiedTransformedPrompt") {
            self.rewritten |= prompt != self.transformed;
            self.transformed = prompt;
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use serde_json::json;

    use super::*;
    use crate::hooks::written::told;

    fn output(value: Value) -> Output {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn rewrites_chain_and_contexts_add_up() {
        let mut chain = Submitted::new("fix it");
        let first = json!({ "modifiedPrompt": "fix it now", "additionalContext": "one" });
        assert!(chain.take("user:a", output(first)).is_continue());
        assert_eq!(told(&chain)["prompt"], "fix it now");
        let second = json!({ "modifiedPrompt": "please fix it now", "additionalContext": "two" });
        assert!(chain.take("project:b", output(second)).is_continue());
        assert_eq!(chain.prompt, "please fix it now");
        assert!(chain.rewritten);
        let names: Vec<_> = chain.contexts.iter().map(|c| c.extension.as_str()).collect();
        assert_eq!(names, ["user:a", "project:b"]);
    }

    #[test]
    fn a_block_ends_the_chain_and_says_who() {
        let mut chain = Submitted::new("x");
        let block = json!({ "decision": "block", "reason": "not on Fridays" });
        assert!(chain.take("project:b", output(block)).is_break());
        let blocked = chain.blocked.unwrap();
        assert_eq!((blocked.by.as_str(), blocked.reason.as_str()), ("project:b", "not on Fridays"));
    }

    #[test]
    fn fields_of_the_wrong_type_are_as_good_as_none() {
        let mut chain = Submitted::new("x");
        let odd = json!({ "modifiedPrompt": 5, "additionalContext": ["a"], "decision": true });
        assert!(chain.take("a", output(odd)).is_continue());
        assert_eq!(chain.prompt, "x");
        assert!(chain.contexts.is_empty() && !chain.rewritten);
    }

    #[test]
    fn a_prompt_that_is_set_to_what_it_is_was_not_rewritten() {
        let mut chain = Submitted::new("x");
        assert!(chain.take("a", output(json!({ "modifiedPrompt": "x" }))).is_continue());
        assert!(!chain.rewritten);
        let mut chain =
            Transformed { prompt: "x".into(), transformed: "x".into(), rewritten: false };
        let same = output(json!({ "modifiedTransformedPrompt": "x" }));
        assert!(chain.take("a", same).is_continue() && !chain.rewritten);
        let other = output(json!({ "modifiedTransformedPrompt": "y" }));
        assert!(chain.take("a", other).is_continue() && chain.rewritten);
    }
}
