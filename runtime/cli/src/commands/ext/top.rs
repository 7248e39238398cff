//! `tenon ext top`: what each extension uses, again and again.

mod keys;

use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;
use std::time::Instant;

use anstyle::Style;
use serde::Serialize;
use serde_json::json;
use tenon_host::Session;
use tenon_host::control::ControlGuard;
use tenon_host::control::Request;
use tenon_host::manage::ExtensionUsage;
use tenon_host::session::EndReason;

use self::keys::Keys;
use super::report::status_style;
use super::tell::heading;
use crate::args::Args;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::DIM;
use crate::output::RED;
use crate::output::Table;
use crate::output::YELLOW;
use crate::workspace;
use crate::workspace::Workspace;

/// How long a table stands before the next.
const REFRESH_EVERY: Duration = Duration::from_secs(1);

/// Where the figures come from.
enum Source {
    /// From the sessions that are live, in other processes.
    Live(Workspace),
    /// From a session of this process: none was live. Others can reach it.
    Own(Session, #[allow(dead_code, reason = "it is there to be dropped")] Option<ControlGuard>),
}

/// The extensions of one session.
#[derive(Debug, Serialize)]
struct Sample {
    id: String,
    pid: u32,
    cwd: PathBuf,
    extensions: Vec<Used>,
    /// Why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What one extension uses.
#[derive(Debug, Serialize)]
struct Used {
    #[serde(flatten)]
    usage: ExtensionUsage,
    /// Of one core, since the last sample.
    cpu_percent: Option<f64>,
}

pub async fn run(args: &Args, once: bool) -> Result<ExitCode, CliError> {
    let workspace = Workspace::of(args)?;
    let source = if workspace.live().await.is_empty() {
        let (session, guard) = workspace::load_live(args).await?;
        if session.list().is_empty() {
            session.end(EndReason::Complete).await;
            return Err(workspace.nothing_found());
        }
        Source::Own(session, guard)
    } else {
        Source::Live(workspace)
    };
    let shown = show(args, once, &source).await;
    if let Source::Own(session, _) = &source {
        session.end(EndReason::UserExit).await;
    }
    shown.map(|()| ExitCode::SUCCESS)
}

async fn show(args: &Args, once: bool, source: &Source) -> Result<(), CliError> {
    let mut stop = pin!(workspace::interruption());
    let redraws = !args.json && !once && output::is_terminal();
    let goes_on = redraws || (args.json && !once);
    let mut keys = redraws.then(Keys::open);
    let mut meter = Meter::default();
    loop {
        let samples = tokio::select! {
            samples = source.sample(&mut meter) => samples,
            () = &mut stop => return Ok(()),
        };
        if args.json {
            let document = serde_json::to_string(&json!({ "sessions": samples }))?;
            if !output::stream_line(document) {
                return Ok(());
            }
        } else if redraws {
            output::redraw(&frame(&samples));
        } else {
            frame(&samples).iter().for_each(output::line);
        }
        if !goes_on {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(REFRESH_EVERY) => {}
            () = &mut stop => return Ok(()),
            () = quit(&mut keys) => return Ok(()),
        }
    }
}

/// Waits for the key that ends it; for ever where no keys are read.
async fn quit(keys: &mut Option<Keys>) {
    match keys {
        Some(keys) => keys.quit().await,
        None => std::future::pending().await,
    }
}

impl Source {
    async fn sample(&self, meter: &mut Meter) -> Vec<Sample> {
        match self {
            Self::Own(session, _) => {
                let usage = session.usage().await;
                vec![Sample {
                    id: session.id().to_owned(),
                    pid: std::process::id(),
                    cwd: session.cwd().to_owned(),
                    extensions: meter.measure(session.id(), usage),
                    error: None,
                }]
            }
            Self::Live(workspace) => {
                let mut samples = Vec::new();
                // Sessions come and go.
                for live in workspace.live().await {
                    let usage = match live.ask(&Request::Usage).await {
                        Ok(usage) => serde_json::from_value(usage).map_err(|e| e.to_string()),
                        Err(error) => Err(error.to_string()),
                    };
                    let (usage, error) = match usage {
                        Ok(usage) => (usage, None),
                        Err(error) => (Vec::new(), Some(error)),
                    };
                    samples.push(Sample {
                        extensions: meter.measure(&live.id, usage),
                        id: live.id,
                        pid: live.pid,
                        cwd: live.cwd,
                        error,
                    });
                }
                samples
            }
        }
    }
}

/// Remembers the last sample, to say how much of a core was used since.
#[derive(Default)]
struct Meter(HashMap<(String, String), Before>);

struct Before {
    at: Instant,
    cpu_us: u64,
    generation: u32,
}

impl Meter {
    fn measure(&mut self, session: &str, usage: Vec<ExtensionUsage>) -> Vec<Used> {
        usage.into_iter().map(|usage| self.measure_one(session, usage, Instant::now())).collect()
    }

    fn measure_one(&mut self, session: &str, usage: ExtensionUsage, now: Instant) -> Used {
        let key = (session.to_owned(), usage.id.clone());
        let next = Before { at: now, cpu_us: usage.cpu_us, generation: usage.generation };
        let before = self.0.insert(key, next);
        // Another load counts from nothing.
        let same = before.filter(|before| {
            before.generation == usage.generation && before.cpu_us <= usage.cpu_us
        });
        let cpu_percent = same.and_then(|before| {
            let passed = now.duration_since(before.at).as_secs_f64();
            let used = (usage.cpu_us - before.cpu_us) as f64 / 1e6;
            (passed > 0.0).then(|| used / passed * 100.0)
        });
        Used { usage, cpu_percent }
    }
}

/// Everything as lines.
fn frame(samples: &[Sample]) -> Vec<String> {
    if samples.is_empty() {
        return vec![format!("{DIM}no session is live in this workspace{DIM:#}")];
    }
    let mut lines = Vec::new();
    for sample in samples {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push(heading(&sample.id, sample.pid, &sample.cwd));
        match &sample.error {
            Some(error) => lines.push(format!("{RED}{error}{RED:#}")),
            None => lines.extend(table(&sample.extensions).lines()),
        }
    }
    lines
}

fn table(extensions: &[Used]) -> Table {
    let mut table = Table::new(&[
        "ID",
        "STATUS",
        ">GEN",
        ">CPU %",
        ">CPU TIME",
        ">HEAP",
        ">BUFFERS",
        ">CALLS",
        ">ERRORS",
        ">LAST",
        ">RESTARTS",
    ]);
    let plain = Style::new();
    for Used { usage, cpu_percent } in extensions {
        let noted = |number: u64, style: Style| {
            (number.to_string(), if number > 0 { style } else { plain })
        };
        table.row(vec![
            (usage.id.clone(), BOLD),
            (usage.status.to_string(), status_style(usage.status)),
            (usage.generation.to_string(), plain),
            (cpu_percent.map_or("-".to_owned(), |percent| format!("{percent:.1}")), plain),
            (cpu_time(usage.cpu_us), plain),
            (megabytes(usage.heap_bytes), plain),
            (megabytes(usage.buffer_bytes), plain),
            (usage.calls.to_string(), plain),
            noted(usage.errors, RED),
            (usage.last_latency_us.map_or("-".to_owned(), latency), plain),
            noted(usage.restarts.into(), YELLOW),
        ]);
    }
    table
}

fn cpu_time(us: u64) -> String {
    let seconds = us as f64 / 1e6;
    if seconds < 60.0 {
        format!("{seconds:.2} s")
    } else {
        let whole = us / 1_000_000;
        format!("{}:{:02} min", whole / 60, whole % 60)
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / (1024.0 * 1024.0))
}

fn latency(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} us"),
        1_000..1_000_000 => format!("{:.1} ms", us as f64 / 1e3),
        _ => format!("{:.1} s", us as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use tenon_host::Status;

    use super::*;

    fn usage(cpu_us: u64, generation: u32) -> ExtensionUsage {
        ExtensionUsage {
            id: "project:a".to_owned(),
            status: Status::Running,
            generation,
            pid: None,
            cpu_us,
            heap_bytes: 3 * 1024 * 1024,
            buffer_bytes: 0,
            calls: 2,
            errors: 0,
            last_latency_us: Some(1_500),
            restarts: 0,
        }
    }

    #[test]
    fn cpu_is_measured_between_samples_of_one_load() {
        let mut meter = Meter::default();
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(meter.measure_one("s", usage(1_000_000, 1), after(0)).cpu_percent, None);
        assert_eq!(meter.measure_one("s", usage(1_500_000, 1), after(2)).cpu_percent, Some(25.0));
        // Another session's extension of that name is another one, and so is another load.
        assert_eq!(meter.measure_one("t", usage(9_000_000, 1), after(3)).cpu_percent, None);
        assert_eq!(meter.measure_one("s", usage(2_000_000, 2), after(3)).cpu_percent, None);
    }

    #[test]
    fn figures_are_short() {
        let shown = [cpu_time(1_234_567), cpu_time(125_000_000), latency(12), latency(1_500)];
        assert_eq!(shown, ["1.23 s", "2:05 min", "12 us", "1.5 ms"]);
        assert_eq!(latency(2_000_000), "2.0 s");
        assert_eq!(megabytes(3 * 1024 * 1024), "3.0 MB");
    }

    #[test]
    fn every_column_has_a_value() {
        let used = Used { usage: usage(0, 1), cpu_percent: None };
        let lines = table(&[used]).lines();
        assert_eq!(lines.len(), 2);
        for part in ["project:a", "running", "3.0 MB", "1.5 ms"] {
            assert!(lines[1].contains(part), "{part} is missing in {}", lines[1]);
        }
    }
}
