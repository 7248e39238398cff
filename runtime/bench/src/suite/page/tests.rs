//! What the page and the picture must say, and what must never be in them.

use super::super::report::compare;
use super::picture::picture;
use super::text::*;
use super::*;

const HOSTILE: &str = "<b> & \"quotes\" it's \u{1b}[1m";

fn figure(chapter: &'static str, side: Side, case: &str, median: f64) -> Figure {
    Figure {
        chapter,
        topic: "CPU until ready",
        unit: "us",
        case: case.to_owned(),
        side,
        repetitions: 5,
        samples: 50,
        median,
        p95: median * 1.2,
        spread: [median * 0.9, median * 1.1],
        times_less: None,
        times_floor: None,
    }
}

fn point(count: usize, cost: f64) -> Point {
    Point {
        count,
        extensions: count,
        ready_s: 1.0,
        cpu_ms_each: cost,
        memory_mb: cost * count as f64,
        memory_mb_each: cost / 2.0,
        private_mb: cost / 3.0,
        zygote_mb: Some(f64::NAN),
        session_mb: None,
        threads: 12_345,
        files: 1,
        processes: 1,
        answered: count,
        call_us: 90.0,
    }
}

fn goal(ratio: f64, reached: bool) -> Goal {
    let cases = format!("node process beside {HOSTILE}");
    Goal { name: "CPU until ready", cases, ratio, goal: 10.0, reached }
}

/// All chapters, with values that cannot be drawn and text that must not be taken for HTML.
pub fn report() -> Report {
    let mut figures: Vec<Figure> = CHAPTERS
        .iter()
        .flat_map(|(chapter, ..)| {
            [
                figure(chapter, Side::Node, &format!("node of {chapter}"), 150.0),
                figure(chapter, Side::Tenon, &format!("tenon of {chapter}"), 1.5),
                figure(chapter, Side::Floor, &format!("floor of {chapter}"), f64::NAN),
            ]
        })
        .chain([
            figure("other", Side::Tenon, HOSTILE, f64::INFINITY),
            figure("other", Side::Tenon, "nothing", 0.0),
        ])
        .collect();
    compare(&mut figures);
    let counts = vec![point(1, 90.0), point(10, 14.0), point(1000, 14.5)];
    Report {
        setting: Setting {
            date: "2026-02-03 10:21".to_owned(),
            seconds: 742.0,
            processor: HOSTILE.to_owned(),
            cores: 2,
            memory_gb: 7.8,
            system: "Linux".to_owned(),
            load_before: f64::NAN,
            tenon: "0.1.0".to_owned(),
            engine: "v8".to_owned(),
            engine_version: "14.2".to_owned(),
            node: Some("v22.11.0".to_owned()),
            sdk: None,
            repetitions: 5,
        },
        bounds: vec![Bound::new(HOSTILE, 3.5, "s", 2.0), Bound::new("b", f64::NAN, "s", 2.0)],
        goals: vec![goal(10.7, true), goal(0.5, false), goal(f64::INFINITY, false)],
        figures,
        growth: vec![
            Growth::new("extensions", Side::Tenon, counts),
            Growth::new("extensions", Side::Node, vec![point(1, 150.0), point(0, f64::NAN)]),
            Growth::new("sessions of 10 extensions", Side::Tenon, Vec::new()),
        ],
        missing: vec![HOSTILE.to_owned()],
    }
}

fn empty() -> Report {
    let none = Vec::new();
    Report {
        goals: Vec::new(),
        bounds: Vec::new(),
        figures: Vec::new(),
        growth: Vec::new(),
        missing: none,
        ..report()
    }
}

/// Whether every element is closed, and in the right order.
fn is_well_formed(markup: &str) -> bool {
    let mut open = Vec::new();
    for tag in markup.split('<').skip(1) {
        let Some((tag, _)) = tag.split_once('>') else { return false };
        let name = tag.split_whitespace().next().unwrap_or_default();
        if tag.matches('"').count() % 2 != 0 {
            return false;
        } else if let Some(closed) = name.strip_prefix('/') {
            if open.pop() != Some(closed) {
                return false;
            }
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    open.is_empty()
}

/// What is between the start and the end of the page's body.
fn body(page: &str) -> &str {
    let (_, body) = page.split_once("<body>").unwrap();
    body.split_once("</body>").unwrap().0
}

#[test]
fn every_case_is_in_a_chart_and_in_a_table() {
    let report = report();
    let page = html(&report);
    for figure in &report.figures {
        assert!(page.matches(&escape(&figure.case)).count() >= 2, "{}", figure.case);
    }
    for (_, title, _) in CHAPTERS {
        assert!(page.contains(&format!("<h2>{title}</h2>")), "{title}");
    }
}

#[test]
fn a_chapter_without_figures_is_left_out() {
    let mut report = report();
    report.figures.retain(|figure| figure.chapter != "hooks");
    assert!(!html(&report).contains("<h2>Hooks</h2>"));
}

#[test]
fn what_is_no_number_is_not_shown_as_one() {
    for report in [report(), empty()] {
        for markup in [html(&report), picture(&report)] {
            assert!(!markup.contains("NaN"));
            assert!(!markup.contains("inf"));
        }
    }
}

#[test]
fn text_is_escaped() {
    for markup in [html(&report()), picture(&report())] {
        assert!(markup.contains("&lt;b&gt; &amp; &quot;quotes&quot; it&#39;s"));
        assert!(!markup.contains("<b>"));
        assert!(!markup.contains('\u{1b}'));
    }
}

#[test]
fn page_and_picture_are_well_formed() {
    for report in [report(), empty()] {
        assert!(is_well_formed(body(&html(&report))));
        assert!(is_well_formed(&picture(&report)));
    }
}

#[test]
fn nothing_is_fetched_and_nothing_runs() {
    let page = html(&report());
    for what in ["<script", "<link", "<img", "http:", "https:", "url(", "@import"] {
        assert!(!page.contains(what), "{what}");
    }
}

#[test]
fn the_picture_has_its_own_colours() {
    let picture = picture(&report());
    assert!(!picture.contains("var("));
    assert!(picture.contains("Memory per extension, MB"));
    assert!(picture.contains("node v22.11.0 · 2026-02-03 · make bench"));
}

#[test]
fn whether_a_goal_was_reached_is_said_in_words() {
    let page = html(&report());
    assert!(page.contains("1 of 3 goals are reached."));
    for text in ["10.7 times less", "goal 10: reached ✓", "2 times more", "goal 10: not reached"]
    {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn whether_a_bound_was_kept_is_said_in_words() {
    let page = html(&report());
    for text in ["<td>3.5 s</td><td>2 s</td><td>not kept</td>", "<td>not measured</td>"] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!html(&empty()).contains("<h2>Bounds</h2>"));
}

#[test]
fn slopes_are_a_sentence() {
    let page = html(&report());
    assert!(
        page.contains("Tenon, from 10 to 1,000 extensions: CPU per extension grows by 4 percent")
    );
    assert!(page.contains("Node: too few points for a slope."));
}

#[test]
fn numbers_have_three_digits_at_most() {
    let shown = [0.0, 0.012_34, 1.5, 17.0, 99.96, 150.4, 1234.0, -1_234_567.0, f64::NAN];
    let texts = ["0", "0.0123", "1.5", "17", "100", "150", "1,230", "-1,230,000", "–"];
    assert_eq!(shown.map(number), texts);
    assert_eq!(count(1_234_567), "1,234,567");
}

#[test]
fn what_is_more_is_not_called_less() {
    assert_eq!([2.5, 1.0, 0.999, 0.2].map(less), ["2.5", "1", "0.999", "5 times more"]);
    assert_eq!(compared(3.0), "3 times less");
}

#[test]
fn samples_are_those_of_a_repetition() {
    assert_eq!([times(5, 50), times(5, 52), times(0, 0)], ["5 × 10", "5, 52 in all", "–"]);
}
