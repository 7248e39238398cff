//! What the suite found out: figures with their baselines, growth, and whether the goals were reached.

use serde::Deserialize;
use serde::Serialize;

/// A whole run.
#[derive(Debug, Serialize)]
pub struct Report {
    pub setting: Setting,
    /// Ratios to node processes that were aimed at.
    pub goals: Vec<Goal>,
    /// What must not be more than so much.
    pub bounds: Vec<Bound>,
    /// Every figure; those of one chapter and topic belong beside each other.
    pub figures: Vec<Figure>,
    /// How costs grow with numbers.
    pub growth: Vec<Growth>,
    /// What was not measured, and why.
    pub missing: Vec<String>,
}

/// Where and with what it was measured.
#[derive(Debug, Serialize)]
pub struct Setting {
    /// When it began, in UTC.
    pub date: String,
    /// How long it took.
    pub seconds: f64,
    pub processor: String,
    pub cores: usize,
    pub memory_gb: f64,
    pub system: String,
    /// The load average over a minute, before it began.
    pub load_before: f64,
    pub tenon: String,
    pub engine: String,
    pub engine_version: String,
    /// Of the baseline; none if node was not there.
    pub node: Option<String>,
    pub sdk: Option<String>,
    pub repetitions: usize,
}

/// Who a figure is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// One node process for each extension, with the public SDK.
    Node,
    /// This program.
    Tenon,
    /// The least there can be: an instance of the same engine and nothing else, or a ping-pong of the same bytes.
    Floor,
}

/// What is compared, the same for all sides: the chapter, the topic and its unit.
pub type Topic = (&'static str, &'static str, &'static str);

/// One thing that was measured several times, in turns with what it is compared with.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// `start`, `zygote`, `sessions`, `call`, `hooks`, `events`, `reload`, `turn`, `compute`.
    pub chapter: &'static str,
    /// What is compared: the same for all sides, such as `CPU until ready`.
    pub topic: &'static str,
    pub unit: &'static str,
    /// Which way of doing it this is, such as `node process + SDK`.
    pub case: String,
    pub side: Side,
    /// How many times it was measured, in turns with the others.
    pub repetitions: usize,
    /// Over all samples of all repetitions.
    pub samples: usize,
    pub median: f64,
    pub p95: f64,
    /// The least and the greatest median of a repetition.
    pub spread: [f64; 2],
    /// How many times less than the baseline on the node side, by the medians.
    pub times_less: Option<f64>,
    /// How many times as much as the least there can be, by the medians.
    pub times_floor: Option<f64>,
}

/// A ratio that was aimed at.
#[derive(Debug, Clone, Serialize)]
pub struct Goal {
    /// Such as `CPU until ready`.
    pub name: &'static str,
    /// What stands beside what.
    pub cases: String,
    pub ratio: f64,
    pub goal: f64,
    pub reached: bool,
}

/// Something that must not be more than so much.
#[derive(Debug, Clone, Serialize)]
pub struct Bound {
    /// Such as `1,000 extensions: time until all are ready`.
    pub name: String,
    pub value: f64,
    pub unit: &'static str,
    pub bound: f64,
    pub kept: bool,
}

impl Bound {
    pub fn new(name: impl Into<String>, value: f64, unit: &'static str, bound: f64) -> Self {
        Self { name: name.into(), value, unit, bound, kept: value <= bound }
    }
}

/// How something grows.
#[derive(Debug, Serialize)]
pub struct Growth {
    /// `extensions`, or `sessions of 10 extensions`.
    pub of: &'static str,
    pub side: Side,
    pub points: Vec<Point>,
    /// By how much the cost of one more changes from the second point to the last, in percent of the second.
    pub cpu_slope_percent: f64,
    pub memory_slope_percent: f64,
}

/// So many of them, all at once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Point {
    pub count: usize,
    /// All extensions there are then.
    pub extensions: usize,
    /// Until all of them are ready.
    pub ready_s: f64,
    /// Of all processes together, for each extension, until ready.
    pub cpu_ms_each: f64,
    /// Memory of the zygote and all extensions together, or of all node processes, idle: the sum of PSS and page tables.
    pub memory_mb: f64,
    /// The same for each extension.
    pub memory_mb_each: f64,
    /// Private memory of one extension's process, the median.
    pub private_mb: f64,
    /// Of all this the zygote's; none with node.
    pub zygote_mb: Option<f64>,
    /// Memory of the session's process beside that; none with node, whose host is a stand-in.
    pub session_mb: Option<f64>,
    pub threads: usize,
    pub files: usize,
    pub processes: usize,
    /// Extensions that answered a call.
    pub answered: usize,
    /// The median of these calls.
    pub call_us: f64,
}

/// Samples of one case, by repetition.
#[derive(Debug, Default, Clone)]
pub struct Samples(Vec<Vec<f64>>);

impl Samples {
    /// Adds a repetition.
    pub fn add(&mut self, samples: Vec<f64>) {
        self.0.push(samples);
    }

    /// How many repetitions there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// One of the repetitions.
    pub fn only(&self, repetition: usize) -> Self {
        Self(self.0.get(repetition).cloned().into_iter().collect())
    }

    /// The figure that they make.
    pub fn figure(
        &self,
        (chapter, topic, unit): Topic,
        side: Side,
        case: impl Into<String>,
    ) -> Figure {
        let all: Vec<f64> = self.0.iter().flatten().copied().collect();
        let medians = || self.0.iter().map(|repetition| percentile(repetition, 0.5));
        Figure {
            chapter,
            topic,
            unit,
            case: case.into(),
            side,
            repetitions: self.0.len(),
            samples: all.len(),
            median: percentile(&all, 0.5),
            p95: percentile(&all, 0.95),
            spread: [medians().fold(f64::NAN, f64::min), medians().fold(f64::NAN, f64::max)],
            times_less: None,
            times_floor: None,
        }
    }
}

/// The value below which such a share of all values lies.
pub fn percentile(values: &[f64], share: f64) -> f64 {
    crate::measured::percentile(values, share)
}

/// Says of every figure how many times less it is than the first one on the node side with its topic, and how many
/// times as much as the first one that is the least there can be.
pub fn compare(figures: &mut [Figure]) {
    let first = |side: Side| {
        let of_side = figures.iter().filter(|figure| figure.side == side);
        of_side.map(|figure| (figure.chapter, figure.topic, figure.median)).collect::<Vec<_>>()
    };
    let (baselines, floors) = (first(Side::Node), first(Side::Floor));
    for figure in figures.iter_mut() {
        let among = |medians: &[(&str, &str, f64)]| {
            let is_its = |it: &&(&str, &str, f64)| (it.0, it.1) == (figure.chapter, figure.topic);
            medians.iter().find(is_its).map(|(.., median)| *median)
        };
        figure.times_less = among(&baselines).map(|median| median / figure.median);
        figure.times_floor = among(&floors).map(|median| figure.median / median);
    }
}

impl Growth {
    /// The points with what they say about one more.
    pub fn new(of: &'static str, side: Side, points: Vec<Point>) -> Self {
        let slope = |pick: fn(&Point) -> f64| match (points.get(1), points.last()) {
            (Some(first), Some(last)) => (pick(last) / pick(first) - 1.0) * 100.0,
            _ => f64::NAN,
        };
        let cpu_slope_percent = slope(|point| point.cpu_ms_each);
        let memory_slope_percent = slope(|point| point.memory_mb_each);
        Self { of, side, points, cpu_slope_percent, memory_slope_percent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPIC: (&str, &str, &str) = ("call", "round trip", "us");

    #[test]
    fn a_figure_is_the_median_of_all_and_the_spread_of_the_repetitions() {
        let mut samples = Samples::default();
        samples.add(vec![1.0, 2.0, 3.0]);
        samples.add(vec![7.0, 8.0, 9.0]);
        let figure = samples.figure(TOPIC, Side::Tenon, "tenon");
        assert_eq!((figure.repetitions, figure.samples), (2, 6));
        assert_eq!((figure.median, figure.p95), (7.0, 9.0));
        assert_eq!(figure.spread, [2.0, 8.0]);
    }

    #[test]
    fn figures_are_compared_with_the_first_node_case_of_their_topic() {
        let figure = |side, case: &str, value| {
            let mut samples = Samples::default();
            samples.add(vec![value]);
            samples.figure(TOPIC, side, case)
        };
        let mut figures = [
            figure(Side::Node, "one", 100.0),
            figure(Side::Node, "all", 500.0),
            figure(Side::Tenon, "tenon", 20.0),
            figure(Side::Floor, "ping-pong", 10.0),
        ];
        compare(&mut figures);
        let less = figures.each_ref().map(|figure| figure.times_less);
        assert_eq!(less, [Some(1.0), Some(0.2), Some(5.0), Some(10.0)]);
        let floor = figures.each_ref().map(|figure| figure.times_floor);
        assert_eq!(floor, [Some(10.0), Some(50.0), Some(2.0), Some(1.0)]);
    }

    #[test]
    fn a_bound_is_kept_up_to_its_value_and_not_by_what_is_no_number() {
        let kept = [11.9, 12.0, 12.1, f64::NAN].map(|value| Bound::new("x", value, "s", 12.0).kept);
        assert_eq!(kept, [true, true, false, false]);
    }

    #[test]
    fn a_slope_is_what_one_more_costs_at_the_end_beside_the_second_point() {
        let point = |count, cpu| Point {
            count,
            extensions: count,
            ready_s: 1.0,
            cpu_ms_each: cpu,
            memory_mb: 7.0,
            memory_mb_each: 7.0,
            private_mb: 1.0,
            zygote_mb: None,
            session_mb: None,
            threads: 1,
            files: 1,
            processes: 1,
            answered: count,
            call_us: 1.0,
        };
        let points = vec![point(1, 90.0), point(10, 10.0), point(100, 12.0)];
        let growth = Growth::new("extensions", Side::Tenon, points);
        assert_eq!((growth.cpu_slope_percent.round(), growth.memory_slope_percent), (20.0, 0.0));
    }
}
