//! `tenon-bench`: everything at once, each figure beside one node process for each extension and the least there can be.
//!
//! Repetitions of the sides take turns, so that noise on the machine hits all of them; ratios of one run may be
//! believed, the figures themselves mean little elsewhere.

pub mod calls;
pub mod compute;
mod events;
mod growth;
mod markdown;
mod page;
mod ping_pong;
mod reload;
mod report;
mod sessions;
mod setting;
mod start;
mod turn;

use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use tenon_console::error::CliError;
use tenon_console::home;
use tenon_console::output;
use tenon_console::output::BOLD;
use tenon_console::output::Bar;
use tenon_console::output::DIM;
use tenon_console::output::GREEN;
use tenon_console::output::Progress;
use tenon_console::output::Table;
use tenon_console::output::YELLOW;

use self::report::Bound;
use self::report::Figure;
use self::report::Goal;
use self::report::Growth;
use self::report::Report;
use self::report::Side;
use self::report::Topic;
use crate::args::Args;
use crate::args::BenchSuite;
use crate::args::Chapter;
use crate::in_process;
use crate::node_host::NodeHost;
use crate::tenon::Tenon;

const CHAPTERS: [Chapter; 8] = [
    Chapter::Start,
    Chapter::Sessions,
    Chapter::Call,
    Chapter::Events,
    Chapter::Reload,
    Chapter::Turn,
    Chapter::Compute,
    Chapter::Growth,
];

pub use self::ping_pong::pong;

/// What the chapters need to know.
pub struct Plan<'a> {
    tenon: &'a Tenon,
    /// What measures threads; none if they are not measured.
    in_process: Option<PathBuf>,
    node: Option<NodeHost>,
    repetitions: usize,
    most: usize,
    bar: &'a mut Bar,
}

impl Plan<'_> {
    /// The next step begins.
    fn step(&mut self, text: &str) {
        self.bar.step(text);
    }
}

pub async fn run(args: &Args, tenon: &Tenon, bench: &BenchSuite) -> Result<ExitCode, CliError> {
    if let Some(size) = bench.point {
        output::json(&growth::point(tenon, size).await?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(folder) = &bench.save {
        // Before minutes are spent.
        std::fs::create_dir_all(folder)
            .map_err(|error| CliError::new(format!("{}: {error}", folder.display())))?;
    }
    let report = measure(args, tenon, bench).await?;
    if let Some(folder) = &bench.save {
        save(&report, folder)?;
    }
    if args.json {
        output::json(&report)?;
    } else {
        print(&report, bench.save.as_deref());
    }
    Ok(ExitCode::SUCCESS)
}

async fn measure(args: &Args, tenon: &Tenon, bench: &BenchSuite) -> Result<Report, CliError> {
    let began = Instant::now();
    let mut missing = Vec::new();
    let node = match node(args, bench) {
        Ok(node) => Some(node),
        Err(error) => {
            missing.push(format!("node processes: {}", error.message()));
            None
        }
    };
    let in_process = match in_process::find(args, tenon) {
        Ok(program) => Some(program),
        Err(error) => {
            missing.push(format!("threads in process and the bare engine: {}", error.message()));
            None
        }
    };
    let mut setting = setting::setting(tenon, node.as_ref(), bench.repetitions);
    let chapters: Vec<Chapter> = CHAPTERS
        .into_iter()
        .filter(|chapter| bench.only.is_empty() || bench.only.contains(chapter))
        .collect();
    let repetitions = bench.repetitions.max(1);
    let steps = |chapter: &Chapter| match chapter {
        Chapter::Turn => 1,
        Chapter::Growth => growth::steps(bench.most, node.is_some()),
        _ => repetitions,
    };
    let mut bar = Bar::new(chapters.iter().map(steps).sum());
    let mut plan = Plan { tenon, in_process, node, repetitions, most: bench.most, bar: &mut bar };
    let (mut figures, mut growth) = (Vec::new(), Vec::new());
    for chapter in chapters {
        match chapter {
            Chapter::Start => figures.extend(start::measure(&mut plan).await?),
            Chapter::Call => figures.extend(calls::measure(&mut plan).await?),
            Chapter::Events => figures.extend(events::measure(&mut plan).await?),
            Chapter::Reload => figures.extend(reload::measure(&mut plan).await?),
            Chapter::Turn => figures.extend(turn::measure(&mut plan).await?),
            Chapter::Compute => figures.extend(compute::measure(&mut plan).await?),
            Chapter::Sessions => figures.extend(sessions::measure(&mut plan).await?),
            Chapter::Growth => growth = growth::measure(&mut plan).await?,
        }
    }
    report::compare(&mut figures);
    setting.seconds = began.elapsed().as_secs_f64();
    let goals = goals(&figures, &setting.engine);
    let bounds = call_bound(&figures).chain(growth::bounds(&growth, &setting.engine)).collect();
    Ok(Report { setting, goals, bounds, figures, growth, missing })
}

fn node(args: &Args, bench: &BenchSuite) -> Result<NodeHost, CliError> {
    if bench.no_node {
        return Err(CliError::new("left out with --no-node"));
    }
    let _progress = Progress::start("looking for node and the SDK ...");
    NodeHost::find(bench.sdk.as_deref(), &home::of_tenon(args.home.as_deref())?)
}

/// What was aimed at: times less than a node process.
fn goals(figures: &[Figure], engine: &str) -> Vec<Goal> {
    let (cpu, memory) = if engine == "quickjs" { (15.0, 2.5) } else { (25.0, 8.0) };
    let v8_only = [
        ("private memory after 1,000 calls", start::CALLED, start::TENON, 3.0),
        ("PSS and page tables, share of each", start::WHOLE, start::TENON, 6.0),
        ("PSS and page tables, one more", start::ONE_MORE, start::TENON, 6.0),
    ];
    let v8_only = v8_only.into_iter().filter(|_| engine != "quickjs");
    let goals = [
        ("CPU until ready", start::CPU, start::TENON, cpu),
        ("private memory, idle", start::MEMORY, start::TENON, memory),
    ];
    let others = [
        ("reload of one among ten", reload::ONE, reload::SAVED, 20.0),
        ("event to an idle subscriber", events::IDLE, events::TENON, 1.0),
        ("event under load", events::LATE, events::TENON, 1.0),
    ];
    let goal = |(name, (chapter, topic, _), case, goal): (_, Topic, &str, f64)| {
        let of_topic = || figures.iter().filter(|it| (it.chapter, it.topic) == (chapter, topic));
        let node = of_topic().find(|figure| figure.side == Side::Node)?;
        let ours = of_topic().find(|figure| figure.case == case)?;
        let ratio = ours.times_less?;
        let cases = format!("{} beside {}", ours.case, node.case);
        Some(Goal { name, cases, ratio, goal, reached: ratio >= goal })
    };
    goals.into_iter().chain(v8_only).chain(others).filter_map(goal).collect()
}

/// How many times as long as the ping-pong a tool call may take.
const CALL_BOUND: f64 = 1.5;

fn call_bound(figures: &[Figure]) -> impl Iterator<Item = Bound> {
    let is_call = |it: &&Figure| (it.topic, it.case.as_str()) == (calls::CALL.1, calls::THROUGH);
    let times = figures.iter().find(is_call).and_then(|figure| figure.times_floor);
    let name = "tool call beside a ping-pong of the same bytes";
    times.map(|times| Bound::new(name, times, "times", CALL_BOUND)).into_iter()
}

fn save(report: &Report, folder: &Path) -> Result<(), CliError> {
    let files = [
        ("bench.json", serde_json::to_string_pretty(report)? + "\n"),
        ("bench.html", page::html(report)),
        ("bench.svg", page::picture(report)),
        ("bench.md", markdown::markdown(report)),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text)
            .map_err(|error| CliError::new(format!("{}: {error}", path.display())))?;
    }
    Ok(())
}

fn print(report: &Report, saved: Option<&Path>) {
    print_figures(&report.figures);
    report.growth.iter().for_each(print_growth);
    let plain = anstyle::Style::new();
    if !report.goals.is_empty() {
        let mut table = Table::new(&["GOAL", ">TIMES LESS", ">AIMED AT", ""]);
        for goal in &report.goals {
            let (style, verdict) =
                if goal.reached { (GREEN, "reached") } else { (YELLOW, "not reached") };
            table.row(vec![
                (goal.name.to_owned(), BOLD),
                (format!("{:.1}", goal.ratio), plain),
                (goal.goal.to_string(), DIM),
                (verdict.to_owned(), style),
            ]);
        }
        table.print();
        output::line("");
    }
    if !report.bounds.is_empty() {
        let mut table = Table::new(&["BOUND", ">MEASURED", ">AT MOST", "", ""]);
        for bound in &report.bounds {
            let (style, verdict) = if bound.kept { (GREEN, "kept") } else { (YELLOW, "not kept") };
            table.row(vec![
                (bound.name.clone(), BOLD),
                (number(bound.value), plain),
                (bound.bound.to_string(), DIM),
                (bound.unit.to_owned(), DIM),
                (verdict.to_owned(), style),
            ]);
        }
        table.print();
        output::line("");
    }
    for missing in &report.missing {
        output::line(format_args!("{YELLOW}not measured{YELLOW:#}: {missing}"));
    }
    let setting = &report.setting;
    let node = setting.node.as_deref().map(|node| format!(", node {node}")).unwrap_or_default();
    output::line(format_args!(
        "{DIM}{} {}{node}; {}, {} cores; {:.0} s{DIM:#}",
        setting.engine, setting.engine_version, setting.processor, setting.cores, setting.seconds
    ));
    if let Some(folder) = saved {
        let page = folder.join("bench.html");
        output::line(format_args!("{DIM}to look at: {}{DIM:#}", page.display()));
    }
}

fn print_figures(figures: &[Figure]) {
    if figures.is_empty() {
        return;
    }
    let columns = [
        "TOPIC",
        "CASE",
        ">MEDIAN",
        "",
        ">P95",
        ">SPREAD",
        ">SAMPLES",
        ">TIMES LESS THAN NODE",
        ">TIMES THE FLOOR",
    ];
    let mut table = Table::new(&columns);
    let plain = anstyle::Style::new();
    let mut last = "";
    for figure in figures {
        let topic = if figure.topic == last { "" } else { figure.topic };
        last = figure.topic;
        let times = match figure.times_less {
            Some(_) if figure.side == Side::Node => "1".to_owned(),
            Some(times) => format!("{times:.1}"),
            None => "-".to_owned(),
        };
        let [least, most] = figure.spread.map(number);
        table.row(vec![
            (topic.to_owned(), BOLD),
            (figure.case.clone(), if figure.side == Side::Tenon { plain } else { DIM }),
            (number(figure.median), plain),
            (figure.unit.to_owned(), DIM),
            (number(figure.p95), plain),
            (format!("{least} to {most}"), DIM),
            (
                format!("{} x {}", figure.repetitions, figure.samples / figure.repetitions.max(1)),
                DIM,
            ),
            (times, if figure.side == Side::Tenon { BOLD } else { DIM }),
            (figure.times_floor.map_or("-".to_owned(), |times| format!("{times:.1}")), DIM),
        ]);
    }
    table.print();
    output::line("");
}

fn print_growth(growth: &Growth) {
    let of = growth.of.to_uppercase();
    let columns = [
        of.as_str(),
        ">READY s",
        ">CPU ms EACH",
        ">MEMORY MB",
        ">EACH",
        ">PRIVATE",
        ">ZYGOTE",
        ">SESSION",
        ">THREADS",
        ">FILES",
        ">PROCESSES",
        ">ANSWERED",
        ">CALL us",
    ];
    let mut table = Table::new(&columns);
    let plain = anstyle::Style::new();
    let who = if growth.side == Side::Node { "node" } else { "Tenon" };
    let or_none = |value: Option<f64>| value.map_or("-".to_owned(), number);
    for point in &growth.points {
        table.row(vec![
            (format!("{} in {who}", point.count), BOLD),
            (number(point.ready_s), plain),
            (number(point.cpu_ms_each), plain),
            (number(point.memory_mb), plain),
            (number(point.memory_mb_each), plain),
            (number(point.private_mb), plain),
            (or_none(point.zygote_mb), DIM),
            (or_none(point.session_mb), DIM),
            (point.threads.to_string(), plain),
            (point.files.to_string(), plain),
            (point.processes.to_string(), plain),
            (format!("{} of {}", point.answered, point.extensions), plain),
            (number(point.call_us), plain),
        ]);
    }
    table.print();
    output::line(format_args!(
        "{DIM}from the second row to the last, one more costs {:+.0} % CPU and {:+.0} % memory{DIM:#}",
        growth.cpu_slope_percent, growth.memory_slope_percent
    ));
    output::line("");
}

/// Three digits that matter.
fn number(value: f64) -> String {
    match value.abs() {
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
