//! What came of a long time: the figures, whether they are good, and how they are shown.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use tenon_console::output;
use tenon_console::output::BOLD;
use tenon_console::output::DIM;
use tenon_console::output::GREEN;
use tenon_console::output::RED;
use tenon_console::output::Table;

use crate::load::Calls;
use crate::load::ResourceUsage;
use crate::measured::percentile;

/// How long replaced generations have to be gone once nothing happens any more.
pub const SETTLE: Duration = Duration::from_secs(40);

/// By how much memory may have grown from the second quarter of the time to the last, in percent.
const GROWTH_PERCENT: f64 = 10.0;

/// Threads and files that may have been added: idle threads for files end when they like.
const SLACK: usize = 16;

/// The same for the zygote, which has one thread and a file for each extension that happens to be there.
const ZYGOTE_SLACK: usize = 4;

/// By how much the zygote's memory may have grown from the second quarter of the time to the last, in megabytes. It runs
/// nothing, so it is less than what its allocator keeps for later.
const ZYGOTE_GROWTH_MB: f64 = 2.0;

/// What the processes held at a moment.
#[derive(Debug, Clone, Serialize)]
pub struct Sample {
    pub at_s: f64,
    /// This process, with the session.
    pub session: ResourceUsage,
    pub zygote: ResourceUsage,
    /// The extensions' processes together.
    pub extensions: ResourceUsage,
    /// How many of these there are.
    pub processes: usize,
    /// Children of the session and of the zygote that have ended and that nobody has waited for.
    pub zombies: usize,
}

impl Sample {
    /// Whether no more threads and files are held than another time, but for a few.
    pub fn is_like(&self, before: &Self) -> bool {
        self.session.is_like(&before.session, SLACK)
            && self.extensions.is_like(&before.extensions, SLACK)
            && self.zygote.is_like(&before.zygote, ZYGOTE_SLACK)
    }

    /// Memory of all of them: every page counts once.
    fn memory_mb(&self) -> f64 {
        self.session.memory_mb + self.zygote.memory_mb + self.extensions.memory_mb
    }
}

/// What was held in the second quarter of the time, by the medians. While it works, the session holds more now
/// and then, for generations that end, and less when an extension is about to come back.
pub fn usually_held(samples: &[Sample]) -> Option<Sample> {
    let samples = quarter(samples, 1);
    let median = |pick: fn(&Sample) -> usize| {
        let values: Vec<f64> = samples.iter().map(|sample| pick(sample) as f64).collect();
        percentile(&values, 0.5) as usize
    };
    let mut usual = samples.first()?.clone();
    usual.session.threads = median(|sample| sample.session.threads);
    usual.session.files = median(|sample| sample.session.files);
    usual.zygote.threads = median(|sample| sample.zygote.threads);
    usual.zygote.files = median(|sample| sample.zygote.files);
    usual.extensions.threads = median(|sample| sample.extensions.threads);
    usual.extensions.files = median(|sample| sample.extensions.files);
    Some(usual)
}

/// The median of something in one of the four parts of the time.
fn middle(samples: &[Sample], number: usize, pick: fn(&Sample) -> f64) -> f64 {
    let values: Vec<f64> = quarter(samples, number).iter().map(pick).collect();
    percentile(&values, 0.5)
}

/// One of the four parts of the time; the first is the one with the kills.
fn quarter(samples: &[Sample], number: usize) -> &[Sample] {
    let length = samples.len() / 4;
    samples.get(number * length..(number + 1) * length).unwrap_or_default()
}

/// What is known when it is over.
#[derive(Debug, Serialize)]
pub struct Settled {
    pub engine: String,
    pub extensions: usize,
    pub seconds: f64,
    pub calls: Calls,
    pub events: u64,
    pub reloads: u64,
    pub zygote_kills: u64,
    pub faults: BTreeMap<&'static str, u64>,
    pub agents: u64,
    pub agents_killed: u64,
    /// Of those that were not killed.
    pub agents_failed: u64,
    pub samples: Vec<Sample>,
    /// When nothing happened any more.
    pub after: Sample,
    /// Whether every extension ran in the end.
    pub is_back: bool,
    pub processes_left: usize,
}

/// That, and what it means.
#[derive(Debug, Serialize)]
pub struct Report {
    pub lost_calls: u64,
    pub leaked_threads: usize,
    pub leaked_files: usize,
    /// When nothing happened any more.
    pub zombies: usize,
    /// Of the memory of all processes over the second half of the time, in megabytes per minute.
    pub memory_slope_mb_per_minute: f64,
    /// From the second quarter to the last, by the medians.
    pub memory_growth_percent: f64,
    /// By how much the zygote's own memory grew from the second quarter to the last, shared or not: its PSS also changes
    /// with what extensions still share with it.
    pub zygote_growth_mb: f64,
    pub passed: bool,
    #[serde(flatten)]
    pub settled: Settled,
}

impl Report {
    pub fn new(settled: Settled) -> Self {
        let samples = &settled.samples;
        let usual = usually_held(samples).unwrap_or_else(|| settled.after.clone());
        let leaked = |pick: fn(&ResourceUsage) -> usize| {
            let over = |now: &ResourceUsage, before: &ResourceUsage, slack: usize| {
                pick(now).saturating_sub(pick(before) + slack)
            };
            let now = &settled.after;
            over(&now.session, &usual.session, SLACK)
                + over(&now.extensions, &usual.extensions, SLACK)
                + over(&now.zygote, &usual.zygote, ZYGOTE_SLACK)
        };
        let (leaked_threads, leaked_files) =
            (leaked(|held| held.threads), leaked(|held| held.files));
        let whole = |number| middle(samples, number, Sample::memory_mb);
        let memory_growth_percent = (whole(3) / whole(1) - 1.0) * 100.0;
        let zygote = |number| middle(samples, number, |sample| sample.zygote.anonymous_mb);
        let zygote_growth_mb = zygote(3) - zygote(1);
        let half = &samples[samples.len() / 2..];
        let points: Vec<_> =
            half.iter().map(|sample| (sample.at_s / 60.0, sample.memory_mb())).collect();
        let lost_calls = settled.calls.sent - settled.calls.answered;
        let zombies = settled.after.zombies;
        let passed = lost_calls == 0
            && leaked_threads + leaked_files + settled.processes_left + zombies == 0
            && memory_growth_percent <= GROWTH_PERCENT
            && zygote_growth_mb <= ZYGOTE_GROWTH_MB
            && settled.agents_failed == 0
            && settled.is_back;
        Self {
            lost_calls,
            leaked_threads,
            leaked_files,
            zombies,
            memory_slope_mb_per_minute: slope(&points),
            memory_growth_percent,
            zygote_growth_mb,
            passed,
            settled,
        }
    }
}

/// Of the straight line that fits points best.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let together: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    together / spread
}

pub fn print(report: &Report) {
    let settled = &report.settled;
    let Calls { sent, answered, succeeded, failed, unknown_tool, failures } = &settled.calls;
    output::line(format_args!(
        "{BOLD}{:.0} s{BOLD:#} with {} extensions ({})",
        settled.seconds, settled.extensions, settled.engine
    ));
    let faults: Vec<String> =
        settled.faults.iter().map(|(way, count)| format!("{way} {count}")).collect();
    let rows = [
        (
            "calls",
            format!(
                "{sent} sent, {answered} answered: {succeeded} with a result, {failed} with a failure that says why, {unknown_tool} while nobody had the tool"
            ),
        ),
        ("events", format!("{}", settled.events)),
        ("reloads", format!("{}", settled.reloads)),
        ("faults", faults.join(", ")),
        ("zygote", format!("killed {} times", settled.zygote_kills)),
        (
            "agents",
            format!(
                "{}, of which {} were killed and {} failed",
                settled.agents, settled.agents_killed, settled.agents_failed
            ),
        ),
    ];
    let mut table = Table::new(&["WHAT", "HOW OFTEN"]);
    let plain = anstyle::Style::new();
    for (what, how_often) in rows {
        table.row(vec![(what.to_owned(), BOLD), (how_often, plain)]);
    }
    table.print();
    failures.iter().for_each(|failure| output::line(format_args!("  {DIM}{failure}{DIM:#}")));
    output::line("");
    print_samples(settled);
    output::line(format_args!(
        "lost calls {}, leaked threads {}, files {}, processes {}, zombies {}; memory {:+.1} % from the second quarter \
         to the last, {:+.2} MB per minute in the second half; the zygote's own {:+.2} MB",
        report.lost_calls,
        report.leaked_threads,
        report.leaked_files,
        settled.processes_left,
        report.zombies,
        report.memory_growth_percent,
        report.memory_slope_mb_per_minute,
        report.zygote_growth_mb
    ));
    if !settled.is_back {
        output::line(format_args!("{RED}not every extension runs in the end{RED:#}"));
    }
    let (style, verdict) = if report.passed {
        (GREEN, "clean: nothing was lost and nothing is left")
    } else {
        (RED, "not clean: something was lost, or is left")
    };
    output::line(format_args!("{style}{verdict}{style:#}"));
}

/// A few moments, so that it can be seen how memory went.
fn print_samples(settled: &Settled) {
    let columns = [
        ">AT s",
        ">MEMORY MB",
        ">EXTENSIONS MB",
        ">PROCESSES",
        ">THREADS",
        ">FILES",
        ">ZYGOTE MB",
        ">ITS OWN",
        ">FILES",
        ">ZOMBIES",
        ">SESSION MB",
        ">THREADS",
        ">FILES",
    ];
    let mut table = Table::new(&columns);
    let plain = anstyle::Style::new();
    let every = (settled.samples.len() / 6).max(1);
    let shown = settled.samples.iter().skip(every - 1).step_by(every);
    for sample in shown.chain([&settled.after]) {
        let Sample { at_s, session, zygote, extensions, processes, zombies } = sample;
        let is_after = std::ptr::eq(sample, &settled.after);
        let at = if is_after { "after".to_owned() } else { format!("{at_s:.0}") };
        table.row(vec![
            (at, BOLD),
            (format!("{:.0}", sample.memory_mb()), plain),
            (format!("{:.0}", extensions.memory_mb), plain),
            (processes.to_string(), plain),
            (extensions.threads.to_string(), plain),
            (extensions.files.to_string(), plain),
            (format!("{:.1}", zygote.memory_mb), plain),
            (format!("{:.1}", zygote.anonymous_mb), plain),
            (zygote.files.to_string(), plain),
            (zombies.to_string(), plain),
            (format!("{:.0}", session.memory_mb), plain),
            (session.threads.to_string(), plain),
            (session.files.to_string(), plain),
        ]);
    }
    table.print();
    output::line("");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: f64, memory_mb: f64, threads: usize) -> Sample {
        let held =
            ResourceUsage { memory_mb: memory_mb / 3.0, anonymous_mb: 14.0, threads, files: 20 };
        Sample { at_s, session: held, zygote: held, extensions: held, processes: 3, zombies: 0 }
    }

    fn settled(memory: impl Fn(usize) -> f64) -> Settled {
        let samples: Vec<_> =
            (0..40).map(|number| sample(number as f64, memory(number), 20)).collect();
        Settled {
            engine: "v8".to_owned(),
            extensions: 2,
            seconds: 40.0,
            calls: Calls { sent: 5, answered: 5, succeeded: 5, ..Calls::default() },
            events: 0,
            reloads: 0,
            zygote_kills: 0,
            faults: BTreeMap::new(),
            agents: 0,
            agents_killed: 0,
            agents_failed: 0,
            after: sample(41.0, 100.0, 20),
            samples,
            is_back: true,
            processes_left: 0,
        }
    }

    #[test]
    fn a_quiet_run_is_clean() {
        let report = Report::new(settled(|_| 100.0));
        assert!(report.passed, "{report:?}");
        assert_eq!((report.memory_growth_percent, report.memory_slope_mb_per_minute), (0.0, 0.0));
    }

    #[test]
    fn memory_that_grows_is_not_clean_and_its_slope_is_told() {
        let report = Report::new(settled(|number| 100.0 + number as f64));
        assert!(!report.passed);
        assert_eq!(report.memory_slope_mb_per_minute.round(), 60.0);
    }

    #[test]
    fn a_moment_in_which_less_is_held_is_no_measure() {
        let mut settled = settled(|_| 100.0);
        settled.samples[12].extensions.files -= 9;
        settled.after.extensions.files += SLACK - 5;
        assert!(Report::new(settled).passed);
    }

    #[test]
    fn whatever_is_lost_or_left_is_not_clean() {
        let mut lost = settled(|_| 100.0);
        lost.calls.answered -= 1;
        assert_eq!(
            (Report::new(lost).lost_calls, Report::new(settled(|_| 1.0)).lost_calls),
            (1, 0)
        );
        let spoil: [fn(&mut Settled); 10] = [
            |it| it.calls.answered -= 1,
            |it| it.processes_left = 1,
            |it| it.is_back = false,
            |it| it.agents_failed = 1,
            |it| it.after.session.threads += SLACK + 1,
            |it| it.after.extensions.files += SLACK + 1,
            |it| it.after.zygote.files += ZYGOTE_SLACK + 1,
            |it| it.after.zygote.threads += ZYGOTE_SLACK + 1,
            |it| it.after.zombies = 1,
            |it| {
                let late = it.samples.iter_mut().skip(30);
                late.for_each(|sample| sample.zygote.anonymous_mb += ZYGOTE_GROWTH_MB + 0.1);
            },
        ];
        for spoil in spoil {
            let mut settled = settled(|_| 100.0);
            spoil(&mut settled);
            assert!(!Report::new(settled).passed);
        }
    }
}
