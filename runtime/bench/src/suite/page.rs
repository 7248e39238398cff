//! The page that shows what the suite found out, and a picture of it for a README.
//!
//! It is for somebody who does not know Tenon and wants to know within five minutes whether to
//! believe its figures. So each of them stands beside its baseline, with how far it spread and how
//! often it was measured, and what was not measured is said as well. A page is one file without
//! scripts that asks the network for nothing: it can be kept, sent and opened anywhere.

mod chart;
mod picture;
#[cfg(test)]
pub mod tests;
pub mod text;

use std::fmt::Write;

pub use self::picture::picture;
use self::text::NOTHING;
use self::text::amount;
use self::text::capital;
use self::text::count;
use self::text::distinct;
use self::text::escape;
use self::text::number;
use self::text::unit;
use super::report::Bound;
use super::report::Figure;
use super::report::Goal;
use super::report::Growth;
use super::report::Point;
use super::report::Report;
use super::report::Setting;
use super::report::Side;

/// A slope below this many percent is called none.
const FLAT_PERCENT: f64 = 0.5;

/// What page and picture are called.
const TITLE: &str = "Tenon beside one Node process per extension";

/// What is said of a goal that was.
const REACHED: &str = "reached";

/// The command that makes them.
const COMMAND: &str = "make bench";

/// What each chapter is called, and what it is about, in their order.
const CHAPTERS: [(&str, &str, &str); 9] = [
    (
        "start",
        "Starting",
        "Until an extension is ready, and what it takes while it is idle and after it has worked.",
    ),
    ("zygote", "The zygote", "What it takes once, before the first extension, and then holds."),
    ("sessions", "Sessions", "20 sessions, one after the other, that share a zygote."),
    ("call", "Calling a tool", "From the call of a tool until its answer."),
    ("hooks", "Hooks", "A tool call through the hooks of several extensions."),
    ("events", "Events", "Events to several extensions: how late they are, and what each costs."),
    ("reload", "Reloading", "A changed extension among ten: until its new tool can be called."),
    ("turn", "A long turn", "Whether the end of a long turn is as quick as its beginning."),
    ("compute", "Computing", "A script that only computes, by its own clock."),
];

/// Characters of small text that have room in a line on a phone.
const PHONE_CHARACTERS: usize = 52;

/// The height of a line chart's plot.
const PLOT_HEIGHT: f64 = 180.0;

/// Colours by what they are for. Blue and orange are told apart by almost everybody.
type Palette = [(&'static str, &'static str); 11];

const LIGHT: Palette = [
    ("ground", "#ffffff"),
    ("ink", "#1c2330"),
    ("soft", "#5a6475"),
    ("track", "#f0f2f6"),
    ("grid", "#d3d9e2"),
    ("node", "#d9730d"),
    ("tenon", "#2463d8"),
    ("floor", "#8b96a8"),
    ("good", "#12733a"),
    ("bad", "#b3261e"),
    ("code", "#f0f2f6"),
];

const DARK: Palette = [
    ("ground", "#11151c"),
    ("ink", "#e4e8ef"),
    ("soft", "#9aa5b6"),
    ("track", "#1e2530"),
    ("grid", "#384252"),
    ("node", "#f0963c"),
    ("tenon", "#6ba1ff"),
    ("floor", "#78859a"),
    ("good", "#5fcf8a"),
    ("bad", "#ff8a80"),
    ("code", "#1e2530"),
];

/// How the page looks, beside its charts.
const STYLE: &str = include_str!("page/page.css");

/// The whole report as one HTML file that needs nothing else.
pub fn html(report: &Report) -> String {
    let mut page = head();
    headline(&mut page, report);
    reading(&mut page);
    for name in chapters(&report.figures) {
        chapter(&mut page, name, &report.figures);
    }
    growth(&mut page, &report.growth);
    bounds(&mut page, &report.bounds);
    missing(&mut page, &report.missing);
    setting(&mut page, &report.setting);
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

/// The start of the file, up to the contents.
fn head() -> String {
    let variables = |palette: &Palette| {
        palette
            .iter()
            .fold(String::new(), |all, (name, colour)| all + format!("--{name}:{colour};").as_str())
    };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{TITLE}</title>\n<style>\n\
         :root{{color-scheme:light dark;{}}}\n\
         @media (prefers-color-scheme:dark){{:root{{{}}}}}\n\
         {STYLE}{}</style>\n</head>\n<body>\n<main>\n",
        variables(&LIGHT),
        variables(&DARK),
        chart::RULES,
    )
}

/// What came out, where, and the goals.
fn headline(page: &mut String, report: &Report) {
    let setting = &report.setting;
    let node = match (&setting.node, &setting.sdk) {
        (Some(node), Some(sdk)) => format!("node {node} with the public SDK {sdk}"),
        (Some(node), None) => format!("node {node}"),
        (None, _) => "nothing, because node was not there".to_owned(),
    };
    let _ = write!(
        page,
        "<h1>{TITLE}</h1>\n<p class=\"lead\"><strong>{}</strong> Measured: Tenon {} on {} \
         beside {}, on {} with {} and {} GB, on {}.</p>\n",
        verdict(&report.goals),
        escape(&setting.tenon),
        escape(&engine(setting)),
        escape(&node),
        escape(&setting.processor),
        cores(setting),
        number(setting.memory_gb),
        escape(day(setting)),
    );
    if report.goals.is_empty() {
        return;
    }
    let label = report.goals.iter().fold(String::new(), |label, goal| {
        let word = outcome(goal);
        let (ratio, aim) = (compared(goal.ratio), number(goal.goal));
        label + format!("{}: {ratio}, goal {aim}, {word}. ", goal.name).as_str()
    });
    let chart = chart::goals(&report.goals, PHONE_CHARACTERS).inline(label.trim_end());
    let _ = write!(page, "<div class=\"goals\">\n{chart}</div>\n");
}

/// How many goals were reached.
fn verdict(goals: &[Goal]) -> String {
    let reached = goals.iter().filter(|goal| outcome(goal) == REACHED).count();
    match (reached, goals.len()) {
        (_, 0) => String::new(),
        (reached, all) if reached == all => format!("All {all} goals are reached."),
        (0, all) => format!("None of {all} goals is reached."),
        (reached, all) => format!("{reached} of {all} goals are reached."),
    }
}

/// What became of a goal; a ratio to nothing is none.
fn outcome(goal: &Goal) -> &'static str {
    match (goal.ratio.is_finite(), goal.reached) {
        (false, _) => "not measured",
        (true, true) => REACHED,
        (true, false) => "not reached",
    }
}

/// What bars and colours mean.
fn reading(page: &mut String) {
    let sides = [
        (
            Side::Node,
            "one node process for each extension, with the public SDK. The first of these is the \
             baseline.",
        ),
        (Side::Tenon, "this program."),
        (
            Side::Floor,
            "the least there can be: an instance of the same engine and nothing else, or two processes that \
             pass the same bytes to and fro.",
        ),
    ];
    let sides = sides.iter().fold(String::new(), |items, (side, what)| {
        let (key, name) = (key(*side), name(*side));
        items + format!("<li class=\"keyed\">{key}<strong>{name}</strong>: {what}</li>\n").as_str()
    });
    let _ = write!(
        page,
        "<section>\n<h2>How to read this</h2>\n<ul class=\"plain\">\n{sides}</ul>\n\
         <p>A bar is the median of all samples, and shorter is better; only in the chart above, \
         longer is better. The thin line ends at the p95: 95 of 100 samples are below it. The \
         cases of a chart were measured in turns, so that whatever else the machine did met all of \
         them; the table says how many times over. The spread is the least and the greatest median \
         of a repetition: the closer they are, the surer is the figure.</p>\n</section>\n"
    );
}

/// Those that have figures: the known ones in their order, then whatever else there is.
fn chapters(figures: &[Figure]) -> Vec<&'static str> {
    let there = |name: &str| figures.iter().any(|figure| figure.chapter == name);
    let known = CHAPTERS.iter().map(|(name, ..)| *name).filter(|name| there(name));
    distinct(known.chain(figures.iter().map(|figure| figure.chapter)))
}

fn chapter(page: &mut String, name: &str, figures: &[Figure]) {
    let known = CHAPTERS.iter().find(|(known, ..)| *known == name);
    let (title, about) = known.map_or((name, ""), |(_, title, about)| (title, about));
    let _ = write!(
        page,
        "<section id=\"{}\">\n<h2>{}</h2>\n<p class=\"soft\">{about}</p>\n",
        escape(name),
        escape(title),
    );
    let of_chapter: Vec<&Figure> = figures.iter().filter(|it| it.chapter == name).collect();
    for title in distinct(of_chapter.iter().map(|figure| figure.topic)) {
        let of_topic: Vec<&Figure> =
            of_chapter.iter().copied().filter(|figure| figure.topic == title).collect();
        topic(page, title, &of_topic);
    }
    page.push_str("</section>\n");
}

/// What is compared: a chart, and the table beside it.
fn topic(page: &mut String, title: &str, figures: &[&Figure]) {
    let in_unit = unit(figures.first().map_or("", |figure| figure.unit));
    let chart = chart::bars(figures).inline(&format!("{title}: the table has its figures"));
    let baseline = figures.iter().position(|figure| figure.side == Side::Node);
    let rows = figures.iter().enumerate().fold(String::new(), |rows, (place, figure)| {
        let ratio = figure.times_less.unwrap_or(f64::NAN);
        let cells = [
            number(figure.median),
            number(figure.p95),
            spread(figure.spread),
            times(figure.repetitions, figure.samples),
            if baseline == Some(place) { "baseline".to_owned() } else { less(ratio) },
            number(figure.times_floor.unwrap_or(f64::NAN)),
        ];
        rows + row(figure.side, &figure.case, &cells).as_str()
    });
    let columns = [
        "case",
        &format!("median, {in_unit}"),
        &format!("p95, {in_unit}"),
        &format!("spread, {in_unit}"),
        "repetitions × samples",
        "times less",
        "times the floor",
    ];
    let _ = write!(
        page,
        "<h3>{}</h3>\n<div class=\"pair\">\n<div>\n{chart}</div>\n{}</div>\n",
        escape(&capital(title)),
        table("figures", &columns, &rows),
    );
}

/// A table that can be moved to the side where it is wider than the page.
fn table(class: &str, columns: &[&str], rows: &str) -> String {
    let heads = columns.iter().fold(String::new(), |heads, column| {
        heads + format!("<th scope=\"col\">{}</th>", escape(column)).as_str()
    });
    format!(
        "<div class=\"wide\">\n<table class=\"{class}\">\n<thead><tr>{heads}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n</div>\n"
    )
}

/// What is of a side, and its figures.
fn row(side: Side, case: &str, cells: &[String]) -> String {
    let (key, case) = (key(side), escape(case));
    let cells = cells
        .iter()
        .fold(String::new(), |cells, cell| cells + format!("<td>{}</td>", escape(cell)).as_str());
    format!("<tr><th class=\"keyed\" scope=\"row\">{key}{case}</th>{cells}</tr>\n")
}

fn spread([least, most]: [f64; 2]) -> String {
    if least.is_finite() || most.is_finite() {
        format!("{} to {}", number(least), number(most))
    } else {
        NOTHING.to_owned()
    }
}

/// Repetitions and the samples of each; all samples, if they are not the same number in each.
fn times(repetitions: usize, samples: usize) -> String {
    match samples.checked_rem(repetitions) {
        None => NOTHING.to_owned(),
        Some(0) => format!("{} × {}", count(repetitions), count(samples / repetitions)),
        Some(_) => format!("{}, {} in all", count(repetitions), count(samples)),
    }
}

/// How many times less a case is than the baseline, for a column that is named so.
fn less(ratio: f64) -> String {
    more(ratio).unwrap_or_else(|| number(ratio))
}

/// The same where no column says what it is.
fn compared(ratio: f64) -> String {
    more(ratio).unwrap_or_else(|| amount(ratio, "times less"))
}

/// What is more, in words: nobody reads "0.13 times less" as more.
fn more(ratio: f64) -> Option<String> {
    let times = number(1.0 / ratio);
    (ratio > 0.0 && ratio < 1.0 && times != "1").then(|| format!("{times} times more"))
}

/// How costs grow, all sides of the same thing together.
fn growth(page: &mut String, growth: &[Growth]) {
    if growth.is_empty() {
        return;
    }
    page.push_str(
        "<section id=\"growth\">\n<h2>Growth</h2>\n<p class=\"soft\">What each costs when there \
         are many of them at once: CPU until all are ready, and memory when they are idle, the sum of \
         PSS and page tables of the zygote and all extensions, both for each extension. A flat line means that one more \
         costs as much as the one before.</p>\n",
    );
    for of in distinct(growth.iter().map(|growth| growth.of)) {
        let sides: Vec<&Growth> = growth.iter().filter(|growth| growth.of == of).collect();
        growth_of(page, of, &sides);
    }
    page.push_str("</section>\n");
}

fn growth_of(page: &mut String, of: &str, sides: &[&Growth]) {
    let chart = |title: &str, pick: fn(&Point) -> f64| {
        let label = format!("{title} by the number of {of}: the table has its figures");
        let chart = chart::lines((title, of), sides, pick, PLOT_HEIGHT).inline(&label);
        format!("<div>\n{chart}</div>\n")
    };
    let sentences: Vec<String> = sides.iter().map(|growth| slopes(growth)).collect();
    let rows = sides
        .iter()
        .flat_map(|growth| growth.points.iter().map(|point| point_row(growth.side, point)))
        .collect::<String>();
    let columns = [
        of,
        "ready, s",
        "CPU each, ms",
        "memory, MB",
        "each, MB",
        "private, MB",
        "zygote, MB",
        "session, MB",
        "threads",
        "files",
        "processes",
        "answered",
        "call, µs",
    ];
    let _ = write!(
        page,
        "<h3>Number of {}</h3>\n<div class=\"pair halves\">\n{}{}</div>\n<p>{}</p>\n{}",
        escape(of),
        chart("CPU per extension, ms", |point| point.cpu_ms_each),
        chart("Memory per extension, MB", |point| point.memory_mb_each),
        escape(&sentences.join(" ")),
        table("growth", &columns, &rows),
    );
}

fn point_row(side: Side, point: &Point) -> String {
    let cells = [
        number(point.ready_s),
        number(point.cpu_ms_each),
        number(point.memory_mb),
        number(point.memory_mb_each),
        number(point.private_mb),
        number(point.zygote_mb.unwrap_or(f64::NAN)),
        number(point.session_mb.unwrap_or(f64::NAN)),
        count(point.threads),
        count(point.files),
        count(point.processes),
        format!("{} of {}", count(point.answered), count(point.extensions)),
        number(point.call_us),
    ];
    row(side, &format!("{}, {}", name(side), count(point.count)), &cells)
}

/// How one side's costs change from the second point to the last, as a sentence.
fn slopes(growth: &Growth) -> String {
    let name = name(growth.side);
    let (Some(second), Some(last), 3..) =
        (growth.points.get(1), growth.points.last(), growth.points.len())
    else {
        return format!("{name}: too few points for a slope.");
    };
    format!(
        "{name}, from {} to {} {}: CPU per extension {}, memory per extension {}.",
        count(second.count),
        count(last.count),
        growth.of,
        slope(growth.cpu_slope_percent),
        slope(growth.memory_slope_percent),
    )
}

fn slope(percent: f64) -> String {
    if !percent.is_finite() {
        "is not known".to_owned()
    } else if percent.abs() < FLAT_PERCENT {
        "stays the same".to_owned()
    } else {
        let verb = if percent > 0.0 { "grows" } else { "falls" };
        format!("{verb} by {} percent", number(percent.abs().round()))
    }
}

/// What must not be more than so much, and is or is not.
fn bounds(page: &mut String, bounds: &[Bound]) {
    if bounds.is_empty() {
        return;
    }
    let rows = bounds.iter().fold(String::new(), |rows, bound| {
        let verdict = match (bound.value.is_finite(), bound.kept) {
            (false, _) => "not measured",
            (true, true) => "kept",
            (true, false) => "not kept",
        };
        let cells =
            [amount(bound.value, bound.unit), amount(bound.bound, bound.unit), verdict.to_owned()];
        rows + row(Side::Tenon, &bound.name, &cells).as_str()
    });
    let columns = ["bound", "measured", "at most", ""];
    let table = table("figures", &columns, &rows);
    let _ = write!(page, "<section id=\"bounds\">\n<h2>Bounds</h2>\n{table}</section>\n");
}

fn missing(page: &mut String, missing: &[String]) {
    page.push_str("<section id=\"missing\">\n<h2>Not measured</h2>\n");
    if missing.is_empty() {
        page.push_str("<p>Nothing was left out.</p>\n");
    } else {
        let items = missing
            .iter()
            .fold(String::new(), |items, it| items + format!("<li>{}</li>\n", escape(it)).as_str());
        let _ = write!(page, "<ul>\n{items}</ul>\n");
    }
    page.push_str("</section>\n");
}

fn setting(page: &mut String, setting: &Setting) {
    let absent = |text: &Option<String>| text.clone().unwrap_or_else(|| NOTHING.to_owned());
    let facts = [
        ("date, UTC", setting.date.clone()),
        ("processor", setting.processor.clone()),
        ("cores", count(setting.cores)),
        ("memory", format!("{} GB", number(setting.memory_gb))),
        ("system", setting.system.clone()),
        ("load before", number(setting.load_before)),
        ("Tenon", setting.tenon.clone()),
        ("engine", engine(setting)),
        ("node", absent(&setting.node)),
        ("SDK", absent(&setting.sdk)),
        ("repetitions", count(setting.repetitions)),
        ("seconds it took", number(setting.seconds)),
    ];
    let rows = facts.iter().fold(String::new(), |rows, (name, value)| {
        rows + format!("<tr><th scope=\"row\">{name}</th><td>{}</td></tr>\n", escape(value))
            .as_str()
    });
    let _ = write!(
        page,
        "<section id=\"setting\">\n<h2>Setting</h2>\n\
         <p class=\"soft\">One run on one machine. Make your own with <code>{COMMAND}</code>.</p>\n\
         <table class=\"facts\">\n<tbody>\n{rows}</tbody>\n</table>\n</section>\n"
    );
}

/// The growth of extensions, which is the first; of both sides.
fn of_first(growth: &[Growth]) -> Vec<&Growth> {
    let first = growth.iter().find(|it| it.of == "extensions").or(growth.first());
    growth.iter().filter(|growth| first.is_some_and(|first| first.of == growth.of)).collect()
}

/// The date without the time.
fn day(setting: &Setting) -> &str {
    setting.date.split(['T', ' ']).next().unwrap_or_default()
}

fn cores(setting: &Setting) -> String {
    let noun = if setting.cores == 1 { "core" } else { "cores" };
    format!("{} {noun}", count(setting.cores))
}

/// The engine's name as its makers write it, and its version.
fn engine(setting: &Setting) -> String {
    let name = match setting.engine.as_str() {
        "v8" => "V8",
        "quickjs" => "QuickJS",
        other => other,
    };
    format!("{name} {}", setting.engine_version)
}

/// What a side is called in text.
fn name(side: Side) -> &'static str {
    match side {
        Side::Node => "Node",
        Side::Tenon => "Tenon",
        Side::Floor => "Floor",
    }
}

/// A spot in a side's colour; the words beside it say the same.
fn key(side: Side) -> String {
    format!("<span class=\"key {}\"></span>", chart::class(side))
}
