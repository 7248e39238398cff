//! What a terminal sends, and what is written to one.
//!
//! Keys are the same however their bytes are cut, and a character is one that shows itself; of what somebody else wrote, no
//! character reaches the terminal that it would obey, beside the colours that are put there or kept.

#![no_main]

// The files name these as modules of their crate.
use tenon_console::output;
use tenon_console::sanitise;

#[path = "../../runtime/cli/src/terminal"]
mod terminal {
    #[allow(dead_code)]
    pub mod markdown;

    pub mod keys {
        #[allow(dead_code)]
        pub mod decoder;
    }
}

use libfuzzer_sys::fuzz_target;
use sanitise::Sanitiser;
use tenon_fuzz::is_harmless;
use terminal::keys::decoder::Decoder;
use terminal::keys::decoder::Key;
use terminal::keys::decoder::MAX_PASTE;
use terminal::markdown::Markdown;

fuzz_target!(|data: &[u8]| {
    let [kind, cut, rest @ ..] = data else { return };
    let part = usize::from(cut % 9) + 1;
    let text = String::from_utf8_lossy(rest);
    match kind % 8 {
        0..=2 => keys(rest, part),
        3 => sanitiser(&text, part),
        4 => colours(&text),
        5 => rest_of_sanitise(&text, part),
        _ => markdown(&text, part, kind & 8 == 0),
    }
});

fn keys(bytes: &[u8], part: usize) {
    let mut decoder = Decoder::default();
    let mut whole = decoder.decode(bytes);
    let waiting = decoder.is_waiting();
    let last = decoder.give_up_waiting();
    assert_eq!(last.is_some(), waiting);
    assert!(!decoder.is_waiting() && decoder.give_up_waiting().is_none());
    whole.extend(last);
    let mut decoder = Decoder::default();
    let mut parts: Vec<_> = bytes.chunks(part).flat_map(|part| decoder.decode(part)).collect();
    parts.extend(decoder.give_up_waiting());
    assert_eq!(whole, parts);
    assert!(whole.len() <= bytes.len() + 1);
    for key in whole {
        match key {
            Key::Char(c) => assert!(!c.is_control(), "{c:?}"),
            Key::Alt(c) => assert!((' '..='~').contains(&c), "{c:?}"),
            Key::Ctrl(c) => assert!(c.is_ascii_lowercase(), "{c:?}"),
            Key::Paste(text) => assert!(text.len() <= 3 * MAX_PASTE && !text.contains('\r')),
            _ => {}
        }
    }
    // Whatever was pressed, the next keys are understood.
    let mut decoder = Decoder::default();
    let _ = decoder.decode(bytes);
    if bytes.windows(4).any(|part| part == b"200~") {
        // Whatever belongs to what is pasted ends here.
        let _ = decoder.decode(b"\x1b[201~");
    }
    assert_eq!(decoder.decode(b"\x1b[A").last(), Some(&Key::Up));
    assert_eq!(decoder.decode(b"a"), [Key::Char('a')]);
}

fn parts(text: &str, part: usize) -> Vec<String> {
    let all: Vec<char> = text.chars().collect();
    all.chunks(part).map(|part| part.iter().collect()).collect()
}

fn sanitiser(text: &str, part: usize) {
    let whole = sanitise::clean(text);
    assert!(whole.chars().all(is_harmless), "{whole:?}");
    assert_eq!(sanitise::clean(&whole), whole);
    assert!(whole.len() <= text.len());
    let mut sanitiser = Sanitiser::default();
    let cut: String = parts(text, part).iter().map(|part| sanitiser.clean(part)).collect();
    assert_eq!(cut, whole);
    // What begins in one line hides nothing of the next.
    let next = sanitise::clean(&format!("{text}\nnext"));
    assert!(next.ends_with("\nnext"), "{next:?}");
    if text.chars().all(is_harmless) {
        assert_eq!(whole, text);
    }
}

/// A text without the sequences for colours.
fn without_colours(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        out.push_str(&rest[..at]);
        let sequence = &rest[at + 2..];
        let end = sequence.find(|c: char| !matches!(c, '0'..='9' | ';')).expect("it ends");
        assert!(sequence[end..].starts_with('m'), "{text:?} has a sequence that is no colour");
        rest = &sequence[end + 1..];
    }
    out + rest
}

fn colours(text: &str) {
    let kept = sanitise::keep_colours(text);
    let plain = without_colours(&kept);
    assert!(plain.chars().all(is_harmless), "{kept:?}");
    assert_eq!(sanitise::keep_colours(&kept), kept);
}

fn rest_of_sanitise(text: &str, part: usize) {
    assert!(sanitise::visible(text).chars().all(is_harmless));
    let line = sanitise::one_line(text, 3 + part);
    assert!(line.chars().all(is_harmless) && !line.contains(['\n', '\t']), "{line:?}");
    assert!(line.chars().count() <= 3 + part);
    let json = serde_json::to_string(text).unwrap();
    let escaped = sanitise::escape_in_json(&json);
    assert!(escaped.chars().all(is_harmless));
    assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
}

fn markdown(text: &str, part: usize, colour: bool) {
    let render = |parts: &[String]| {
        let mut markdown = Markdown::new(colour);
        let mut out: String = parts.iter().map(|part| markdown.push(part)).collect();
        out.push_str(&markdown.finish());
        assert_eq!(markdown.finish(), "", "something was left");
        out
    };
    let whole = render(&[text.to_owned()]);
    let plain = without_colours(&whole);
    assert!(plain.chars().all(is_harmless), "{whole:?}");
    assert!(whole.is_empty() || plain.ends_with('\n'));
    assert!(colour || plain == whole);
    let cut = without_colours(&render(&parts(text, part)));
    // A run that is too long to wait for is shown as it is once it is cut.
    assert!(plain == cut || text.len() > 4096, "{plain:?} and in parts {cut:?}");
}
