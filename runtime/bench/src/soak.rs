//! `tenon-bench soak`: everything at once for a long time, with faults; then what was lost, and what is left.
//!
//! One session with many extensions is called all the time, hears events, and has its files saved anew. Beside
//! it agents come and go, half of them killed. Extensions misbehave in turn, and in the first fifth of the time
//! the zygote is killed now and then, and every extension with it. After that it lives on, so that its memory can be
//! followed.

mod agents;
mod faults;
mod verdict;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use tenon_console::error::CliError;
use tenon_console::output;
use tenon_console::output::Bar;
use tokio::task::JoinError;
use tokio::task::JoinSet;

use self::agents::Agents;
use self::faults::Faults;
use self::verdict::Report;
use self::verdict::Sample;
use self::verdict::Settled;
use crate::args::Args;
use crate::args::BenchSoak;
use crate::events;
use crate::load::Load;
use crate::load::ResourceUsage;
use crate::measured;
use crate::measured::MeasuredSession;
use crate::measured::SessionSetup;
use crate::process;
use crate::tenon::Tenon;

/// Of the whole time, the part in which the zygote is killed.
const KILLING: f64 = 0.2;

/// How far apart such kills are, of the whole time.
const BETWEEN_KILLS: f64 = 0.05;

/// Events per second.
const RATE: u64 = 500;

/// Pauses between saves of a file, and between faults.
const BETWEEN_SAVES: Duration = Duration::from_millis(300);
const BETWEEN_FAULTS: Duration = Duration::from_secs(4);

/// Samples of memory, threads and files over the whole time.
const SAMPLES: u32 = 60;

/// The least time that soaking makes sense for: faults need theirs.
const LEAST_SECONDS: u64 = 20;

/// Extensions that misbehave end soon, and all have time to start on a machine that is busy with them.
const CONFIG: &str = "[extensions.\"*\"]\nstart-deadline-s = 60\n\
    [extensions.\"folder:culprit\"]\ncpu-ms = 1500\nheap-mb = 96\n";

/// How often things happened.
#[derive(Debug, Default)]
struct Counts {
    events: AtomicU64,
    reloads: AtomicU64,
    kills: AtomicU64,
}

pub async fn run(args: &Args, tenon: &Tenon, bench: &BenchSoak) -> Result<ExitCode, CliError> {
    let report = soak(tenon, bench).await?;
    if args.json {
        output::json(&report)?;
    } else {
        verdict::print(&report);
    }
    Ok(if report.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// An extension with a tool, hooks and an ear for events. The file is saved with another answer.
fn source(number: usize, answer: u64) -> String {
    // Hooks of every tenth are asked about every call of every other.
    let hooks = if number.is_multiple_of(10) {
        "hooks: { onPreToolUse: () => {}, onPostToolUse: () => {} },"
    } else {
        ""
    };
    format!(
        "import {{ joinSession }} from \"@github/copilot-sdk/extension\";\n\
         import fs from \"node:fs\";\nimport path from \"node:path\";\n\
         let heard = 0;\n\
         const session = await joinSession({{ {hooks} tools: [{{ name: \"{}\", description: \"x\",\n\
           handler: () => `{answer}` }}] }});\n\
         session.on(\"bench.tick\", () => {{ heard += 1; }});\n",
        tool(number)
    )
}

fn tool(number: usize) -> String {
    format!("tool_{number}")
}

fn name(number: usize) -> String {
    format!("extension-{number}")
}

async fn soak(tenon: &Tenon, bench: &BenchSoak) -> Result<Report, CliError> {
    let (count, seconds) = (bench.extensions.max(2), bench.seconds.max(LEAST_SECONDS));
    let sources = (0..count).map(|number| (name(number), source(number, 0)));
    let culprit = (faults::NAME.to_owned(), faults::SOURCE.to_owned());
    let setup = SessionSetup {
        config: CONFIG,
        watch: true,
        record: true,
        restart_after: Some(Duration::from_millis(200)),
        ..SessionSetup::default()
    };
    let measured = MeasuredSession::open(tenon, sources.chain([culprit]), setup).await?;
    let tools: Vec<String> = (0..count).map(tool).collect();
    let load = Load::start(&measured.session, &tools);
    let work = Arc::new(Work {
        measured,
        counts: Counts::default(),
        faults: Faults::default(),
        agents: Agents::new(tenon)?,
        extensions: count,
        began: Instant::now(),
        length: Duration::from_secs(seconds),
    });
    let samples = work.clone().run(&load).await?;
    let Work { measured, counts, faults, agents, began, .. } =
        Arc::into_inner(work).ok_or_else(|| CliError::new("something still works"))?;
    let calls = load.stop().await?;
    let settled = settle(&measured, &samples).await;
    let is_back =
        measured::until("all extensions run", || measured.all_run(count + 1, &[])).await.is_ok();
    let pids = measured.isolates.pids();
    measured.end().await?;
    let processes_left =
        agents.left().await + pids.iter().filter(|&&pid| measured::is_alive(pid)).count();
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let engine = &tenon.engine;
    Ok(Report::new(Settled {
        engine: format!("{} {}", engine.name, engine.version),
        extensions: count,
        seconds: began.elapsed().as_secs_f64(),
        calls,
        events: read(&counts.events),
        reloads: read(&counts.reloads),
        zygote_kills: read(&counts.kills),
        faults: faults.counts(),
        agents: agents.ended(),
        agents_killed: agents.killed(),
        agents_failed: agents.failures(),
        samples,
        after: settled,
        is_back,
        processes_left,
    }))
}

/// What is done all at once, for how long.
struct Work {
    measured: MeasuredSession,
    counts: Counts,
    faults: Faults,
    agents: Agents,
    extensions: usize,
    began: Instant,
    length: Duration,
}

impl Work {
    /// Does all of it until the time is over, or something fails, and looks at the processes meanwhile.
    async fn run(self: Arc<Self>, load: &Load) -> Result<Vec<Sample>, CliError> {
        let mut tasks = JoinSet::new();
        let work = [(); 5].map(|()| self.clone());
        let [emits, saves, kills, misbehaves, starts] = work;
        tasks.spawn(async move { emits.emit().await });
        tasks.spawn(async move { saves.save().await });
        tasks.spawn(async move { kills.kill().await });
        tasks.spawn(async move { misbehaves.misbehave().await });
        tasks.spawn(async move { starts.agents.come_and_go(starts.began, starts.length).await });
        let mut bar = Bar::new(SAMPLES as usize);
        let mut samples = Vec::new();
        while self.goes_on() {
            bar.step(&format!(
                "{} calls, {} reloads, {} faults, {} agents",
                load.sent(),
                self.counts.reloads.load(Ordering::Relaxed),
                self.faults.counts().values().sum::<u64>(),
                self.agents.ended()
            ));
            tokio::select! {
                () = tokio::time::sleep(self.length / SAMPLES) => {
                    samples.push(sample(&self.measured, self.began));
                }
                // What ends before its time has failed, or its time is the first part.
                Some(done) = tasks.join_next() => finished(done)?,
            }
        }
        while let Some(done) = tasks.join_next().await {
            finished(done)?;
        }
        Ok(samples)
    }

    fn goes_on(&self) -> bool {
        self.began.elapsed() < self.length
    }

    async fn emit(&self) -> Result<(), CliError> {
        while self.goes_on() {
            let sent = events::emit(&self.measured.session, RATE, Duration::from_secs(1)).await;
            self.counts.events.fetch_add(sent, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Saves one extension after the other, and waits until the new version serves.
    async fn save(&self) -> Result<(), CliError> {
        let mut number = 0;
        while self.goes_on() {
            let extension = number % self.extensions;
            let answer = number as u64 + 1;
            self.measured.write(&name(extension), &source(extension, answer))?;
            measured::until_async(&format!("save {number} serves"), || async {
                let result = measured::call(&self.measured.session, &tool(extension)).await;
                result.is_ok_and(|result| result.text_result_for_llm == answer.to_string())
            })
            .await?;
            self.counts.reloads.fetch_add(1, Ordering::Relaxed);
            number += 1;
            tokio::time::sleep(BETWEEN_SAVES).await;
        }
        Ok(())
    }

    /// Kills the zygote in the first part of the time, by two signals in turn.
    async fn kill(&self) -> Result<(), CliError> {
        while self.began.elapsed() < self.length.mul_f64(KILLING) {
            tokio::time::sleep(self.length.mul_f64(BETWEEN_KILLS)).await;
            let number = self.counts.kills.fetch_add(1, Ordering::Relaxed);
            let signal = if number.is_multiple_of(2) { libc::SIGSEGV } else { libc::SIGKILL };
            let before = self.measured.kill_zygote(signal).await?;
            // The culprit may be about to be started again for a fault of its own.
            let are_back = || self.measured.running(&before) >= self.extensions;
            measured::until("extensions are back", are_back).await?;
        }
        Ok(())
    }

    async fn misbehave(&self) -> Result<(), CliError> {
        while self.goes_on() {
            self.faults.next(&self.measured).await?;
            tokio::time::sleep(BETWEEN_FAULTS).await;
        }
        Ok(())
    }
}

/// What came of a task.
fn finished(done: Result<Result<(), CliError>, JoinError>) -> Result<(), CliError> {
    done.map_err(|error| CliError::new(error.to_string()))?
}

fn sample(measured: &MeasuredSession, began: Instant) -> Sample {
    // The zygote is the first.
    let pids = measured.isolates.pids();
    let (zygote, extensions) = pids.split_at(pids.len().min(1));
    let session = std::process::id();
    Sample {
        at_s: began.elapsed().as_secs_f64(),
        session: ResourceUsage::of(session),
        zygote: ResourceUsage::of_all(zygote),
        extensions: ResourceUsage::of_all(extensions),
        processes: extensions.len(),
        zombies: process::zombies(&[zygote, &[session]].concat()),
    }
}

/// Waits until all processes together hold no more than they did in the middle, or for some time.
async fn settle(measured: &MeasuredSession, samples: &[Sample]) -> Sample {
    let began = Instant::now();
    let usual = verdict::usually_held(samples);
    loop {
        let now = sample(measured, began);
        let is_settled =
            now.zombies == 0 && usual.as_ref().is_none_or(|before| now.is_like(before));
        if (is_settled && began.elapsed() > Duration::from_secs(3))
            || began.elapsed() > verdict::SETTLE
        {
            return now;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
