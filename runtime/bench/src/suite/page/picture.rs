//! The picture for a README.

use std::fmt::Write;

use super::COMMAND;
use super::LIGHT;
use super::PLOT_HEIGHT;
use super::TITLE;
use super::chart;
use super::cores;
use super::day;
use super::engine;
use super::of_first;
use super::text::escape;
use crate::suite::report::Report;
use crate::suite::report::Setting;

const PICTURE_WIDTH: f64 = 860.0;
const PICTURE_PADDING: f64 = 28.0;
const PICTURE_RADIUS: f64 = 10.0;
/// Where the title's text stands, and where the charts begin.
const PICTURE_TITLE: f64 = 42.0;
const PICTURE_TOP: f64 = 66.0;
/// The width of the goals when growth is beside them, and the room between.
const PICTURE_GOALS: f64 = 460.0;
/// Characters of small text that have room in this width.
const PICTURE_CHARACTERS: usize = 62;
const PICTURE_GAP: f64 = 44.0;
/// What a line chart needs beside its plot.
const PICTURE_PLOT_MARGIN: f64 = 100.0;
/// Lines of the caption.
const CAPTION_CHARACTERS: usize = 120;
const CAPTION_LINE: f64 = 17.0;
/// Room above it.
const CAPTION_GAP: f64 = 12.0;

/// The picture for a README: the four goals and growth, as one SVG.
pub fn picture(report: &Report) -> String {
    let goals = chart::goals(&report.goals, PICTURE_CHARACTERS);
    let growth = of_first(&report.growth);
    let inner = PICTURE_WIDTH - 2.0 * PICTURE_PADDING;
    let mut charts = String::new();
    if let Some(first) = growth.first() {
        let x = PICTURE_PADDING + PICTURE_GOALS + PICTURE_GAP;
        let height = (goals.height - PICTURE_PLOT_MARGIN).max(PLOT_HEIGHT);
        let title = ("Memory per extension, MB", first.of);
        let lines = chart::lines(title, &growth, |point| point.memory_mb_each, height);
        charts.push_str(&goals.nested(PICTURE_PADDING, PICTURE_TOP, PICTURE_GOALS));
        charts.push_str(&lines.nested(x, PICTURE_TOP, inner - PICTURE_GOALS - PICTURE_GAP));
    } else {
        charts.push_str(&goals.nested(PICTURE_PADDING, PICTURE_TOP, inner));
    }
    let mut y = PICTURE_TOP + goals.height.max(PLOT_HEIGHT + PICTURE_PLOT_MARGIN) + CAPTION_GAP;
    for line in chart::wrap(&caption(&report.setting), CAPTION_CHARACTERS) {
        y += CAPTION_LINE;
        let text = escape(&line);
        let _ = writeln!(
            charts,
            "<text class=\"note\" x=\"{PICTURE_PADDING}\" y=\"{y}\">{text}</text>"
        );
    }
    framed(&charts, y + PICTURE_PADDING)
}

/// A picture with its title on a ground of its own, for it is shown on light and on dark pages.
fn framed(body: &str, height: f64) -> String {
    // Not every program that shows pictures knows variables.
    let rules = LIGHT.iter().fold(chart::RULES.to_owned(), |rules, (name, colour)| {
        rules.replace(&format!("var(--{name})"), colour)
    });
    let (right, bottom) = (PICTURE_WIDTH - 1.0, height - 1.0);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{PICTURE_WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {PICTURE_WIDTH} {height}\" role=\"img\">\n\
         <title>{TITLE}</title>\n\
         <style>\n{rules}</style>\n\
         <rect class=\"frame\" x=\"0.5\" y=\"0.5\" width=\"{right}\" height=\"{bottom}\" \
         rx=\"{PICTURE_RADIUS}\"/>\n\
         <text class=\"title\" x=\"{PICTURE_PADDING}\" y=\"{PICTURE_TITLE}\">\
         {TITLE}</text>\n{body}</svg>\n"
    )
}

/// Where and with what, in one line.
fn caption(setting: &Setting) -> String {
    let node = setting.node.as_deref().map_or("without node".to_owned(), |it| format!("node {it}"));
    let day = day(setting);
    let (processor, cores, engine) = (&setting.processor, cores(setting), engine(setting));
    format!("{processor}, {cores} · {engine} · {node} · {day} · {COMMAND}")
}
