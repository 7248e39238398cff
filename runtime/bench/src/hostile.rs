//! `tenon-bench hostile`: what a well-behaved extension notices of one that misbehaves.
//!
//! The extensions are those of the tests. Each has a session of its own with a bystander; times without and
//! with the attack take turns, so that noise on the machine hits both.

use std::process::ExitCode;
use std::time::Duration;
use std::time::Instant;

use serde::Serialize;
use tenon_console::error::CliError;
use tenon_console::output;
use tenon_console::output::BOLD;
use tenon_console::output::DIM;
use tenon_console::output::GREEN;
use tenon_console::output::Progress;
use tenon_console::output::RED;
use tenon_console::output::Table;
use tenon_host::Session;
use tenon_host::Status;
use tenon_host::tool::ResultType;

use crate::args::Args;
use crate::args::BenchHostile;
use crate::measured;
use crate::measured::MeasuredSession;
use crate::measured::SessionSetup;
use crate::tenon::Tenon;

/// An extension of the tests.
macro_rules! attack {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../tests/hostile/", $name, "/extension.mjs")))
    };
}

/// Those that take what they can get: processor, memory, the log.
const ATTACKS: [(&str, &str); 13] = [
    attack!("endless-loop"),
    attack!("microtask-loop"),
    attack!("async-loop"),
    attack!("catastrophic-regex"),
    attack!("array-growth"),
    attack!("map-growth"),
    attack!("string-growth"),
    attack!("promise-flood"),
    attack!("buffer-growth"),
    attack!("console-flood"),
    attack!("stdout-flood"),
    attack!("timer-flood"),
    attack!("immediate-loop"),
];

const BYSTANDER: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({ tools: [{ name: "ping", description: "x", handler: () => "pong" }] });
"#;

/// Small enough that an attack is over soon, large enough that there is something to measure.
const LIMITS: &str = "[extensions.culprit]\ncpu-ms = 500\nheap-mb = 128\nbuffer-mb = 128\n";

/// How long one round lasts without an attack, and with one that goes on after its call was answered.
const WINDOW: Duration = Duration::from_millis(400);

/// Between two calls of the bystander; without a pause they would be a load of their own.
const PAUSE: Duration = Duration::from_millis(1);

/// How many times longer a call may take during an attack.
const MOST: f64 = 3.0;

/// What was measured of one attack.
#[derive(Debug, Serialize)]
struct Row {
    attack: String,
    engine: String,
    /// Calls of the bystander without and during the attack.
    quiet_calls: usize,
    attack_calls: usize,
    quiet_p50_us: f64,
    attack_p50_us: f64,
    quiet_p99_us: f64,
    attack_p99_us: f64,
    /// How many times longer during the attack.
    p50_ratio: f64,
    p99_ratio: f64,
    /// Whether both are below the limit.
    within_limit: bool,
    /// What became of the call that was the attack, the last time.
    ended: String,
}

pub async fn run(args: &Args, tenon: &Tenon, bench: &BenchHostile) -> Result<ExitCode, CliError> {
    let wanted = |name: &str| bench.only.as_deref().is_none_or(|only| name.contains(only));
    let mut rows = Vec::new();
    for (name, source) in ATTACKS.into_iter().filter(|attack| wanted(attack.0)) {
        let _progress = Progress::start(&format!("measuring {name} ..."));
        rows.push(measure(tenon, name, source, bench.rounds.max(1)).await?);
    }
    if rows.is_empty() {
        let names = ATTACKS.map(|(name, _)| name).join(", ");
        return Err(CliError::new("no attack has such a name").hint(format!("there are: {names}")));
    }
    if args.json {
        output::json(&rows)?;
    } else {
        print(tenon, &rows);
    }
    Ok(ExitCode::SUCCESS)
}

async fn measure(tenon: &Tenon, name: &str, source: &str, rounds: usize) -> Result<Row, CliError> {
    let sources = [("bystander", BYSTANDER), ("culprit", source)];
    let sources = sources.map(|(name, source)| (name.to_owned(), source.to_owned()));
    let setup = SessionSetup {
        config: LIMITS,
        record: true,
        restart_after: Some(Duration::from_millis(10)),
        ..SessionSetup::default()
    };
    let measured = MeasuredSession::open(tenon, sources, setup).await?;
    // For compilers and caches.
    pings(&measured.session, || false).await?;
    let (mut quiet, mut during, mut ended) = (Vec::new(), Vec::new(), String::new());
    for round in 0..rounds {
        quiet.extend(pings(&measured.session, || false).await?);
        let session = measured.session.clone();
        let attack = tokio::spawn(async move {
            let result = measured::call(&session, "attack").await;
            // One that is answered goes on in the background.
            if result.as_ref().is_ok_and(|result| result.result_type == ResultType::Success) {
                tokio::time::sleep(WINDOW).await;
            }
            result
        });
        while !attack.is_finished() {
            during.extend(pings(&measured.session, || attack.is_finished()).await?);
        }
        ended = match attack.await {
            Ok(Ok(result)) if result.result_type == ResultType::Success => "it was answered".into(),
            Ok(Ok(result)) => result.error.unwrap_or(result.text_result_for_llm),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        calm(&measured, source, round).await?;
    }
    measured.end().await?;
    Ok(Row::new(tenon, name, &quiet, &during, ended))
}

/// Calls the bystander for a while, or until it is enough: microseconds of each call.
async fn pings(session: &Session, enough: impl Fn() -> bool) -> Result<Vec<f64>, CliError> {
    let mut times = Vec::new();
    let began = Instant::now();
    while began.elapsed() < WINDOW && !enough() {
        let started = Instant::now();
        let result = measured::call(session, "ping").await;
        times.push(started.elapsed().as_secs_f64() * 1e6);
        if !result.as_ref().is_ok_and(|result| result.text_result_for_llm == "pong") {
            return Err(CliError::new(format!("the bystander did not answer: {result:?}")));
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(times)
}

/// Replaces the one that misbehaves by a load that does not yet.
async fn calm(measured: &MeasuredSession, source: &str, round: usize) -> Result<(), CliError> {
    let before = measured.info("culprit").map_or(0, |info| info.generation);
    measured.write("culprit", &format!("{source}// {round}\n"))?;
    measured.session.refresh().await;
    measured::until("the culprit is loaded again", || {
        measured
            .info("culprit")
            .is_some_and(|info| info.status == Status::Running && info.generation > before)
    })
    .await
}

impl Row {
    fn new(tenon: &Tenon, name: &str, quiet: &[f64], during: &[f64], ended: String) -> Self {
        let at =
            |share: f64| (measured::percentile(quiet, share), measured::percentile(during, share));
        let ((quiet_p50_us, attack_p50_us), (quiet_p99_us, attack_p99_us)) = (at(0.5), at(0.99));
        let (p50_ratio, p99_ratio) = (attack_p50_us / quiet_p50_us, attack_p99_us / quiet_p99_us);
        Self {
            attack: name.to_owned(),
            engine: tenon.engine.name.clone(),
            quiet_calls: quiet.len(),
            attack_calls: during.len(),
            quiet_p50_us,
            attack_p50_us,
            quiet_p99_us,
            attack_p99_us,
            p50_ratio,
            p99_ratio,
            within_limit: p50_ratio <= MOST && p99_ratio <= MOST,
            ended,
        }
    }
}

fn print(tenon: &Tenon, rows: &[Row]) {
    let columns = [
        "ATTACK",
        ">CALLS",
        ">P50 us QUIET",
        ">ATTACK",
        ">RATIO",
        ">P99 us QUIET",
        ">ATTACK",
        ">RATIO",
        "VERDICT",
    ];
    let mut table = Table::new(&columns);
    let plain = anstyle::Style::new();
    for row in rows {
        let verdict =
            if row.within_limit { ("ok".to_owned(), GREEN) } else { ("slower".to_owned(), RED) };
        table.row(vec![
            (row.attack.clone(), BOLD),
            (row.attack_calls.to_string(), DIM),
            (format!("{:.0}", row.quiet_p50_us), plain),
            (format!("{:.0}", row.attack_p50_us), plain),
            (format!("{:.1}x", row.p50_ratio), plain),
            (format!("{:.0}", row.quiet_p99_us), plain),
            (format!("{:.0}", row.attack_p99_us), plain),
            (format!("{:.1}x", row.p99_ratio), plain),
            verdict,
        ]);
    }
    table.print();
    let within = rows.iter().filter(|row| row.within_limit).count();
    output::line("");
    output::line(format_args!(
        "{within} of {} attacks leave the calls of another extension within {MOST:.0} times of what they \
         take without.\n{DIM}Engine: {}. Calls of a tool of another extension in the same process, one \
         after the other.{DIM:#}",
        rows.len(),
        tenon.engine.name,
    ));
}
