//! Terminals with real processes.

use std::io::BufRead;
use std::io::BufReader;
use std::path::PathBuf;

use super::*;

/// Runs a line in the shell.
fn run(terminals: &Terminals, line: &str) -> String {
    let command = command(line, &[], &[], Path::new("/"));
    terminals.create(command, DEFAULT_OUTPUT_BYTES).unwrap()
}

async fn finished(terminals: &Terminals, id: &str) -> (Value, Value) {
    let exit = terminals.wait_for_exit(id).await.unwrap();
    (exit, terminals.output(id).unwrap())
}

/// Sees processes begin and end: those that have its pipe open for writing.
struct Witness {
    _folder: tempfile::TempDir,
    pipe: PathBuf,
    begun: oneshot::Receiver<()>,
    ended: oneshot::Receiver<()>,
}

impl Witness {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let (begin, begun) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let path = pipe.clone();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(File::open(path).unwrap());
            reader.read_line(&mut String::new()).unwrap();
            begin.send(()).unwrap();
            reader.read_to_end(&mut Vec::new()).unwrap();
            let _ = end.send(());
        });
        Self { _folder: folder, pipe, begun, ended }
    }

    /// A line that begins with being seen.
    fn line(&self, then: &str) -> String {
        format!("exec 9>'{}'; echo >&9; {then}", self.pipe.display())
    }

    /// Waits until all who were seen are gone.
    async fn gone(self) {
        self.ended.await.unwrap();
    }
}

#[tokio::test]
async fn all_that_a_command_wrote_is_there_when_its_end_is_known() {
    let terminals = Terminals::default();
    // Often enough for the pipe and the end to be noticed in either order; each is three processes to start.
    for _ in 0..5 {
        let id = run(&terminals, "head -c 200000 /dev/zero | tr '\\0' x; echo end >&2; exit 7");
        let (exit, output) = finished(&terminals, &id).await;
        assert_eq!(exit, json!({ "exitCode": 7, "signal": null }));
        assert_eq!(output["exitStatus"], exit);
        assert_eq!(output["truncated"], false);
        let text = output["output"].as_str().unwrap();
        assert_eq!(text.len(), 200_000 + "end\n".len());
        assert!(text.ends_with("xend\n"));
        terminals.release(&id).await.unwrap();
    }
}

#[tokio::test]
async fn output_can_be_read_while_the_command_runs() {
    let terminals = Terminals::default();
    let mut witness = Witness::new();
    let id = run(&terminals, &format!("echo begun; {}", witness.line("sleep 1000")));
    (&mut witness.begun).await.unwrap();
    // The pump may need another turn to see what was written before.
    loop {
        let output = terminals.output(&id).unwrap();
        assert_eq!(output.get("exitStatus"), None);
        if output["output"] == "begun\n" {
            break;
        }
        assert_eq!(output["output"], "");
        tokio::task::yield_now().await;
    }
    terminals.close().await;
    witness.gone().await;
}

#[tokio::test]
async fn a_killed_command_keeps_its_output_until_it_is_released() {
    let terminals = Terminals::default();
    let mut witness = Witness::new();
    let id = run(&terminals, &format!("echo before; {}", witness.line("sleep 1000 & sleep 1000")));
    (&mut witness.begun).await.unwrap();
    let waiting = terminals.wait_for_exit(&id);
    let killing = async { terminals.kill(&id).unwrap() };
    let (exit, ()) = tokio::join!(waiting, killing);
    assert_eq!(exit.unwrap(), json!({ "exitCode": null, "signal": "SIGKILL" }));
    witness.gone().await;
    assert_eq!(terminals.output(&id).unwrap()["output"], "before\n");
    terminals.kill(&id).unwrap();
    terminals.release(&id).await.unwrap();
    let error = terminals.output(&id).unwrap_err();
    assert_eq!(error.code, RpcError::RESOURCE_NOT_FOUND);
    assert!(error.message.contains(&id));
}

#[tokio::test]
async fn whoever_waits_for_a_command_hears_of_its_release() {
    let terminals = Terminals::default();
    let id = run(&terminals, "sleep 1000");
    let waiting = terminals.wait_for_exit(&id);
    let releasing = terminals.release(&id);
    let (exit, released) = tokio::join!(waiting, releasing);
    released.unwrap();
    assert_eq!(exit.unwrap()["signal"], "SIGKILL");
}

#[tokio::test]
async fn what_a_command_leaves_behind_does_not_hide_its_end_and_goes_with_the_terminal() {
    let terminals = Terminals::default();
    let mut witness = Witness::new();
    let id = run(&terminals, &witness.line("sleep 1000 & echo done"));
    (&mut witness.begun).await.unwrap();
    let (exit, output) = finished(&terminals, &id).await;
    assert_eq!(exit["exitCode"], 0);
    assert_eq!(output["output"], "done\n");
    assert!(witness.ended.try_recv().is_err(), "the one left behind ended early");
    terminals.release(&id).await.unwrap();
    witness.gone().await;
}

#[tokio::test]
async fn nothing_is_left_after_closing_and_nothing_starts_then() {
    let terminals = Terminals::default();
    let mut witnesses = Vec::new();
    for _ in 0..3 {
        let mut witness = Witness::new();
        // One that does not listen to requests to end.
        run(&terminals, &witness.line("trap '' TERM HUP INT; sleep 1000 & wait"));
        (&mut witness.begun).await.unwrap();
        witnesses.push(witness);
    }
    terminals.close().await;
    for witness in witnesses {
        witness.gone().await;
    }
    let error = terminals.create(command("true", &[], &[], Path::new("/")), 1).unwrap_err();
    assert!(error.message.contains("has ended"), "{error}");
    terminals.close().await;
}

#[tokio::test]
async fn nothing_is_left_when_the_terminals_are_dropped() {
    let terminals = Terminals::default();
    let mut witness = Witness::new();
    run(&terminals, &witness.line("sleep 1000 & sleep 1000"));
    (&mut witness.begun).await.unwrap();
    let mut going = terminals.state().open.values().next().unwrap().going.clone();
    drop(terminals);
    witness.gone().await;
    // Nor a process that nobody has waited for.
    while going.changed().await.is_ok() {}
}

#[tokio::test]
async fn one_terminal_more_than_allowed_is_refused_until_another_is_released() {
    let terminals = Terminals::default();
    let ids: Vec<_> = (0..MAX_TERMINALS).map(|_| run(&terminals, "true")).collect();
    let one_more = || terminals.create(command("true", &[], &[], Path::new("/")), 1);
    assert!(one_more().unwrap_err().message.contains("32 terminals are open"));
    // Not when it ends: its output is kept until then.
    terminals.wait_for_exit(&ids[0]).await.unwrap();
    assert!(one_more().is_err());
    terminals.release(&ids[0]).await.unwrap();
    one_more().unwrap();
    terminals.close().await;
}

#[tokio::test]
async fn a_command_that_cannot_start_takes_no_place() {
    let terminals = Terminals::default();
    for _ in 0..=MAX_TERMINALS {
        let command = command("/no/such/program", &["x".to_owned()], &[], Path::new("/"));
        let error = terminals.create(command, 1).unwrap_err();
        assert!(error.message.contains("/no/such/program cannot be started"), "{error}");
    }
    assert!(terminals.state().open.is_empty());
}

#[tokio::test]
async fn the_end_of_long_output_is_kept_from_a_whole_character_on() {
    let terminals = Terminals::default();
    let command = command("printf 'a\u{e9}\u{e9}\u{e9}'", &[], &[], Path::new("/"));
    let id = terminals.create(command, 5).unwrap();
    let (_, output) = finished(&terminals, &id).await;
    assert_eq!(output["output"], "\u{e9}\u{e9}");
    assert_eq!(output["truncated"], true);
    terminals.close().await;
}

#[test]
fn output_stays_within_its_limit_whatever_it_is() {
    fn text(limit: usize, parts: &[&[u8]], ended: bool) -> (String, bool) {
        let mut output = Output::new(limit);
        parts.iter().for_each(|part| output.push(part));
        output.text(ended)
    }
    let is = |text: &str, truncated| (text.to_owned(), truncated);
    assert_eq!(text(5, &[], false), is("", false));
    assert_eq!(text(5, &[b"abc", b"de"], true), is("abcde", false));
    assert_eq!(text(5, &[b"abc", b"def"], true), is("bcdef", true));
    assert_eq!(text(5, &[b"abcdefghij"], true), is("fghij", true));
    assert_eq!(text(0, &[b"a"], true), is("", true));
    // Half a character at the end, of one that still runs and of one that does not.
    assert_eq!(text(9, &[b"a\xC3"], false), is("a", false));
    assert_eq!(text(9, &[b"a\xC3"], true), is("a\u{FFFD}", false));
    assert_eq!(text(9, &[b"a\xC3", b"\xA9"], false), is("aé", false));
    // Half a character at the beginning.
    assert_eq!(text(3, &["éé".as_bytes()], true), is("é", true));
    assert_eq!(text(3, &["a🦀".as_bytes()], true), is("", true));
    // No text at all: three bytes stand for every one.
    assert_eq!(text(4, &[b"\xFF\xFF"], true), is("\u{FFFD}", true));
}

#[test]
fn an_agent_gets_as_much_output_as_it_wants_up_to_a_limit() {
    assert_eq!(output_bytes(None), DEFAULT_OUTPUT_BYTES);
    assert_eq!(output_bytes(Some(0)), 0);
    assert_eq!(output_bytes(Some(32_000)), 32_000);
    assert_eq!(output_bytes(Some(u64::MAX)), MAX_OUTPUT_BYTES);
}

#[test]
fn signals_have_their_names() {
    assert_eq!(signal_text(libc::SIGTERM), "SIGTERM");
    assert_eq!(signal_text(63), "signal 63");
}
