//! Settings of agents that are one of a few words.

use serde::Deserialize;
use serde::Serialize;

/// A word that is none of those it could be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{given}\" is no {what}; it is one of {}", .words.join(", "))]
pub struct UnknownWord {
    /// What was looked for.
    pub what: &'static str,
    /// What was given.
    pub given: String,
    /// What it could have been.
    pub words: &'static [&'static str],
}

/// An enum whose variants are words, in the file as well as in arguments and environment variables.
macro_rules! words {
    (
        $(#[$about:meta])* $name:ident is a $what:literal:
        $($(#[$about_variant:meta])* $variant:ident = $word:literal,)+
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$about_variant])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every word there is.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word for it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(UnknownWord {
                        what: $what,
                        given: word.to_owned(),
                        words: Self::WORDS,
                    }),
                }
            }
        }
    };
}

words! {
    /// What of the user's environment an agent sees.
    EnvPolicy is a "policy for the environment":
    /// Everything but secrets that are not its own.
    Filtered = "filtered",
    /// What a program needs to run at all, and what was configured for it.
    Isolated = "isolated",
}

words! {
    /// Whose home directory an agent works with.
    HomePolicy is a "policy for the home directory":
    /// The user's, with the logins that are there.
    Operator = "operator",
    /// One of its own in Tenon's folder, which begins empty.
    Isolated = "isolated",
}

words! {
    /// What is answered when an agent asks whether it may do something and no extension has decided.
    PermissionMode is a "permission mode":
    /// No.
    DenyAll = "deny-all",
    /// Yes if it only reads, in the workspace; otherwise what the person says.
    ApproveReads = "approve-reads",
    /// Yes.
    ApproveAll = "approve-all",
    /// What the person says.
    Ask = "ask",
}

words! {
    /// How an agent learns in the middle of a session that there are other tools now.
    ReloadStrategy is a "reload strategy":
    /// It is told that the list has changed and asks for it again; the tool that changed it waits for that.
    ListChanged = "list-changed",
    /// The same, but it asks only after that tool has answered, so nothing waits.
    ListChangedLater = "list-changed-later",
    /// It never asks again; two tools that are always there list and call the others.
    Dispatcher = "dispatcher",
    /// Not at all.
    None = "none",
}

words! {
    /// How an agent reaches the extensions' tools.
    McpTransport is a "transport":
    /// Over HTTP on this machine.
    Http = "http",
    /// Through a program that it starts.
    Stdio = "stdio",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_same_in_the_file_and_as_arguments() {
        for word in PermissionMode::WORDS {
            let mode: PermissionMode = word.parse().unwrap();
            assert_eq!(mode.to_string(), *word);
            assert_eq!(serde_json::to_value(mode).unwrap(), *word);
        }
        let error = "maybe".parse::<PermissionMode>().unwrap_err().to_string();
        assert_eq!(
            error,
            "\"maybe\" is no permission mode; it is one of deny-all, approve-reads, approve-all, ask"
        );
        assert_eq!("list-changed".parse::<ReloadStrategy>(), Ok(ReloadStrategy::ListChanged));
        assert_eq!(format!("{:>6}|", McpTransport::Http), "  http|");
    }
}
