//! How an extension has fared, and what follows when it fails.

use std::time::Duration;
use std::time::Instant;

use crate::supervision::HEALTHY_AFTER;
use crate::supervision::MAX_FAILURES;
use crate::supervision::MAX_PAUSES;
use crate::supervision::MAX_ZYGOTE_PAUSE;
use crate::supervision::Timing;
use crate::supervision::ZYGOTE_PAUSE;

/// How an extension has fared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record {
    /// Failures since it was last well.
    failures: u32,
    /// How often it was started again by us.
    restarts: u32,
    /// Calls of its tools, hooks and commands.
    calls: u64,
    /// Those that failed.
    errors: u64,
    /// How long the last one took.
    last_latency: Option<Duration>,
    /// Counts up with everything that makes a planned restart pointless.
    plan: u64,
    /// After which pause it is started again, if it is.
    returns: Option<Duration>,
    /// When the zygote last took it along, and how often it did so before, without a minute of quiet.
    zygote_died: Option<(Instant, u32)>,
    /// How often it was loaded.
    generations: u32,
}

/// What follows a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is started again after a pause.
    Restart(Duration),
    /// It has failed too often.
    SwitchOff,
}

impl Record {
    pub fn failures(&self) -> u32 {
        self.failures
    }

    pub fn restarts(&self) -> u32 {
        self.restarts
    }

    pub fn calls(&self) -> u64 {
        self.calls
    }

    pub fn errors(&self) -> u64 {
        self.errors
    }

    pub fn last_latency(&self) -> Option<Duration> {
        self.last_latency
    }

    pub fn plan(&self) -> u64 {
        self.plan
    }

    /// Whether it is planned to be started again.
    pub fn returns(&self) -> bool {
        self.returns.is_some()
    }

    /// Whether it is started again in a moment.
    pub fn returns_soon(&self) -> bool {
        self.returns.is_some_and(|pause| pause <= MAX_ZYGOTE_PAUSE)
    }

    /// Whether it was switched off because it failed too often.
    pub fn is_given_up(&self) -> bool {
        self.failures >= MAX_FAILURES
    }

    /// It has failed, after having been ready since `ready_at`, if it ever was.
    pub(super) fn failed(
        &mut self,
        ready_at: Option<Instant>,
        now: Instant,
        timing: &Timing,
    ) -> Verdict {
        if ready_at.is_some_and(|at| now.duration_since(at) >= timing.healthy_after) {
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
    pub(super) fn forgive(&mut self) {
        self.failures = 0;
        self.plan += 1;
    }

    /// It counts as one that has not failed.
    pub(super) fn forget_failures(&mut self) {
        self.failures = 0;
    }

    /// The zygote has died and taken it along, which is not its failure. It is started again at once, and after
    /// longer pauses when that goes on.
    pub(super) fn zygote_died(&mut self, now: Instant) -> Duration {
        let before = match self.zygote_died {
            Some((last, count)) if now.duration_since(last) < HEALTHY_AFTER => count,
            _ => 0,
        };
        self.zygote_died = Some((now, before + 1));
        (ZYGOTE_PAUSE * before).min(MAX_ZYGOTE_PAUSE)
    }

    /// Something has happened that makes a planned restart pointless. Returns the number of the plan that holds now.
    pub(super) fn overtake(&mut self) -> u64 {
        self.plan += 1;
        self.returns = None;
        self.plan
    }

    /// It does not return any more, because it does now, or because it is away for good.
    pub(super) fn no_return(&mut self) {
        self.returns = None;
    }

    /// It is started again after a pause; calls wait for it if that is not too long.
    pub(super) fn restarts_after(&mut self, pause: Duration, is_waited_for: bool) {
        self.restarts += 1;
        self.returns = is_waited_for.then_some(pause);
    }

    /// A number for another load.
    pub(super) fn next_generation(&mut self) -> u32 {
        self.generations += 1;
        self.generations
    }

    /// A call has ended.
    pub(super) fn called(&mut self, took: Duration, failed: bool) {
        self.calls += 1;
        self.errors += u64::from(failed);
        self.last_latency = Some(took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervision::RESTART_AFTER;

    #[test]
    fn pauses_double_until_it_is_switched_off() {
        let mut record = Record::default();
        let timing = Timing::default();
        let now = Instant::now();
        let verdicts: Vec<_> = (0..5).map(|_| record.failed(None, now, &timing)).collect();
        let pause = |seconds| Verdict::Restart(Duration::from_secs(seconds));
        assert_eq!(verdicts, [pause(1), pause(2), pause(4), pause(8), Verdict::SwitchOff]);
    }

    #[test]
    fn one_that_was_well_begins_anew() {
        let mut record = Record::default();
        let ready_at = Instant::now();
        for _ in 0..10 {
            let verdict =
                record.failed(Some(ready_at), ready_at + HEALTHY_AFTER, &Timing::default());
            assert_eq!(verdict, Verdict::Restart(RESTART_AFTER));
        }
    }

    #[test]
    fn a_process_that_dies_again_and_again_is_waited_for() {
        let mut record = Record::default();
        let now = Instant::now();
        let pauses: Vec<_> = (0..100).map(|_| record.zygote_died(now)).collect();
        assert_eq!(pauses[..3], [Duration::ZERO, ZYGOTE_PAUSE, ZYGOTE_PAUSE * 2]);
        assert_eq!(pauses[99], MAX_ZYGOTE_PAUSE);
        assert_eq!(record.zygote_died(now + HEALTHY_AFTER), Duration::ZERO);
    }

    #[test]
    fn forgiveness_makes_planned_restarts_pointless() {
        let mut record = Record::default();
        record.failed(None, Instant::now(), &Timing::default());
        let plan = record.plan;
        record.forgive();
        assert_eq!(record.failures, 0);
        assert_ne!(record.plan, plan);
    }
}
