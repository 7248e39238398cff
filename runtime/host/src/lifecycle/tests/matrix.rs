//! Every input in every state of the load that it is about.

use super::*;
use crate::extension::LoadError;
use crate::extension::Status;

/// Where the load is that an input is about.
const STATES: [&str; 10] = [
    // Of a generation that never was, or is gone.
    "absent",
    // Beside a load that serves.
    "next, starting",
    "next, joined",
    // The load that served has ended.
    "next, joined, alone",
    // The first load, which serves as far as it can.
    "current, starting",
    "current, joined",
    "current, running",
    "current, stopping",
    // Beside the one that has replaced it.
    "draining",
    "draining, stopping",
];

/// For each input what comes of it in each of the states: the names of its effects; `illegal` if it changes nothing and is a line
/// in the log; `ignored` if it changes nothing at all; `refused` if whoever asked is told so, and nothing changes; `quiet` if it
/// changes the table alone.
const MATRIX: [(&str, [&str; 10]); 19] = [
    (
        "process started",
        [
            "ignored", "mark", "illegal", "illegal", "mark", "illegal", "illegal", "illegal",
            "illegal", "illegal",
        ],
    ),
    (
        "join",
        [
            "refused",
            "quiet",
            "quiet",
            "quiet",
            "subscribe",
            "subscribe",
            "subscribe offers",
            "refused",
            "refused",
            "refused",
        ],
    ),
    (
        "leave",
        [
            "ignored",
            "illegal",
            "quiet",
            "quiet",
            "illegal",
            "subscribe canvases offers",
            "subscribe canvases offers",
            "subscribe canvases offers",
            "quiet",
            "quiet",
        ],
    ),
    (
        "subscribe",
        [
            "ignored",
            "quiet",
            "quiet",
            "quiet",
            "subscribe",
            "subscribe",
            "subscribe",
            "subscribe",
            "quiet",
            "quiet",
        ],
    ),
    (
        "files",
        [
            "ignored", "files", "files", "files", "files", "files", "files", "files", "ignored",
            "ignored",
        ],
    ),
    (
        "ready",
        [
            "ignored",
            "illegal",
            "subscribe subscribe mark canvases drain changed offers",
            "subscribe mark changed offers",
            "illegal",
            "mark changed offers",
            "illegal",
            "ignored",
            "ignored",
            "ignored",
        ],
    ),
    (
        "throw",
        [
            "ignored",
            "mark log drop changed offers",
            "mark log drop changed offers",
            "mark log drop changed offers",
            "mark log drop canvases changed offers",
            "mark log drop canvases changed offers",
            "mark log mark drop canvases changed offers restart",
            "mark log mark drop canvases changed offers restart",
            "mark log drop changed offers",
            "mark log drop changed offers",
        ],
    ),
    (
        "die with the zygote",
        [
            "ignored",
            "mark log drop changed offers",
            "mark log drop changed offers",
            "mark log drop changed offers",
            "mark log drop canvases changed offers restart",
            "mark log drop canvases changed offers restart",
            "mark log drop canvases changed offers restart",
            "mark log drop canvases changed offers restart",
            "mark log drop changed offers",
            "mark log drop changed offers",
        ],
    ),
    (
        "find the port taken",
        [
            "ignored",
            "mark log drop changed offers port?",
            "mark log drop changed offers port?",
            "mark log drop changed offers",
            "mark log drop canvases changed offers",
            "mark log drop canvases changed offers",
            "mark log mark drop canvases changed offers restart",
            "mark log mark drop canvases changed offers restart",
            "mark log drop changed offers",
            "mark log drop changed offers",
        ],
    ),
    (
        "end as told",
        [
            "ignored",
            "mark drop changed offers",
            "mark drop changed offers",
            "mark drop changed offers",
            "mark drop canvases changed offers",
            "mark drop canvases changed offers",
            "mark drop canvases changed offers",
            "mark drop canvases changed offers",
            "mark drop changed offers",
            "mark drop changed offers",
        ],
    ),
    (
        "stop",
        [
            "ignored", "quiet", "quiet", "quiet", "quiet", "quiet", "quiet", "ignored", "quiet",
            "ignored",
        ],
    ),
    (
        "stopped",
        [
            "changed",
            "drop changed",
            "drop changed",
            "drop changed",
            "drop canvases changed",
            "drop canvases changed",
            "drop canvases changed",
            "drop canvases changed",
            "drop changed",
            "drop changed",
        ],
    ),
    (
        "begin",
        ["quiet", "drop", "drop", "drop", "quiet", "quiet", "quiet", "quiet", "quiet", "quiet"],
    ),
    (
        "attach what was not begun",
        [
            "refused", "refused", "refused", "refused", "refused", "refused", "refused", "refused",
            "refused", "refused",
        ],
    ),
    (
        "retire",
        [
            "subscribe canvases drain changed offers",
            "drop subscribe canvases drain changed offers",
            "drop subscribe canvases drain changed offers",
            "drop forgotten changed offers",
            "subscribe canvases drain changed offers",
            "subscribe canvases drain changed offers",
            "subscribe canvases drain changed offers",
            "subscribe canvases drain changed offers",
            "subscribe canvases drain changed offers",
            "subscribe canvases drain changed offers",
        ],
    ),
    (
        "block",
        [
            "subscribe canvases drain changed offers",
            "drop subscribe canvases drain changed offers",
            "drop subscribe canvases drain changed offers",
            "drop changed",
            "subscribe canvases drain changed offers",
            "subscribe canvases drain changed offers",
            "subscribe canvases drain changed offers",
            "subscribe canvases drain changed offers",
            "subscribe canvases drain changed offers",
            "subscribe canvases drain changed offers",
        ],
    ),
    (
        "hold",
        [
            "changed",
            "changed",
            "changed",
            "drop changed",
            "changed",
            "changed",
            "changed",
            "changed",
            "changed",
            "changed",
        ],
    ),
    (
        "give up the start",
        [
            "ignored",
            "ignored",
            "ignored",
            "ignored",
            "drop canvases",
            "drop canvases",
            "ignored",
            "ignored",
            "ignored",
            "ignored",
        ],
    ),
    (
        "answer about a port of a plan that was overtaken",
        [
            "ignored", "ignored", "ignored", "ignored", "ignored", "ignored", "ignored", "ignored",
            "ignored", "ignored",
        ],
    ),
];

/// A world with a load in the given state.
fn world(state: &str) -> (World, Peer) {
    let mut world = World::default();
    let first = world.start("a");
    if let Some(how) = state.strip_prefix("current, ") {
        match how {
            "starting" => {}
            "joined" => world.join(&first),
            _ => drop(world.run(&first)),
        }
        if how == "stopping" {
            assert!(world.stopping(&first).is_some());
        }
        return (world, first);
    }
    world.run(&first);
    if state == "absent" {
        return (world, peer("a", 99));
    }
    let second = world.start("a");
    match state {
        "next, starting" => (world, second),
        "next, joined" => {
            world.join(&second);
            (world, second)
        }
        "next, joined, alone" => {
            world.join(&second);
            world.end(&first, threw("boom"));
            (world, second)
        }
        "draining" => {
            world.run(&second);
            (world, first)
        }
        "draining, stopping" => {
            world.run(&second);
            assert!(world.stop_if_drained(&first));
            (world, first)
        }
        other => unreachable!("{other}"),
    }
}

/// What an input returns: its effects, or nothing if it was refused.
fn run(input: &str, world: &mut World, peer: &Peer) -> Option<Effects<Fake>> {
    let key = &peer.key;
    let died = EndReason::ProcessDied { how: "it ended".to_owned(), with_zygote: true };
    let taken = "Error: listen EADDRINUSE: address already in use 127.0.0.1:3000";
    let no = || LoadError::new("no", None);
    Some(match input {
        "process started" => world.process_started(peer, 8, Layers::default()),
        "join" => return world.joined(peer, tools(&["a", "other"])).ok(),
        "leave" => world.left(peer),
        "subscribe" => world.subscribed(peer, |filter| filter.add("another")),
        "files" => {
            let file = tenon_protocol::message::LoadedFile {
                path: key.2.join("file.mjs"),
                hash: "1".to_owned(),
                is_package: false,
                is_refused: false,
            };
            world.files_read(peer, vec![file], &key.2)
        }
        "ready" => world.ready(peer, report(), Instant::now()),
        "throw" => world.end(peer, threw("boom")),
        "die with the zygote" => world.end(peer, End::new(died, false)),
        "find the port taken" => world.end(peer, threw(taken)),
        "end as told" => world.end(peer, End::new(EndReason::Stopped, true)),
        "stop" => {
            world.stopping(peer);
            Effects::new()
        }
        "stopped" => world.stopped(peer),
        "begin" => world.begin(key, BTreeMap::new())?.1,
        "attach what was not begun" => {
            return world.attach(peer, None, Fake::default()).ok();
        }
        "retire" => world.retire(key, Stays::No),
        "block" | "hold" => {
            let held = (input == "hold").then(|| "hash".to_owned());
            let by = Obstructed { status: Status::Untrusted, error: no(), held };
            world.blocked(key, by, BTreeMap::new())
        }
        "give up the start" => world.give_up_start(key),
        "answer about a port of a plan that was overtaken" => {
            world.port_answered(key, 3000, 1_000, true)
        }
        other => unreachable!("{other}"),
    })
}

#[test]
fn every_input_in_every_state() {
    for (input, cells) in MATRIX {
        for (state, expected) in STATES.into_iter().zip(cells) {
            let (mut world, peer) = world(state);
            let before = world.clone();
            let outcome = run(input, &mut world, &peer);
            let is_same = world == before;
            let got = match &outcome {
                None => "refused".to_owned(),
                Some(effects) if effects.is_empty() && is_same => "ignored".to_owned(),
                Some(effects) if effects.is_empty() => "quiet".to_owned(),
                Some(effects) => names(effects),
            };
            assert_eq!(got, expected, "{input}; {state}");
            if matches!(expected, "refused" | "ignored" | "illegal") {
                assert!(is_same, "{input}; {state}: nothing changes");
            }
        }
    }
}

#[test]
fn nothing_is_known_of_an_extension_that_was_never_found() {
    for (input, _) in MATRIX {
        let (mut world, _) = world("current, running");
        let before = world.clone();
        let effects = run(input, &mut world, &peer("stranger", 1)).unwrap_or_default();
        assert!(matches!(names(&effects).as_str(), "" | "changed" | "changed offers"), "{input}");
        // Whoever looks at what serves may count on what is there in any epoch.
        world.epoch = before.epoch;
        assert_eq!(world, before, "{input}");
    }
}
