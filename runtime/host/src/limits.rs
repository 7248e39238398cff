//! The limits that hold for one extension: the usual ones, and what the user has configured.

use std::time::Duration;

use serde::Serialize;
use tenon_protocol::limits;
use tenon_protocol::message::IsolateLimits;

use crate::config::ExtensionConfig;

/// What one extension may use, and how long it may take.
#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq)]
pub struct Limits {
    /// What its isolate watches over.
    #[serde(flatten)]
    pub isolate: IsolateLimits,
    /// How long its hooks may take, in milliseconds.
    pub hook_deadline_ms: u64,
    /// How long its handlers of requests may take, in milliseconds.
    pub handler_deadline_ms: u64,
    /// How long a call of its tools may take, in milliseconds; for ever if there is none.
    pub tool_deadline_ms: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            isolate: limits::default_limits(),
            hook_deadline_ms: limits::HOOK_DEADLINE.as_millis() as u64,
            handler_deadline_ms: limits::HANDLER_DEADLINE.as_millis() as u64,
            tool_deadline_ms: None,
        }
    }
}

const MB: usize = 1024 * 1024;

impl Limits {
    /// The usual limits with what is configured for an extension.
    pub fn configured(config: &ExtensionConfig) -> Self {
        let mut all = Self::default();
        let isolate = &mut all.isolate;
        if let Some(megabytes) = config.heap_mb {
            isolate.heap_bytes = megabytes as usize * MB;
        }
        if let Some(megabytes) = config.buffer_mb {
            isolate.buffer_bytes = megabytes as usize * MB;
        }
        if let Some(megabytes) = config.memory_mb {
            isolate.memory_bytes = megabytes as usize * MB;
        }
        if let Some(ms) = config.cpu_ms {
            isolate.cpu_ms = ms.into();
        }
        if let Some(children) = config.children {
            isolate.children = children as usize;
        }
        if let Some(lines) = config.log_lines_per_second {
            isolate.log_lines_per_second = lines;
        }
        if let Some(kilobytes) = config.result_kb {
            isolate.result_chars = kilobytes as usize * 1024;
        }
        if let Some(seconds) = config.start_deadline_s {
            isolate.start_deadline_ms = u64::from(seconds) * 1000;
        }
        if let Some(ms) = config.hook_deadline_ms {
            all.hook_deadline_ms = ms.into();
        }
        if let Some(ms) = config.handler_deadline_ms {
            all.handler_deadline_ms = ms.into();
        }
        all.tool_deadline_ms = config.tool_deadline_ms.map(u64::from);
        all
    }

    /// How long a hook may take.
    pub fn hook_deadline(&self) -> Duration {
        Duration::from_millis(self.hook_deadline_ms)
    }

    /// How long a handler of requests may take.
    pub fn handler_deadline(&self) -> Duration {
        Duration::from_millis(self.handler_deadline_ms)
    }

    /// How long a tool may take, if there is a limit.
    pub fn tool_deadline(&self) -> Option<Duration> {
        self.tool_deadline_ms.map(Duration::from_millis)
    }

    /// Each limit by its name in the configuration, with its value in words.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let isolate = &self.isolate;
        let megabytes = |bytes: usize| format!("{} MB", bytes / MB);
        let ms = |ms: u64| {
            if ms.is_multiple_of(1000) { format!("{} s", ms / 1000) } else { format!("{ms} ms") }
        };
        vec![
            ("heap-mb", megabytes(isolate.heap_bytes)),
            ("buffer-mb", megabytes(isolate.buffer_bytes)),
            ("memory-mb", megabytes(isolate.memory_bytes)),
            ("cpu-ms", ms(isolate.cpu_ms)),
            ("children", isolate.children.to_string()),
            ("log-lines-per-second", isolate.log_lines_per_second.to_string()),
            ("result-kb", format!("{} KB", isolate.result_chars / 1024)),
            ("start-deadline-s", ms(isolate.start_deadline_ms)),
            ("hook-deadline-ms", ms(self.hook_deadline_ms)),
            ("handler-deadline-ms", ms(self.handler_deadline_ms)),
            ("tool-deadline-ms", self.tool_deadline_ms.map_or("none".to_owned(), ms)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_configured_replaces_the_usual() {
        let config: ExtensionConfig = toml::from_str(
            "heap-mb = 64\nbuffer-mb = 32\nmemory-mb = 96\ncpu-ms = 100\nchildren = 2\nlog-lines-per-second = 9\n\
             result-kb = 3\nstart-deadline-s = 4\nhook-deadline-ms = 5\nhandler-deadline-ms = 6\n\
             tool-deadline-ms = 7500",
        )
        .unwrap();
        let rows: Vec<_> =
            Limits::configured(&config).rows().into_iter().map(|(_, value)| value).collect();
        assert_eq!(
            rows,
            [
                "64 MB", "32 MB", "96 MB", "100 ms", "2", "9", "3 KB", "4 s", "5 ms", "6 ms",
                "7500 ms"
            ]
        );
        assert_eq!(Limits::configured(&ExtensionConfig::default()), Limits::default());
    }
}
