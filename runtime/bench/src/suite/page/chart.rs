//! The charts of the page, as SVG.
//!
//! Places from left to right are shares of the width, sizes of text are not: a chart is as wide as
//! its room, on a phone as well, and what is written in it stays readable.

use std::fmt::Write;

use super::super::report::Figure;
use super::super::report::Goal;
use super::super::report::Growth;
use super::super::report::Point;
use super::super::report::Side;
use super::REACHED;
use super::compared;
use super::outcome;
use super::text::amount;
use super::text::capital;
use super::text::escape;
use super::text::number;
use super::text::unit;

/// Values that differ by more than this are drawn on a log scale.
const LOG_ABOVE: f64 = 20.0;

/// So far below the least value a log scale begins, that its bar has a length as well.
const LOG_ROOM: f64 = 0.8;

/// Labels of an axis with more characters than this in all touch each other on a phone.
const MAX_TICK_CHARACTERS: usize = 20;

/// Steps between the labels of a linear scale.
const LINEAR_STEPS: f64 = 4.0;

/// What is forgiven when places on a scale are compared.
const ROUNDING: f64 = 1e-9;

/// Characters of a label that have room beside its value on a phone.
const LABEL_CHARACTERS: usize = 34;

const LINE_HEIGHT: f64 = 18.0;
const NOTE_HEIGHT: f64 = 16.0;
/// How far above the end of its line text stands.
const DESCENT: f64 = 5.0;
const BAR_HEIGHT: f64 = 14.0;
const BAR_RADIUS: f64 = 2.0;
const ROW_GAP: f64 = 14.0;
const TICK_LENGTH: f64 = 4.0;
/// How far the mark of a goal stands out of its bar.
const GOAL_OVERHANG: f64 = 4.0;
/// Half the height of the mark at the end of a whisker.
const WHISKER_CAP: f64 = 4.0;

/// Where the plot of a line chart begins and ends, from left to right.
const PLOT: [f64; 2] = [0.14, 0.94];
/// Where the labels beside it end.
const PLOT_LABELS: f64 = 0.125;
/// A dot of a line chart.
const DOT_RADIUS: f64 = 3.5;
/// How far above its dot a value is written.
const VALUE_RISE: f64 = 9.0;
/// A line of the legend, and the room for it and its name.
const LEGEND_LINE: f64 = 24.0;
const LEGEND_STEP: f64 = 110.0;

/// Further left or right than this, text is not centred, to stay in the chart.
const EDGES: [f64; 2] = [0.2, 0.8];

/// How everything in a chart looks; colours come from a palette.
pub const RULES: &str = "\
svg text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;\
font-size:13px;fill:var(--ink)}
svg .strong{font-weight:600}
svg .title{font-size:20px;font-weight:600}
svg .frame{fill:var(--ground);stroke:var(--grid)}
svg .note,svg .tick{font-size:12px;fill:var(--soft)}
svg .tick{font-size:11px;font-variant-numeric:tabular-nums}
svg .value{font-size:12px;font-weight:600;paint-order:stroke;stroke:var(--ground);stroke-width:4px;\
stroke-linejoin:round}
svg .good{font-size:12px;font-weight:600;fill:var(--good)}
svg .bad{font-size:12px;font-weight:600;fill:var(--bad)}
svg .track{fill:var(--track)}
svg .grid{stroke:var(--grid)}
svg .mark{stroke:var(--ink);stroke-width:1.5}
svg .aim{stroke:var(--ink);stroke-width:2.5}
svg rect.node,svg circle.node{fill:var(--node)}
svg rect.tenon,svg circle.tenon{fill:var(--tenon)}
svg rect.floor,svg circle.floor{fill:var(--floor)}
svg line.node{stroke:var(--node);stroke-width:2;stroke-dasharray:6 4}
svg line.tenon{stroke:var(--tenon);stroke-width:2}
svg line.floor{stroke:var(--floor);stroke-width:2;stroke-dasharray:2 3}
";

/// A chart without the element around it.
pub struct Drawing {
    body: String,
    /// In pixels, as everything from top to bottom.
    pub height: f64,
}

impl Drawing {
    /// As a part of a page; the label says what it shows to whoever cannot see it.
    pub fn inline(&self, label: &str) -> String {
        let (body, height, label) = (&self.body, self.height, escape(label));
        format!(
            "<svg role=\"img\" aria-label=\"{label}\" width=\"100%\" height=\"{height:.0}\">\
             {body}</svg>\n"
        )
    }

    /// As a part of another picture.
    pub fn nested(&self, x: f64, y: f64, width: f64) -> String {
        let (body, height) = (&self.body, self.height);
        format!(
            "<svg x=\"{x:.0}\" y=\"{y:.0}\" width=\"{width:.0}\" height=\"{height:.0}\">\
             {body}</svg>\n"
        )
    }
}

/// Each goal as a bar from "as much" to how many times less it is; longer is better. Notes are
/// broken into lines of so many characters.
pub fn goals(goals: &[Goal], characters: usize) -> Drawing {
    let values = || goals.iter().flat_map(|goal| [goal.ratio, goal.goal]).filter(|x| *x > 0.0);
    let least = values().fold(1.0, f64::min);
    let most = values().filter(|value| value.is_finite()).fold(2.0, f64::max);
    let scale = Scale::log(step_down(least), step_up(most));
    let mut rows = Rows::default();
    for goal in goals {
        rows.label(&capital(goal.name), &compared(goal.ratio));
        rows.note(&goal.cases, characters);
        rows.track(&scale);
        rows.bar("tenon", scale.at(1.0), scale.at(goal.ratio));
        rows.aim(scale.at(goal.goal), goal);
        rows.y += ROW_GAP;
    }
    let title = "times less than one Node process per extension";
    rows.axis(&scale, &[title, "log scale; 1 is as much as Node"]);
    rows.drawing()
}

/// What stands beside each other, as bars to the median with a whisker to the p95.
pub fn bars(figures: &[&Figure]) -> Drawing {
    let scale = Scale::over(figures.iter().flat_map(|figure| [figure.median, figure.p95]));
    let in_unit = unit(figures.first().map_or("", |figure| figure.unit));
    let mut rows = Rows::default();
    for figure in figures {
        rows.label(&figure.case, &amount(figure.median, &in_unit));
        rows.track(&scale);
        rows.bar(class(figure.side), Some(0.0), scale.at(figure.median));
        rows.whisker(scale.at(figure.median), scale.at(figure.p95));
        rows.y += BAR_HEIGHT + ROW_GAP;
    }
    rows.axis(&scale, &[&format!("{in_unit}{}", scale.name())]);
    rows.drawing()
}

/// What one costs beside how many there are, all sides together.
pub fn lines(
    (title, of): (&str, &str),
    growth: &[&Growth],
    pick: fn(&Point) -> f64,
    height: f64,
) -> Drawing {
    let points = || growth.iter().flat_map(|growth| &growth.points);
    let counts = || points().map(|point| point.count as f64).filter(|count| *count > 0.0);
    let across = Scale::log(counts().fold(f64::INFINITY, f64::min), counts().fold(1.0, f64::max));
    let up = Scale::over(points().map(pick));
    let mut plot = Plot { rows: Rows::default(), height, across, up };
    plot.title(title);
    plot.legend(growth);
    plot.grid(of);
    for growth in growth {
        plot.series(growth, pick);
    }
    plot.finish()
}

/// What a side is called in the rules, and in a legend.
pub fn class(side: Side) -> &'static str {
    match side {
        Side::Node => "node",
        Side::Tenon => "tenon",
        Side::Floor => "floor",
    }
}

/// Where values are, between the ends of an axis.
struct Scale {
    low: f64,
    high: f64,
    log: bool,
    ticks: Vec<f64>,
}

impl Scale {
    /// One that has room for all these values.
    fn over(values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        if least > 0.0 && most / least > LOG_ABOVE {
            Self::log(step_down(least * LOG_ROOM), step_up(most))
        } else {
            Self::linear(most)
        }
    }

    fn linear(most: f64) -> Self {
        let step = if most > 0.0 { step_up(most / LINEAR_STEPS) } else { 1.0 };
        let count = (most / step - ROUNDING).ceil().max(1.0) as usize;
        let ticks: Vec<f64> = (0..=count).map(|place| place as f64 * step).collect();
        Self { low: 0.0, high: count as f64 * step, log: false, ticks }
    }

    fn log(low: f64, high: f64) -> Self {
        let low = if low.is_finite() { low } else { 1.0 };
        let high = if high > low { high } else { low * 10.0 };
        let (from, to) = (low * (1.0 - ROUNDING), high * (1.0 + ROUNDING));
        let mut ticks: Vec<f64> =
            steps(low, high).filter(|step| (from..=to).contains(step)).collect();
        let characters: usize = ticks.iter().map(|tick| number(*tick).len()).sum();
        if characters > MAX_TICK_CHARACTERS {
            // Where bars begin is said in any case.
            ticks.retain(|tick| *tick <= low || is_power_of_ten(*tick));
        }
        Self { low, high, log: true, ticks }
    }

    /// Which share of the way a value is; none if it cannot be drawn.
    fn at(&self, value: f64) -> Option<f64> {
        let share = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        share.is_finite().then(|| share.clamp(0.0, 1.0))
    }

    /// The ticks and where they are.
    fn places(&self) -> impl Iterator<Item = (f64, f64)> {
        self.ticks.iter().filter_map(|tick| Some((*tick, self.at(*tick)?)))
    }

    /// What is said of it at the end of an axis' title.
    fn name(&self) -> &'static str {
        if self.log { " (log scale)" } else { "" }
    }
}

/// 1, 2, 5, 10, 20 and so on, from the power of ten below to the one above.
fn steps(low: f64, high: f64) -> impl Iterator<Item = f64> {
    let (from, to) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    (from..=to).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)))
}

fn is_power_of_ten(value: f64) -> bool {
    (value.log10() - value.log10().round()).abs() < ROUNDING
}

fn step_up(value: f64) -> f64 {
    steps(value, value).find(|step| *step >= value * (1.0 - ROUNDING)).unwrap_or(value)
}

fn step_down(value: f64) -> f64 {
    steps(value, value).filter(|step| *step <= value * (1.0 + ROUNDING)).last().unwrap_or(value)
}

/// What is written below each other, down to `y`.
#[derive(Default)]
struct Rows {
    body: String,
    y: f64,
}

impl Rows {
    /// What a row is of, and its value at the right.
    fn label(&mut self, text: &str, value: &str) {
        let y = self.y + LINE_HEIGHT - DESCENT;
        self.text("strong", 1.0, y, "end", value);
        for line in wrap(text, LABEL_CHARACTERS) {
            self.y += LINE_HEIGHT;
            self.text("strong", 0.0, self.y - DESCENT, "start", &line);
        }
        self.y += 1.0;
    }

    /// More about a row.
    fn note(&mut self, text: &str, characters: usize) {
        for line in wrap(text, characters) {
            self.y += NOTE_HEIGHT;
            self.text("note", 0.0, self.y - DESCENT, "start", &line);
        }
        self.y += GOAL_OVERHANG;
    }

    /// What a bar lies in; the ticks are in it and not over the text.
    fn track(&mut self, scale: &Scale) {
        self.rect("track", 0.0, 1.0);
        for (_, share) in scale.places().filter(|(_, share)| *share > 0.0 && *share < 1.0) {
            self.line("grid", [share, share], [self.y, self.y + BAR_HEIGHT]);
        }
    }

    fn bar(&mut self, class: &str, from: Option<f64>, to: Option<f64>) {
        if let (Some(from), Some(to)) = (from, to) {
            self.rect(class, from.min(to), from.max(to));
        }
    }

    fn whisker(&mut self, from: Option<f64>, to: Option<f64>) {
        if let (Some(from), Some(to)) = (from, to) {
            let middle = self.y + BAR_HEIGHT / 2.0;
            self.line("mark", [from, to], [middle, middle]);
            self.line("mark", [to, to], [middle - WHISKER_CAP, middle + WHISKER_CAP]);
        }
    }

    /// The mark of a goal, and below it whether it was reached.
    fn aim(&mut self, at: Option<f64>, goal: &Goal) {
        let word = outcome(goal);
        let (class, sign) = if word == REACHED { ("good", "✓") } else { ("bad", "✗") };
        let (top, bottom) = (self.y - GOAL_OVERHANG, self.y + BAR_HEIGHT + GOAL_OVERHANG);
        if let Some(at) = at {
            self.line("aim", [at, at], [top, bottom]);
        }
        self.y = bottom + NOTE_HEIGHT;
        let (share, text) =
            (at.unwrap_or(0.0), format!("goal {}: {word} {sign}", number(goal.goal)));
        self.text(class, share, self.y - DESCENT, anchor(share), &text);
    }

    /// The numbers below all bars, and what they are.
    fn axis(&mut self, scale: &Scale, titles: &[&str]) {
        let y = self.y;
        self.line("grid", [0.0, 1.0], [y, y]);
        for (tick, share) in scale.places() {
            self.line("grid", [share, share], [y, y + TICK_LENGTH]);
            // The first and the last would be cut off if they were centred.
            let anchor = match share {
                ..=0.01 => "start",
                0.99.. => "end",
                _ => "middle",
            };
            self.text("tick", share, y + NOTE_HEIGHT, anchor, &number(tick));
        }
        self.y += NOTE_HEIGHT + 2.0;
        for title in titles {
            self.y += NOTE_HEIGHT;
            self.text("note", 0.0, self.y, "start", title);
        }
        self.y += DESCENT;
    }

    fn text(&mut self, class: &str, share: f64, y: f64, anchor: &str, text: &str) {
        let _ = write!(
            self.body,
            "<text class=\"{class}\" x=\"{:.2}%\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            share * 100.0,
            escape(text),
        );
    }

    fn rect(&mut self, class: &str, from: f64, to: f64) {
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{:.2}%\" y=\"{:.1}\" width=\"{:.2}%\" \
             height=\"{BAR_HEIGHT}\" rx=\"{BAR_RADIUS}\"/>",
            from * 100.0,
            self.y,
            (to - from) * 100.0,
        );
    }

    fn line(&mut self, class: &str, x: [f64; 2], y: [f64; 2]) {
        let _ = write!(
            self.body,
            "<line class=\"{class}\" x1=\"{:.2}%\" x2=\"{:.2}%\" y1=\"{:.1}\" y2=\"{:.1}\"/>",
            x[0] * 100.0,
            x[1] * 100.0,
            y[0],
            y[1],
        );
    }

    fn drawing(self) -> Drawing {
        Drawing { body: self.body, height: self.y }
    }
}

/// A line chart, below the rows that head it.
struct Plot {
    rows: Rows,
    height: f64,
    across: Scale,
    up: Scale,
}

impl Plot {
    fn x(&self, share: f64) -> f64 {
        PLOT[0] + share * (PLOT[1] - PLOT[0])
    }

    fn y(&self, share: f64) -> f64 {
        self.rows.y + (1.0 - share) * self.height
    }

    fn title(&mut self, title: &str) {
        self.rows.y += LINE_HEIGHT;
        let title = format!("{title}{}", self.up.name());
        self.rows.text("strong", 0.0, self.rows.y - DESCENT, "start", &title);
    }

    /// Which line is whose; in pixels, for its text does not shrink.
    fn legend(&mut self, growth: &[&Growth]) {
        let y = self.rows.y + LINE_HEIGHT / 2.0;
        for (place, growth) in growth.iter().enumerate() {
            let (x, class) = (place as f64 * LEGEND_STEP, class(growth.side));
            let (end, text_x, text_y) = (x + LEGEND_LINE, x + LEGEND_LINE + 6.0, y + 4.0);
            let name = super::name(growth.side);
            let _ = write!(
                self.rows.body,
                "<line class=\"{class}\" x1=\"{x}\" x2=\"{end}\" y1=\"{y}\" y2=\"{y}\"/>\
                 <text class=\"note\" x=\"{text_x}\" y=\"{text_y}\">{name}</text>"
            );
        }
        self.rows.y += LINE_HEIGHT + ROW_GAP;
    }

    fn grid(&mut self, of: &str) {
        for (tick, share) in self.up.places().collect::<Vec<_>>() {
            let y = self.y(share);
            self.rows.line("grid", PLOT, [y, y]);
            self.rows.text("tick", PLOT_LABELS, y + 4.0, "end", &number(tick));
        }
        let bottom = self.y(0.0);
        self.rows.line("grid", PLOT, [bottom, bottom]);
        for (tick, share) in self.across.places().collect::<Vec<_>>() {
            let x = self.x(share);
            self.rows.line("grid", [x, x], [bottom, bottom + TICK_LENGTH]);
            self.rows.text("tick", x, bottom + NOTE_HEIGHT, "middle", &number(tick));
        }
        let title = format!("{of}{}", self.across.name());
        self.rows.text("note", self.x(0.5), bottom + 2.0 * NOTE_HEIGHT + 2.0, "middle", &title);
    }

    /// The line of one side, its dots, and its last value in figures.
    fn series(&mut self, growth: &Growth, pick: fn(&Point) -> f64) {
        let class = class(growth.side);
        let place = |point: &Point| {
            let (x, y) = (self.across.at(point.count as f64)?, self.up.at(pick(point))?);
            Some((self.x(x), self.y(y), pick(point)))
        };
        let places: Vec<Option<(f64, f64, f64)>> = growth.points.iter().map(place).collect();
        for pair in places.windows(2) {
            // A point that is missing leaves a gap.
            if let [Some(from), Some(to)] = pair {
                self.rows.line(class, [from.0, to.0], [from.1, to.1]);
            }
        }
        for (x, y, _) in places.iter().flatten() {
            let x = x * 100.0;
            let _ = write!(
                self.rows.body,
                "<circle class=\"{class}\" cx=\"{x:.2}%\" cy=\"{y:.1}\" r=\"{DOT_RADIUS}\"/>"
            );
        }
        if let Some((x, y, value)) = places.iter().flatten().last() {
            self.rows.text("value", *x, y - VALUE_RISE, anchor(*x), &number(*value));
        }
    }

    fn finish(mut self) -> Drawing {
        self.rows.y += self.height + 2.0 * NOTE_HEIGHT + 8.0;
        self.rows.drawing()
    }
}

/// How text at such a place stays in the chart.
fn anchor(share: f64) -> &'static str {
    if share < EDGES[0] {
        "start"
    } else if share > EDGES[1] {
        "end"
    } else {
        "middle"
    }
}

/// In lines of so many characters, for SVG has none of its own.
pub fn wrap(text: &str, characters: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= characters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_far_apart_are_on_a_log_scale() {
        let near = Scale::over([4.0, 17.0].into_iter());
        assert_eq!((near.log, near.low, near.high), (false, 0.0, 20.0));
        assert_eq!(near.ticks, [0.0, 5.0, 10.0, 15.0, 20.0]);
        let far = Scale::over([1.5, f64::NAN, 150.0].into_iter());
        assert_eq!((far.log, far.low, far.high), (true, 1.0, 200.0));
        assert_eq!(far.ticks, [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0]);
    }

    #[test]
    fn labels_that_have_no_room_are_left_out() {
        let scale = Scale::over([6.0, 1710.0].into_iter());
        assert_eq!(scale.ticks, [2.0, 10.0, 100.0, 1000.0]);
    }

    #[test]
    fn what_cannot_be_drawn_has_no_place() {
        let scale = Scale::log(1.0, 100.0);
        assert_eq!(scale.at(10.0), Some(0.5));
        assert_eq!(scale.at(1000.0), Some(1.0));
        for value in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
            assert_eq!(scale.at(value), None, "{value}");
        }
    }

    #[test]
    fn long_text_is_broken_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("endlessly", 4), ["endlessly"]);
    }
}
