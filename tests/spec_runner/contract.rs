//! The table of the contract: every member has a case, and the document that says which.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use tenon_host::session::SERVED_RPC;
use tenon_tests::folder;

use crate::case::Case;
use crate::text;
use crate::updating;

/// The cases of each member.
type Covered<'a> = BTreeMap<&'a str, Vec<&'a Case>>;

/// A heading of `contract.txt` and the members below it, each with its promise.
struct Group<'a> {
    heading: &'a str,
    members: Vec<(&'a str, &'a str)>,
}

/// Compares `contract.txt`, what the cases say they cover, and `docs/contract.md`.
pub fn every_member_has_a_spec(cases: &[Case]) -> Result<(), String> {
    let source = read(folder("contract.txt"))?;
    let groups = groups(&source)?;
    let covered = covered(cases);
    let mut problems = Vec::new();
    let members: BTreeSet<&str> =
        groups.iter().flat_map(|group| &group.members).map(|(member, _)| *member).collect();
    for member in members.iter().filter(|member| !covered.contains_key(*member)) {
        problems.push(format!("no case covers {member}"));
    }
    for (member, cases) in covered.iter().filter(|(member, _)| !members.contains(*member)) {
        let names: Vec<String> = cases.iter().map(|case| case.name()).collect();
        problems
            .push(format!("{} covers {member}, which is not in contract.txt", names.join(", ")));
    }
    for method in SERVED_RPC.iter().filter(|method| !members.contains(&*format!("rpc.{method}"))) {
        problems.push(format!("rpc.{method} is served and not in contract.txt"));
    }
    let path = document("contract.md");
    let document = render(&groups, &covered, cases.len());
    if updating() {
        std::fs::write(&path, document).map_err(|error| format!("{}: {error}", path.display()))?;
    } else {
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        if let Some(difference) = text::difference(&written, &document) {
            problems.push(format!(
                "docs/contract.md is not up to date; UPDATE_SPECS=1 writes it\n{difference}"
            ));
        }
    }
    all_right(&problems)
}

/// Checks that every event in the table of `docs/events.md` is a member of the contract with a case.
pub fn every_event_has_a_spec(cases: &[Case]) -> Result<(), String> {
    let table = read(document("events.md"))?;
    let covered = covered(cases);
    let types: Vec<&str> = table
        .lines()
        .filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0))
        .collect();
    if types.is_empty() {
        return Err("docs/events.md has no table of events".to_owned());
    }
    let without =
        types.iter().filter(|kind| !covered.contains_key(format!("events.{kind}").as_str()));
    let problems: Vec<String> =
        without.map(|kind| format!("no case covers events.{kind}")).collect();
    all_right(&problems)
}

fn all_right(problems: &[String]) -> Result<(), String> {
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

fn covered(cases: &[Case]) -> Covered<'_> {
    let mut covered = Covered::new();
    for case in cases {
        for member in case.header.iter().flat_map(|header| &header.covers) {
            covered.entry(member).or_default().push(case);
        }
    }
    covered
}

/// Reads `contract.txt`: headings after `#`, and lines `member | promise`.
fn groups(source: &str) -> Result<Vec<Group<'_>>, String> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, line) in source.lines().enumerate() {
        let wrong = |what: &str| format!("contract.txt:{}: {what}: {line}", index + 1);
        if let Some(heading) = line.strip_prefix('#') {
            groups.push(Group { heading: heading.trim(), members: Vec::new() });
        } else if !line.trim().is_empty() {
            let (member, promise) =
                line.split_once(" | ").ok_or_else(|| wrong("not `member | promise`"))?;
            if !seen.insert(member) {
                return Err(wrong("listed twice"));
            }
            let group = groups.last_mut().ok_or_else(|| wrong("above the first heading"))?;
            group.members.push((member, promise));
        }
    }
    Ok(groups)
}

fn render(groups: &[Group<'_>], covered: &Covered<'_>, cases: usize) -> String {
    let members: usize = groups.iter().map(|group| group.members.len()).sum();
    let mut text = format!(
        "# The contract with extensions\n\n\
         {members} members, shown by {cases} cases below `tests/specs`. Made from `tests/contract.txt` and the headers of \
         the cases;\n`UPDATE_SPECS=1 make test` writes it.\n"
    );
    for group in groups {
        // Writing to a string does not fail.
        let _ =
            write!(text, "\n## {}\n\n| member | promise | specs |\n|---|---|---|\n", group.heading);
        for (member, promise) in &group.members {
            let cases = covered.get(member).map(Vec::as_slice).unwrap_or_default();
            let links: Vec<String> = cases.iter().map(|case| link(case)).collect();
            let _ = writeln!(text, "| `{member}` | {promise} | {} |", links.join(", "));
        }
    }
    text
}

fn link(case: &Case) -> String {
    let path = format!("{}/{}", case.area, case.title);
    format!("[{path}](../tests/specs/{path})")
}

fn read(path: PathBuf) -> Result<String, String> {
    std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// A file in the folder `docs` of the repository.
fn document(name: &str) -> PathBuf {
    folder("../docs").join(name)
}
