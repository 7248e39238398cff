//! Benchmarks measure what they say, on however small a scale.

use serde_json::Value;
use tenon_tests::Workspace;
use tenon_tests::tenon;

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
    let arguments = ["--no-node", "--repetitions", "1", "--only", "call,turn", "--json"];
    let report = workspace.bench(&tenon(), &arguments).json();
    let expected = [
        ("call", "Tenon"),
        ("call", "ping-pong of the same bytes"),
        // With 64 KB of arguments.
        ("call", "Tenon"),
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
    for (missing, option) in ["--no-node", "--in-process"].into_iter().enumerate() {
        assert!(report["missing"][missing].as_str().unwrap().contains(option), "{report:#}");
    }
    assert_eq!(
        report["setting"]["engine"],
        workspace.run(&["--engine-info", "--json"]).json()["name"]
    );
}

#[test]
fn the_suite_shows_how_costs_grow_and_saves_a_page() {
    let workspace = Workspace::new();
    let folder = workspace.cwd().join("results");
    let arguments = ["--no-node", "--only", "growth", "--most", "10", "--save", "results"];
    let run = workspace.bench(&tenon(), &arguments);
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
    let table = std::fs::read_to_string(folder.join("bench.md")).unwrap();
    assert!(table.contains("| 10 extensions at once |"), "{table}");
    assert!(run.stdout.contains("bench.html"), "{run:#?}");
}

#[test]
fn a_chapter_there_is_none_of_is_refused_before_anything_is_measured() {
    let run = Workspace::new().bench(&tenon(), &["--only", "nothing"]);
    assert_eq!(run.code, 2, "{run:#?}");
    assert!(
        run.stderr.contains("start, call, events, reload, turn, compute, sessions, growth"),
        "{run:#?}"
    );
}

#[test]
fn a_start_is_measured_through_the_zygote_and_in_processes() {
    let workspace = Workspace::new();
    let arguments = ["--no-node", "--repetitions", "1", "--only", "start,sessions", "--json"];
    let report = workspace.bench(&tenon(), &arguments).json();
    let median = |chapter: &str, topic: &str, case: &str| {
        let figures = report["figures"].as_array().unwrap().iter();
        let mut found = figures
            .filter(|it| it["chapter"] == chapter && it["topic"] == topic && it["case"] == case);
        let median = found.next().and_then(|it| it["median"].as_f64());
        median.unwrap_or_else(|| panic!("{chapter}, {topic}, {case}: {report:#}"))
    };
    let of_start = |topic: &str| median("start", topic, "Tenon");
    for topic in ["CPU until ready", "time until ready", "private memory after 1,000 calls"] {
        assert!(of_start(topic) > 0.0, "{topic}");
    }
    let (private, whole) =
        (of_start("private memory, idle"), of_start("PSS and page tables, idle"));
    assert!(private > 0.0 && whole > private, "{private} {whole}");
    // A fork shares the engine that the zygote has booted, which takes far more than a fork.
    let boot = median("zygote", "zygote, once: CPU until it can fork", "Tenon");
    assert!(boot > of_start("CPU until ready"), "{boot}");
    let further = "each of 19 further sessions";
    assert!(median("sessions", "20 sessions: PSS and page tables of its process", further) > 0.0);
    let has_collected = report["figures"]
        .as_array()
        .unwrap()
        .iter()
        .any(|it| it["topic"] == "private memory after a garbage collection");
    assert_eq!(has_collected, report["setting"]["engine"] == "quickjs");
}
