//! The pauses in an extension's life: when one that failed is started again, and how long others wait for it.

use std::time::Duration;

/// How long after its first failure an extension is started again; twice as long after each further one.
pub const RESTART_AFTER: Duration = Duration::from_secs(1);

/// The longest such pause, in multiples of the first.
pub const MAX_PAUSES: u32 = 60;

/// How many failures in a row switch an extension off: it has been tried for half a minute by then.
pub const MAX_FAILURES: u32 = 5;

/// How long an extension has to run for its failures to be forgotten.
pub const HEALTHY_AFTER: Duration = Duration::from_secs(60);

/// How long it must be quiet on disk before changes count. Editors and version control write in bursts.
pub const DEBOUNCE: Duration = Duration::from_millis(75);

/// How long a call waits for an extension that is being started again: longer than the first pause after a
/// failure and a start take together.
pub const RETURN_PATIENCE: Duration = Duration::from_secs(3);

/// By how much the pause grows before extensions are started again after the zygote has died and taken them along, when
/// that happens again and again.
pub const ZYGOTE_PAUSE: Duration = Duration::from_millis(10);

/// The longest such pause.
pub const MAX_ZYGOTE_PAUSE: Duration = Duration::from_millis(500);

/// The pauses in an extension's life; tests have shorter ones.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// How long it must be quiet on disk before changes count.
    pub debounce: Duration,
    /// How long after its first failure an extension is started again.
    pub restart_after: Duration,
    /// How long it has to run for its failures to be forgotten.
    pub healthy_after: Duration,
    /// How long a call waits for an extension that is being started again.
    pub return_patience: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            debounce: DEBOUNCE,
            restart_after: RESTART_AFTER,
            healthy_after: HEALTHY_AFTER,
            return_patience: RETURN_PATIENCE,
        }
    }
}
