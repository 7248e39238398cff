//! What commands list, as tables.

use anstyle::Style;
use chrono::DateTime;
use chrono::Utc;
use serde_json::Value;
use tenon_acp::record::SessionRecord;
use tenon_host::session::ToolListing;

use crate::catalogue;
use crate::output::BOLD;
use crate::output::CYAN;
use crate::output::DIM;
use crate::output::GREEN;
use crate::output::Table;
use crate::sanitise::one_line;

/// The longest description in a table, in characters.
pub const MAX_DESCRIPTION: usize = 80;

/// A text of somebody else, in a cell.
pub fn cell(text: &str) -> String {
    one_line(text, MAX_DESCRIPTION)
}

/// Tools, and whose they are.
pub fn tools(tools: Vec<ToolListing>) -> Table {
    let mut table = Table::new(&["TOOL", "EXTENSION", "DESCRIPTION"]);
    for listing in tools {
        table.row(vec![
            (cell(&listing.tool.name), BOLD),
            (listing.extension_id.unwrap_or_else(|| "tenon".to_owned()), CYAN),
            (cell(&listing.tool.description), Style::new()),
        ]);
    }
    table
}

/// Sessions that can go on.
pub fn sessions(sessions: Vec<SessionRecord>, now: DateTime<Utc>) -> Table {
    let mut table = Table::new(&["ID", "AGENT", "WHEN", "TITLE"]);
    for record in sessions {
        let then = DateTime::parse_from_rfc3339(&record.updated);
        let when = then.map(|then| catalogue::age(then.to_utc(), now)).unwrap_or_default();
        table.row(vec![
            (record.id, BOLD),
            (record.agent, Style::new()),
            (when, DIM),
            (cell(record.title.as_deref().unwrap_or("-")), Style::new()),
        ]);
    }
    table
}

/// Things with an `id`, and which of them is in use.
pub fn choices(choices: &[Value], current: Option<&str>) -> Table {
    let mut table = Table::new(&["", "ID", "NAME", "DESCRIPTION"]);
    for choice in choices {
        let text = |field: &str| choice[field].as_str().unwrap_or_default();
        let mark = if current == Some(text("id")) { "*" } else { "" };
        table.row(vec![
            (mark.to_owned(), GREEN),
            (cell(text("id")), BOLD),
            (cell(text("name")), Style::new()),
            (cell(text("description")), DIM),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plain(table: &Table) -> Vec<String> {
        let lines = table.lines();
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn the_choice_in_use_is_marked() {
        let all = [json!({ "id": "a", "name": "Alpha" }), json!({ "id": "b\x1b[2J" })];
        let lines = plain(&choices(&all, Some("a")));
        assert!(lines[1].starts_with("*  a   Alpha"), "{lines:?}");
        assert!(lines[2].starts_with("   b"), "{lines:?}");
        assert!(choices(&all, None).lines().iter().all(|line| !line.contains("[2J")));
    }

    #[test]
    fn sessions_say_how_old_they_are() {
        let record = SessionRecord {
            id: "abc".to_owned(),
            agent: "demo".to_owned(),
            acp_session_id: None,
            cwd: "/work".into(),
            title: Some("Fix\nit".to_owned()),
            created: "2026-01-01T00:00:00.000Z".to_owned(),
            updated: "2026-01-01T00:00:00.000Z".to_owned(),
        };
        let now = "2026-01-01T03:00:00Z".parse().unwrap();
        let lines = plain(&sessions(vec![record], now));
        assert_eq!(lines[1], "abc  demo   3 h ago  Fix");
    }
}
