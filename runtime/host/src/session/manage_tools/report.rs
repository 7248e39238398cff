//! What an agent reads about what was done to extensions.

use std::path::Path;

use super::text::Lines;
use super::text::brief;
use super::text::fenced;
use super::text::heading;
use super::text::source_line;
use super::text::tool_names;
use super::text::whole;
use super::text::with_text;
use crate::discovery::Places;
use crate::extension::ExtensionInfo;
use crate::extension::LoadError;
use crate::extension::Status;
use crate::manage::CheckReport;
use crate::manage::ReloadReport;
use crate::scaffold::Scaffolded;
use crate::session::ToolOutcome;
use crate::tool::ResultType;

/// It was made.
pub fn scaffolded(made: &Scaffolded, runs: bool) -> String {
    let mut lines = Lines::default();
    lines.add(format_args!("Made {}", made.entry.display()));
    if runs {
        let then = match &made.tool {
            Some(tool) => format!("; its tool {tool} can then be called in the same turn"),
            None => String::new(),
        };
        lines.add(format_args!("It works as it is. Edit it, then call extensions_reload{then}."));
    } else {
        lines.add(
            "It will not run before the person allows it: this workspace is not trusted, or its extensions \
             are reviewed one by one (`tenon trust`). extensions_reload does not change that.",
        );
    }
    lines.done()
}

/// It was switched on or off.
pub fn switched(info: &ExtensionInfo) -> String {
    let mut lines = Lines::default();
    lines.add(state(info));
    if info.status == Status::Disabled {
        lines.add("What it offered is gone, in later sessions too, until it is enabled.");
    }
    if !info.tools.is_empty() {
        lines.add(format_args!("Tools: {}", tool_names(info)));
    }
    lines.done()
}

/// How one extension is, in a line or a few.
fn state(info: &ExtensionInfo) -> String {
    match (&info.error, info.status) {
        (None, Status::Running) => {
            format!("{} — running (generation {})", info.name, info.generation)
        }
        (None, status) => format!("{} — {status}", info.name),
        (Some(error), Status::Running) if info.waits_for_approval => format!(
            "{} — running (generation {}), but not what is on disk now: {}",
            info.name,
            info.generation,
            with_source(error)
        ),
        (Some(error), Status::Running) => format!(
            "{} — running (generation {}), but not what is on disk now, which does not load: {}",
            info.name,
            info.generation,
            with_source(error)
        ),
        (Some(error), status) => format!("{} — {status}: {}", info.name, with_source(error)),
    }
}

fn with_source(error: &LoadError) -> String {
    let source = source_line(&error.what).map(|line| format!("\n{line}")).unwrap_or_default();
    format!("{}{source}", brief(error))
}

/// Everything was loaded anew.
pub fn reloaded(
    report: &ReloadReport,
    before: &[String],
    after: &[String],
    places: &Places,
) -> String {
    let mut lines = Lines::default();
    lines.add(heading(&report.extensions, places));
    if !report.extensions.is_empty() {
        lines.add("");
    }
    for info in &report.extensions {
        lines.add(format_args!("- {}", state(info)));
    }
    if !report.removed.is_empty() {
        lines.add(format_args!("\nNo longer there: {}", report.removed.join(", ")));
    }
    let missing = |from: &[String], names: &[String]| -> Vec<String> {
        names.iter().filter(|name| !from.contains(name)).cloned().collect()
    };
    let (new, gone) = (missing(before, after), missing(after, before));
    if !gone.is_empty() {
        lines.add(format_args!("\nTools that are gone: {}", gone.join(", ")));
    }
    if !new.is_empty() {
        lines.add(format_args!("\nNew tools: {}", new.join(", ")));
        lines.add("New tools can be called now.");
    }
    lines.done()
}

/// An extension's files were loaded once.
pub fn checked(id: &str, folder: &Path, report: &CheckReport) -> String {
    let mut lines = Lines::default();
    if report.ok {
        lines.add(format_args!("{id}: the files on disk load ({})", folder.display()));
    } else {
        lines.add(format_args!("{id}: the files on disk do not load ({})", folder.display()));
    }
    if let Some(error) = &report.error {
        whole(&mut lines, error);
    }
    if let Some(ready) = report.ready {
        let (wall, cpu) = (ready.wall_us as f64 / 1000.0, ready.cpu_us as f64 / 1000.0);
        lines.add(format_args!("Ready after {wall:.1} ms, with {cpu:.1} ms of CPU."));
    }
    lines.section("Warnings:", report.warnings.iter().cloned());
    let tools = report.tools.iter().map(|tool| with_text(&tool.name, &tool.description));
    lines.section("Tools:", tools);
    lines.section("Hooks:", report.hooks.iter().map(|hook| hook.name.clone()));
    lines.section("Commands:", report.commands.iter().map(|command| format!("/{}", command.name)));
    lines.done()
}

/// A tool was called to try it.
pub fn called(tool: &str, outcome: ToolOutcome) -> String {
    let result = &outcome.result;
    let how = match result.result_type {
        ResultType::Success => "succeeded",
        ResultType::Failure => "failed",
        ResultType::Rejected => "was rejected",
        ResultType::Denied => "was denied",
        ResultType::Timeout => "took too long",
    };
    let place =
        result.location.as_ref().map(|it| format!(" at {}:{}:{}", it.file, it.line, it.column));
    let place = place.unwrap_or_default();
    format!("Calling {tool} {how}{place}:\n{}", fenced(&outcome.text_for_model()))
}

#[cfg(test)]
mod tests {
    use super::super::text::fixtures::error;
    use super::super::text::fixtures::failed;
    use super::super::text::fixtures::places;
    use super::super::text::fixtures::running;
    use super::*;
    use crate::tool::ToolResult;

    fn report(extensions: Vec<ExtensionInfo>) -> ReloadReport {
        ReloadReport {
            extensions,
            reloaded: Vec::new(),
            added: Vec::new(),
            removed: Vec::new(),
            waiting: Vec::new(),
            failed: Vec::new(),
        }
    }

    #[test]
    fn a_reload_says_which_tools_came_and_went() {
        let names =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let both = report(vec![running("a", &["new"]), failed("b")]);
        let text = reloaded(&both, &names(&["old", "kept"]), &names(&["kept", "new"]), &places());
        assert!(
            text.starts_with(
                "Extensions: 2 (1 running, 1 failed)\n\n- a — running (generation 3)\n"
            )
        );
        assert!(
            text.contains("- b — failed: SyntaxError: unexpected token at /w/a.mjs:12:9"),
            "{text}"
        );
        assert!(text.contains("  12 | const x =;"), "{text}");
        assert!(text.contains("Tools that are gone: old"), "{text}");
        assert!(text.ends_with("New tools: new\nNew tools can be called now."), "{text}");
        let same = reloaded(&both, &names(&["kept"]), &names(&["kept"]), &places());
        assert!(!same.contains("ew tools") && !same.contains("gone"), "{same}");
        let none = reloaded(&report(Vec::new()), &[], &[], &places());
        assert!(none.starts_with("There are no extensions."), "{none}");
    }

    #[test]
    fn a_reload_says_that_an_older_version_goes_on() {
        let mut kept = running("a", &["one"]);
        kept.error = Some(error());
        let text = reloaded(&report(vec![kept]), &[], &[], &places());
        assert!(text.contains("running (generation 3), but not what is on disk now"), "{text}");
        assert!(text.contains("/w/a.mjs:12:9"), "{text}");
    }

    #[test]
    fn a_new_extension_that_will_not_run_says_so() {
        let made = Scaffolded {
            hash: String::new(),
            folder: "/w/a".into(),
            entry: "/w/a/extension.mjs".into(),
            tool: Some("a_example".into()),
        };
        let text = scaffolded(&made, true);
        assert!(text.starts_with("Made /w/a/extension.mjs\n"), "{text}");
        assert!(
            text.contains("extensions_reload; its tool a_example can then be called"),
            "{text}"
        );
        assert!(scaffolded(&made, false).contains("not trusted"));
    }

    #[test]
    fn switching_says_what_became_of_it() {
        let mut off = running("a", &[]);
        let why = LoadError::new("switched off by the agent", None);
        off.fail(Status::Disabled, why);
        let text = switched(&off);
        assert!(text.starts_with("a — disabled: switched off by the agent\n"), "{text}");
        assert!(switched(&running("a", &["one"])).ends_with("Tools: one"));
    }

    #[test]
    fn a_check_reads_like_a_linter() {
        let mut report = CheckReport {
            ok: false,
            error: Some(error()),
            tools: Vec::new(),
            hooks: Vec::new(),
            commands: Vec::new(),
            warnings: Vec::new(),
            ready: None,
        };
        let text = checked("project:a", Path::new("/w"), &report);
        assert!(text.contains("do not load (/w)\n/w/a.mjs:12:9: SyntaxError"), "{text}");
        report.ok = true;
        report.error = None;
        report.tools = running("a", &["one"]).tools;
        report.warnings = vec!["the tool \"one\" has no handler".into()];
        let text = checked("project:a", Path::new("/w"), &report);
        assert!(text.contains("\nWarnings:\n- the tool \"one\" has no handler\n"), "{text}");
        assert!(text.ends_with("Tools:\n- one: Does it"), "{text}");
    }

    #[test]
    fn a_call_says_how_it_went() {
        let outcome = |result| ToolOutcome {
            result,
            before: Vec::new(),
            after: Vec::new(),
            ends_turn: false,
            suppress_output: false,
        };
        let text = called("one", outcome(ToolResult::success("Hi")));
        assert_eq!(text, "Calling one succeeded:\n```\nHi\n```");
        assert!(called("one", outcome(ToolResult::denied("no"))).contains("was denied"));
    }
}
