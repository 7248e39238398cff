//! Lines about what happens beside the conversation: what extensions say, how they fare, plans, figures.

use std::collections::BTreeMap;

use anstyle::Style;
use serde_json::Value;

use super::figures;
use super::look::Look;
use super::lookup::Lookup;
use crate::sanitise::clean;
use crate::sanitise::one_line;

/// The most lines of one notice; extensions may log whole files.
const MAX_LINES: usize = 20;

/// The longest title of a step, in characters.
const MAX_STEP: usize = 200;

/// What is known of the things that notices are about.
pub struct Notices {
    look: Look,
    /// The extensions, as they were last heard of; none before the first time.
    extensions: Option<BTreeMap<String, Known>>,
    /// The plan that was shown last.
    plan: String,
    figures: Figures,
}

/// An extension as it was last heard of.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    status: String,
    generation: u64,
    /// What was said about its trouble.
    trouble: Option<String>,
}

/// What a turn took.
#[derive(Debug, Default)]
struct Figures {
    began: Option<i64>,
    input: u64,
    output: u64,
    cost: f64,
    context: Option<(u64, u64)>,
}

impl Notices {
    /// Nothing known yet.
    pub fn new(look: Look) -> Self {
        Self { look, extensions: None, plan: String::new(), figures: Figures::default() }
    }

    /// A notice of somebody, or of the session itself.
    pub fn said(&self, who: Option<&str>, text: &str, style: Style) -> String {
        let look = self.look;
        let text = clean(text);
        let mut lines = text.trim_end().lines();
        let first = lines.next().unwrap_or_default();
        let who = who.map(|who| one_line(who, 80)).filter(|who| !first.starts_with(who.as_str()));
        let name = match who {
            Some(who) => format!("{}{who}:{:#} ", look.name, look.name),
            None => String::new(),
        };
        let says = look.faint;
        let mut out = format!("{says}{}{says:#} {name}{style}{first}{style:#}\n", look.says);
        let rest: Vec<_> = lines.collect();
        for line in rest.iter().take(MAX_LINES) {
            out.push_str(&format!("  {style}{line}{style:#}\n"));
        }
        if rest.len() > MAX_LINES {
            let more = rest.len() - MAX_LINES;
            out.push_str(&format!("  {says}... {more} more lines{says:#}\n"));
        }
        out
    }

    /// `session.info`, `session.warning` or `session.error`.
    pub fn session(&self, kind: &str, data: &Value) -> String {
        let message = data["message"].as_str().unwrap_or_default();
        // The line of the tool says that it was denied, by whom and why.
        let told = data["infoType"] == "denied" && data["toolCallId"].is_string();
        if data["suppressOutput"] == true || told || message.trim().is_empty() {
            return String::new();
        }
        let (word, style) = match kind {
            "session.error" => ("error", self.look.bad),
            "session.warning" => ("warning", self.look.doubtful),
            _ => ("", Style::new()),
        };
        let who = data["extensionId"].as_str();
        if data["warningType"] == "extension_reload_failed" && self.is_told(who, message) {
            return String::new();
        }
        let mut out = match who {
            Some(who) => self.said(Some(who), message, style),
            None => self.said(Some(word).filter(|word| !word.is_empty()), message, style),
        };
        for field in ["url", "tip"] {
            if let Some(more) = data[field].as_str() {
                let faint = self.look.faint;
                out.push_str(&format!("  {faint}{}{faint:#}\n", one_line(more, 500)));
            }
        }
        out
    }

    /// Whether the trouble of an extension was told already, when its state changed.
    fn is_told(&self, extension: Option<&str>, message: &str) -> bool {
        let known = self.extensions.as_ref().zip(extension);
        let trouble = known.and_then(|(known, id)| known.get(id)?.trouble.as_deref());
        let what = trouble.and_then(|trouble| trouble.split(" (").next());
        what.is_some_and(|what| !what.is_empty() && message.contains(what))
    }

    /// `session.extensions_loaded`: which have changed since it was last said.
    pub fn extensions(&mut self, data: &Value, lookup: &Lookup) -> String {
        let mut out = String::new();
        let mut now = BTreeMap::new();
        let before = self.extensions.take();
        for info in data["extensions"].as_array().into_iter().flatten() {
            let Some(id) = info["id"].as_str() else { continue };
            let status = info["status"].as_str().unwrap_or_default().to_owned();
            let generation = info["generation"].as_u64().unwrap_or_default();
            let known = before.as_ref().and_then(|before| before.get(id));
            let mut entry = Known { status, generation, trouble: None };
            let same = known.is_some_and(|known| {
                known.status == entry.status && known.generation == entry.generation
            });
            if same {
                entry.trouble = known.and_then(|known| known.trouble.clone());
            } else {
                let error = info["error"].as_str().map(str::to_owned);
                entry.trouble = error.or_else(|| lookup.trouble(id));
                let first = before.is_none();
                out.push_str(&self.changed(id, known, &entry, first));
            }
            now.insert(id.to_owned(), entry);
        }
        let gone = before.iter().flatten().filter(|(id, _)| !now.contains_key(*id));
        for (id, _) in gone {
            out.push_str(&self.said(Some(id), "removed", self.look.faint));
        }
        self.extensions = Some(now);
        out
    }

    /// What there is to say of an extension that is not as it was.
    fn changed(&self, id: &str, before: Option<&Known>, now: &Known, first: bool) -> String {
        let trouble = now.trouble.as_deref();
        match (&*now.status, before) {
            ("running", _) if first => String::new(),
            ("running", None) => self.said(Some(id), "loaded", self.look.good),
            ("running", Some(before)) if now.generation > before.generation => {
                let text = format!("reloaded (generation {})", now.generation);
                self.said(Some(id), &text, self.look.good)
            }
            ("failed", _) => {
                let text = match trouble {
                    Some(trouble) => format!("failed: {trouble}"),
                    None => format!("failed; tenon ext inspect {id} says why"),
                };
                self.said(Some(id), &text, self.look.bad)
            }
            ("disabled", _) if !first => {
                let text = match trouble {
                    Some(trouble) => format!("disabled: {trouble}"),
                    None => "disabled".to_owned(),
                };
                self.said(Some(id), &text, self.look.doubtful)
            }
            _ => String::new(),
        }
    }

    /// `assistant.plan`: the whole plan as a checklist. The same plan again is not shown again.
    pub fn plan(&mut self, data: &Value) -> String {
        let look = self.look;
        let mut out = String::new();
        for step in data["entries"].as_array().into_iter().flatten() {
            let (sign, style) = match step["status"].as_str() {
                Some("completed") => (look.steps[2], look.faint),
                Some("in_progress") => (look.steps[1], look.name),
                _ => (look.steps[0], Style::new()),
            };
            let text = one_line(step["content"].as_str().unwrap_or_default(), MAX_STEP);
            out.push_str(&format!("{style}{sign} {text}{style:#}\n"));
        }
        if out == self.plan {
            return String::new();
        }
        self.plan.clone_from(&out);
        out
    }

    /// A turn begins.
    pub fn turn_start(&mut self, timestamp: &str) {
        self.figures = Figures { began: figures::milliseconds(timestamp), ..Figures::default() };
        self.plan.clear();
    }

    /// `assistant.usage`.
    pub fn usage(&mut self, data: &Value) {
        let figures = &mut self.figures;
        figures.input += data["inputTokens"].as_u64().unwrap_or_default();
        figures.output += data["outputTokens"].as_u64().unwrap_or_default();
        figures.cost += data["cost"].as_f64().unwrap_or_default();
    }

    /// `session.usage_info`.
    pub fn context(&mut self, data: &Value) {
        let numbers = data["currentTokens"].as_u64().zip(data["tokenLimit"].as_u64());
        if let Some(numbers) = numbers {
            self.figures.context = Some(numbers);
        }
    }

    /// A turn has ended: what it took, if the agent said.
    pub fn turn_end(&mut self, timestamp: &str) -> String {
        let figures = std::mem::take(&mut self.figures);
        let mut parts = Vec::new();
        if figures.input + figures.output > 0 {
            let (input, output) = (figures::count(figures.input), figures::count(figures.output));
            parts.push(format!("{input} tokens in, {output} out"));
        }
        if figures.cost > 0.0 {
            parts.push(format!("cost {:.2}", figures.cost));
        }
        if let Some((used, limit)) = figures.context.filter(|(_, limit)| *limit > 0) {
            let percent = (used as f64 / limit as f64 * 100.0).round();
            parts.push(format!("{percent} % of {} in use", figures::count(limit)));
        }
        if parts.is_empty() {
            return String::new();
        }
        if let Some((now, began)) = figures::milliseconds(timestamp).zip(figures.began) {
            parts.push(figures::duration(now - began));
        }
        let faint = self.look.faint;
        format!("{faint}{}{faint:#}\n", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn notices() -> Notices {
        Notices::new(Look::new(false))
    }

    fn extensions(list: &[(&str, &str, u64)]) -> Value {
        let list: Vec<_> = list
            .iter()
            .map(|(id, status, generation)| {
                json!({ "id": id, "status": status, "generation": generation })
            })
            .collect();
        json!({ "extensions": list })
    }

    #[test]
    fn what_extensions_say_has_their_name_once() {
        let notices = notices();
        let said = |kind: &str, data: Value| notices.session(kind, &data);
        let info = json!({ "message": "one\ntwo", "extensionId": "project:guard" });
        assert_eq!(said("session.info", info), "> project:guard: one\n  two\n");
        let named =
            json!({ "message": "project:guard blocked it", "extensionId": "project:guard" });
        assert_eq!(said("session.warning", named), "> project:guard blocked it\n");
        assert_eq!(said("session.error", json!({ "message": "broken" })), "> error: broken\n");
        assert_eq!(said("session.info", json!({ "message": "fact" })), "> fact\n");
        let hidden = json!({ "message": "x", "suppressOutput": true });
        assert_eq!(said("session.info", hidden), "");
        let denied = json!({ "message": "x", "infoType": "denied", "toolCallId": "1" });
        assert_eq!(said("session.info", denied), "");
        let linked = json!({ "message": "see", "url": "http://a" });
        assert_eq!(said("session.info", linked), "> see\n  http://a\n");
    }

    #[test]
    fn a_long_notice_is_cut() {
        let text = (0..100).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
        let said = notices().said(None, &text, Style::new());
        assert_eq!(said.lines().count(), MAX_LINES + 2);
        assert!(said.ends_with("  ... 79 more lines\n"), "{said}");
    }

    #[test]
    fn only_what_has_changed_about_extensions_is_said() {
        let mut notices = notices();
        let lookup = Lookup::default();
        let mut heard = |list: &[(&str, &str, u64)]| notices.extensions(&extensions(list), &lookup);
        let first = heard(&[("project:a", "running", 1), ("project:b", "failed", 1)]);
        assert_eq!(first, "> project:b: failed; tenon ext inspect project:b says why\n");
        assert_eq!(heard(&[("project:a", "running", 1), ("project:b", "failed", 1)]), "");
        let reloaded = heard(&[("project:a", "running", 2), ("project:b", "running", 2)]);
        let expected =
            "> project:a: reloaded (generation 2)\n> project:b: reloaded (generation 2)\n";
        assert_eq!(reloaded, expected);
        let changed = heard(&[("project:a", "disabled", 2), ("project:c", "running", 1)]);
        let expected = "> project:a: disabled\n> project:c: loaded\n> project:b: removed\n";
        assert_eq!(changed, expected);
    }

    #[test]
    fn trouble_is_told_with_its_place_and_once() {
        let mut notices = notices();
        let lookup = Lookup::default();
        notices.extensions(&extensions(&[("project:a", "running", 1)]), &lookup);
        let data = json!({ "extensions": [{
            "id": "project:a", "status": "failed", "generation": 2,
            "error": "SyntaxError: x (/a/extension.mjs:1:2)",
        }] });
        let said = notices.extensions(&data, &lookup);
        assert_eq!(said, "> project:a: failed: SyntaxError: x (/a/extension.mjs:1:2)\n");
        let warning = json!({
            "warningType": "extension_reload_failed",
            "extensionId": "project:a",
            "message": "project:a could not be loaded: SyntaxError: x\n    at /a/extension.mjs:1:2",
        });
        assert_eq!(notices.session("session.warning", &warning), "");
        let other = json!({
            "warningType": "extension_reload_failed",
            "extensionId": "project:a",
            "message": "project:a could not be loaded: TypeError: y\n    at /a/extension.mjs:3:4",
        });
        let said = notices.session("session.warning", &other);
        assert!(said.contains("TypeError: y") && said.contains(":3:4"), "{said}");
    }

    #[test]
    fn a_plan_is_a_checklist_that_is_shown_when_it_changes() {
        let mut notices = notices();
        let plan = json!({ "entries": [
            { "content": "look", "status": "completed" },
            { "content": "do\nit", "status": "in_progress" },
            { "content": "check", "status": "pending" },
        ] });
        assert_eq!(notices.plan(&plan), "[x] look\n[>] do\n[ ] check\n");
        assert_eq!(notices.plan(&plan), "");
    }

    #[test]
    fn a_turn_says_what_it_took_if_that_is_known() {
        let mut notices = notices();
        notices.turn_start("2026-01-01T00:00:00.000Z");
        assert_eq!(notices.turn_end("2026-01-01T00:00:02.000Z"), "");
        notices.turn_start("2026-01-01T00:00:00.000Z");
        notices.usage(&json!({ "inputTokens": 1_000, "outputTokens": 20, "cost": null }));
        notices.usage(&json!({ "inputTokens": 234, "outputTokens": null }));
        notices.context(&json!({ "currentTokens": 50_000, "tokenLimit": 200_000 }));
        let said = notices.turn_end("2026-01-01T00:00:02.500Z");
        assert_eq!(said, "1.2k tokens in, 20 out, 25 % of 200k in use, 2.5 s\n");
    }
}
