//! The figures as a table for a README.

use std::fmt::Write;

use super::page::text::amount;
use super::page::text::count;
use super::page::text::number;
use super::page::text::unit;
use super::report::Figure;
use super::report::Growth;
use super::report::Report;
use super::report::Side;

/// What has no figure.
const NONE: &str = "";

/// A row for everything that was measured of this program, beside node processes and the least there can be, and one for
/// the most extensions and sessions there were.
pub fn markdown(report: &Report) -> String {
    let mut table = "| `make bench` | Node process | Tenon | times less | times the floor |\n\
                     |---|---:|---:|---:|---:|\n"
        .to_owned();
    for figure in report.figures.iter().filter(|figure| figure.side == Side::Tenon) {
        let node = report.figures.iter().find(|it| {
            (it.chapter, it.topic, it.side) == (figure.chapter, figure.topic, Side::Node)
        });
        let or_none = |value: Option<f64>| value.map_or(NONE.to_owned(), number);
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} |",
            escape(&what(figure)),
            node.map_or(NONE.to_owned(), median),
            median(figure),
            or_none(figure.times_less),
            or_none(figure.times_floor),
        );
    }
    for growth in report.growth.iter().filter(|growth| growth.side == Side::Tenon) {
        table.push_str(&last(growth));
    }
    table
}

/// The topic, and which way it is if there are several.
fn what(figure: &Figure) -> String {
    match figure.case.strip_prefix("Tenon") {
        Some("") => figure.topic.to_owned(),
        Some(way) => format!("{}{way}", figure.topic),
        None => format!("{}: {}", figure.topic, figure.case),
    }
}

fn median(figure: &Figure) -> String {
    amount(figure.median, &unit(figure.unit))
}

/// The most there were of something.
fn last(growth: &Growth) -> String {
    let Some(point) = growth.points.last() else { return String::new() };
    format!(
        "| {} {} at once | | {}, {} CPU and {} each; {} in {} processes | | |\n",
        count(point.count),
        growth.of,
        amount(point.ready_s, "s"),
        amount(point.cpu_ms_each, "ms"),
        amount(point.memory_mb_each, "MB"),
        amount(point.memory_mb / 1e3, "GB"),
        count(point.processes),
    )
}

/// Text in a cell.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::super::page::tests::report;
    use super::*;

    #[test]
    fn every_figure_of_this_program_has_a_row_beside_node_and_rows_have_five_cells() {
        let report = report();
        let table = markdown(&report);
        let ours = report.figures.iter().filter(|figure| figure.side == Side::Tenon).count();
        let grown =
            report.growth.iter().filter(|it| it.side == Side::Tenon && !it.points.is_empty());
        assert_eq!(table.lines().count(), 2 + ours + grown.count());
        for line in table.lines() {
            assert_eq!(line.replace("\\|", "").matches('|').count(), 6, "{line}");
        }
        assert!(
            table.contains("| CPU until ready: tenon of start | 150 µs | 1.5 µs | 100 |"),
            "{table}"
        );
        assert!(table.contains("1,000 extensions at once"), "{table}");
    }
}
