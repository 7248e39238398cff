//! What a renderer looks up in the session, because events do not say it.

use std::sync::Arc;
use std::sync::OnceLock;

use tenon_host::LoadError;
use tenon_host::Session;
use tenon_host::session::WeakSession;

/// The session, once there is one. Clones are the same; it does not keep the session alive.
#[derive(Clone, Default)]
pub struct Lookup(Arc<OnceLock<WeakSession>>);

impl Lookup {
    /// From now on it is looked up in this session.
    pub fn attach(&self, session: &Session) {
        // A lookup belongs to one session; a second is not attached.
        let _ = self.0.set(session.downgrade());
    }

    fn session(&self) -> Option<Session> {
        self.0.get()?.upgrade()
    }

    /// The extension that has a tool.
    pub fn owner(&self, tool: &str) -> Option<String> {
        self.session()?.tool_owner(tool)
    }

    /// Why an extension does not run, or not what is on disk now.
    pub fn trouble(&self, extension: &str) -> Option<String> {
        let found = self.session()?.find(extension);
        found.first()?.error.as_ref().map(in_a_line)
    }
}

/// An error with its place, in a line.
pub fn in_a_line(error: &LoadError) -> String {
    let what = &error.what;
    let message = what.message.lines().next().unwrap_or_default();
    match (&what.file, what.line, what.column) {
        (Some(file), Some(line), Some(column)) => format!("{message} ({file}:{line}:{column})"),
        (Some(file), Some(line), None) => format!("{message} ({file}:{line})"),
        (Some(file), ..) => format!("{message} ({file})"),
        (None, ..) => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use tenon_protocol::message::ScriptError;

    use super::*;

    #[test]
    fn an_error_is_a_line_with_its_place() {
        let what = ScriptError {
            message: "TypeError: x is not a function\n  more".to_owned(),
            file: Some("/a/extension.mjs".to_owned()),
            line: Some(3),
            column: Some(7),
            ..ScriptError::default()
        };
        let error = LoadError { what, hint: None };
        assert_eq!(in_a_line(&error), "TypeError: x is not a function (/a/extension.mjs:3:7)");
        assert_eq!(in_a_line(&LoadError::new("no entry", None)), "no entry");
    }

    #[test]
    fn without_a_session_nothing_is_known() {
        assert_eq!(Lookup::default().owner("bash"), None);
        assert_eq!(Lookup::default().trouble("project:x"), None);
    }
}
