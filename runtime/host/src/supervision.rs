//! What is done about an extension that fails: how often and when it is started again.

use std::time::Duration;
use std::time::Instant;

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

/// How an extension has fared.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// Failures since it was last well.
    pub failures: u32,
    /// How often it was started again by us.
    pub restarts: u32,
    /// Calls of its tools, hooks and commands.
    pub calls: u64,
    /// Those that failed.
    pub errors: u64,
    /// How long the last one took.
    pub last_latency: Option<Duration>,
    /// Counts up with everything that makes a planned restart pointless.
    pub plan: u64,
    /// After which pause it is started again, if it is.
    pub returns: Option<Duration>,
    /// When the zygote last took it along, and how often it did so before, without a minute of quiet.
    zygote_died: Option<(Instant, u32)>,
    /// How often it was loaded.
    generations: u32,
}

/// What follows a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is started again after a pause.
    Restart(Duration),
    /// It has failed too often.
    SwitchOff,
}

impl Record {
    /// It has failed, after having been ready since `ready_at`, if it ever was.
    pub fn failed(&mut self, ready_at: Option<Instant>, timing: &Timing) -> Verdict {
        if ready_at.is_some_and(|at| at.elapsed() >= timing.healthy_after) {
            self.failures = 0;
        }
        self.failures += 1;
        if self.failures >= MAX_FAILURES {
            return Verdict::SwitchOff;
        }
        let pauses = 2_u32.saturating_pow(self.failures - 1).min(MAX_PAUSES);
        Verdict::Restart(timing.restart_after * pauses)
    }

    /// Its files changed, or somebody wants it to run: a new chance.
    pub fn forgive(&mut self) {
        self.failures = 0;
        self.plan += 1;
    }

    /// The zygote has died and taken it along, which is not its failure. It is started again at once, and after
    /// longer pauses when that goes on.
    pub fn zygote_died(&mut self) -> Duration {
        let now = Instant::now();
        let before = match self.zygote_died {
            Some((last, count)) if now.duration_since(last) < HEALTHY_AFTER => count,
            _ => 0,
        };
        self.zygote_died = Some((now, before + 1));
        (ZYGOTE_PAUSE * before).min(MAX_ZYGOTE_PAUSE)
    }

    /// Whether it is started again in a moment.
    pub fn returns_soon(&self) -> bool {
        self.returns.is_some_and(|pause| pause <= MAX_ZYGOTE_PAUSE)
    }

    /// Whether it was switched off because it failed too often.
    pub fn is_given_up(&self) -> bool {
        self.failures >= MAX_FAILURES
    }

    /// A number for another load.
    pub fn next_generation(&mut self) -> u32 {
        self.generations += 1;
        self.generations
    }

    /// A call has ended.
    pub fn called(&mut self, took: Duration, failed: bool) {
        self.calls += 1;
        self.errors += u64::from(failed);
        self.last_latency = Some(took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_until_it_is_switched_off() {
        let mut record = Record::default();
        let timing = Timing::default();
        let verdicts: Vec<_> = (0..5).map(|_| record.failed(None, &timing)).collect();
        let pause = |seconds| Verdict::Restart(Duration::from_secs(seconds));
        assert_eq!(verdicts, [pause(1), pause(2), pause(4), pause(8), Verdict::SwitchOff]);
    }

    #[test]
    fn one_that_was_well_begins_anew() {
        let mut record = Record::default();
        let timing = Timing { healthy_after: Duration::ZERO, ..Timing::default() };
        for _ in 0..10 {
            let verdict = record.failed(Some(Instant::now()), &timing);
            assert_eq!(verdict, Verdict::Restart(RESTART_AFTER));
        }
    }

    #[test]
    fn a_process_that_dies_again_and_again_is_waited_for() {
        let mut record = Record::default();
        let pauses: Vec<_> = (0..100).map(|_| record.zygote_died()).collect();
        assert_eq!(pauses[..3], [Duration::ZERO, ZYGOTE_PAUSE, ZYGOTE_PAUSE * 2]);
        assert_eq!(pauses[99], MAX_ZYGOTE_PAUSE);
    }

    #[test]
    fn forgiveness_makes_planned_restarts_pointless() {
        let mut record = Record::default();
        record.failed(None, &Timing::default());
        let plan = record.plan;
        record.forgive();
        assert_eq!(record.failures, 0);
        assert_ne!(record.plan, plan);
    }
}
