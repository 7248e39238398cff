//! Benchmarks measure what they say, on however small a scale.

use serde_json::Value;
use tenon_tests::Workspace;

fn cases(report: &Value) -> Vec<(&str, &str)> {
    let figures = report["figures"].as_array().unwrap();
    figures
        .iter()
        .map(|it| (it["chapter"].as_str().unwrap(), it["case"].as_str().unwrap()))
        .collect()
}

#[test]
fn the_suite_says_what_it_measured_and_what_not() {
    let workspace = Workspace::new();
    let arguments = ["bench", "--no-node", "--repetitions", "1", "--only", "call,turn", "--json"];
    let report = workspace.run(&arguments).json();
    let expected = [
        ("call", "Tenon"),
        ("call", "Tenon, isolates in process"),
        ("call", "bare isolate on a thread"),
        ("hooks", "Tenon"),
        ("turn", "Tenon"),
        ("turn", "Tenon, the first tenth"),
        ("turn", "Tenon, the last tenth"),
    ];
    assert_eq!(cases(&report), expected);
    for figure in report["figures"].as_array().unwrap() {
        let (median, p95) = (figure["median"].as_f64().unwrap(), figure["p95"].as_f64().unwrap());
        assert!(median > 0.0 && p95 >= median, "{figure}");
        assert_eq!(figure["times_less"], Value::Null, "there is nothing to compare with");
    }
    assert!(report["missing"][0].as_str().unwrap().contains("--no-node"), "{report:#}");
    assert_eq!(
        report["setting"]["engine"],
        workspace.run(&["--engine-info", "--json"]).json()["name"]
    );
}

#[test]
fn the_suite_shows_how_costs_grow_and_saves_a_page() {
    let workspace = Workspace::new();
    let folder = workspace.cwd().join("results");
    let arguments = ["bench", "--no-node", "--only", "growth", "--most", "10", "--save", "results"];
    let run = workspace.run(&arguments);
    assert_eq!(run.code, 0, "{run:#?}");
    let report = std::fs::read_to_string(folder.join("bench.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    let of = |growth: &Value| {
        let points = growth["points"].as_array().unwrap().iter();
        let answered = |point: &Value| {
            assert_eq!(point["answered"], point["extensions"], "{point}");
            point["extensions"].as_u64().unwrap()
        };
        (growth["of"].as_str().unwrap().to_owned(), points.map(answered).collect::<Vec<_>>())
    };
    let growth: Vec<_> = report["growth"].as_array().unwrap().iter().map(of).collect();
    let expected = [
        ("extensions".to_owned(), vec![1, 10]),
        ("sessions of 10 extensions".to_owned(), vec![10]),
    ];
    assert_eq!(growth, expected);
    let page = std::fs::read_to_string(folder.join("bench.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") || page.starts_with("<!doctype html>"), "{page}");
    assert!(std::fs::read_to_string(folder.join("bench.svg")).unwrap().starts_with("<svg"));
    assert!(run.stdout.contains("bench.html"), "{run:#?}");
}

#[test]
fn a_chapter_there_is_none_of_is_refused_before_anything_is_measured() {
    let run = Workspace::new().run(&["bench", "--only", "nothing"]);
    assert_eq!(run.code, 2, "{run:#?}");
    assert!(run.stderr.contains("start, call, events, reload, turn, growth"), "{run:#?}");
}
