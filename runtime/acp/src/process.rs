//! The process of an agent, once it runs: how it ends, and how it is ended.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;
use rustix::process::kill_process_group;
use rustix::process::test_kill_process_group;
use signal_hook::low_level::signal_name;
use tokio::process::Child;
use tokio::sync::OnceCell;
use tokio::sync::watch;
use tracing::Instrument;
use tracing::info;
use tracing::info_span;

use crate::guard;
use crate::guard::LEFTOVER_GRACE;
use crate::guard::Lifeline;
use crate::guard::Order;
use crate::guard::Outcome;
use crate::guard::TERM_GRACE;
use crate::stderr_log::StderrLog;
use crate::stderr_log::Tail;

/// How long an agent may take to end when its standard input is closed. Most do so at once, but what they clean up
/// takes its time on a busy machine.
pub const STDIN_GRACE: Duration = Duration::from_secs(5);

/// How often it is looked whether anything is left.
const LEFTOVER_ROUND: Duration = Duration::from_millis(20);

/// How long a killed agent may take to be gone. A guard that takes longer than it allows itself does not
/// work any more.
const KILL_PATIENCE: Duration = guard::KILL_PATIENCE.saturating_add(Duration::from_secs(1));

/// How long the last words of a process may take after its end. Something that it has started may have its
/// standard error, and live on.
const LAST_WORDS_PATIENCE: Duration = Duration::from_secs(3);

/// A running agent. When the last clone is gone the agent and everything in its process group is killed.
#[derive(Clone)]
pub struct AgentProcess(Arc<Inner>);

struct Inner {
    reach: Reach,
    ended: watch::Receiver<Option<String>>,
    tail: Arc<Tail>,
    stopped: OnceCell<()>,
}

/// How an agent is reached.
#[derive(Clone)]
enum Reach {
    /// Its process group.
    Group(Pid),
    /// Its guard, and the line to it.
    Guard(Pid, Arc<Lifeline>),
}

impl AgentProcess {
    /// Watches over a process that was just started: a guard if there is a line to it, otherwise an agent that
    /// leads a process group.
    pub(crate) fn new(
        child: Child,
        pid: Pid,
        lifeline: Option<Lifeline>,
        stderr: StderrLog,
    ) -> Self {
        let reach = match lifeline {
            Some(lifeline) => Reach::Guard(pid, Arc::new(lifeline)),
            None => Reach::Group(pid),
        };
        let tail = stderr.tail();
        let (sender, ended) = watch::channel(None);
        let span = info_span!("process", agent = true, pid = pid.as_raw_pid());
        tokio::spawn(watch_over(child, reach.clone(), stderr, sender).instrument(span));
        Self(Arc::new(Inner { reach, ended, tail, stopped: OnceCell::new() }))
    }

    /// The number of the process that was started: the guard's if there is one.
    pub fn pid(&self) -> u32 {
        let (Reach::Group(pid) | Reach::Guard(pid, _)) = &self.0.reach;
        pid.as_raw_pid().cast_unsigned()
    }

    /// Waits until nothing of it is left, and says how it ended: `exit code 1` or `signal SIGKILL`.
    pub async fn exited(&self) -> String {
        let mut ended = self.0.ended.clone();
        let how = ended.wait_for(Option::is_some).await.ok().and_then(|how| how.clone());
        // Whoever watches goes only with the runtime.
        how.unwrap_or_else(|| "nobody knows how".to_owned())
    }

    /// The last lines of its standard error.
    pub fn last_stderr(&self) -> Vec<String> {
        self.0.tail.lines()
    }

    /// Ends it: waits a little, since its standard input was closed before, then asks by SIGTERM, then kills.
    /// Returns when nothing of it is left. Whoever calls while another does waits for the same.
    pub async fn stop(&self) {
        self.stop_within(STDIN_GRACE, TERM_GRACE).await;
    }

    async fn stop_within(&self, stdin_grace: Duration, term_grace: Duration) {
        self.0.stopped.get_or_init(|| self.end(stdin_grace, term_grace)).await;
    }

    /// Kills it and everything in its process group.
    pub fn kill(&self) {
        self.0.kill();
    }

    async fn end(&self, stdin_grace: Duration, term_grace: Duration) {
        if self.exited_within(stdin_grace).await {
            return;
        }
        self.0.reach.terminate();
        if self.exited_within(term_grace).await {
            return;
        }
        self.0.kill();
        if self.exited_within(KILL_PATIENCE).await {
            return;
        }
        self.0.reach.give_up();
        self.exited_within(KILL_PATIENCE).await;
    }

    async fn exited_within(&self, time: Duration) -> bool {
        tokio::time::timeout(time, self.exited()).await.is_ok()
    }
}

impl Inner {
    fn kill(&self) {
        if self.ended.borrow().is_none() {
            self.reach.kill();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Reach {
    fn terminate(&self) {
        match self {
            Self::Group(group) => {
                signal_group(*group, Signal::TERM);
            }
            Self::Guard(_, lifeline) => lifeline.order(Order::Terminate),
        }
    }

    fn kill(&self) {
        match self {
            Self::Group(group) => {
                signal_group(*group, Signal::KILL);
            }
            // The guard itself must live to see to it.
            Self::Guard(_, lifeline) => lifeline.order(Order::Kill),
        }
    }

    /// Ends a guard that does not do its work; the agent ends with it.
    fn give_up(&self) {
        if let Self::Guard(guard, _) = self {
            // It was not waited for: that ends the agent's process for us. One that has ended needs no signal.
            let _ = kill_process(*guard, Signal::KILL);
        }
    }
}

/// Waits for the end of a process, and sees to it that nothing is left.
async fn watch_over(
    mut child: Child,
    reach: Reach,
    stderr: StderrLog,
    ended: watch::Sender<Option<String>>,
) {
    let status = child.wait().await;
    let status = status.map_or_else(|error| format!("unknown: {error}"), describe);
    let how = match reach {
        Reach::Group(group) => {
            end_leftovers(group).await;
            status
        }
        Reach::Guard(_, lifeline) => match lifeline.outcome() {
            Outcome::Ended(status) => describe(status),
            Outcome::Failed(why) => format!("could not be started: {why}"),
            Outcome::Unknown(agent) => {
                // The guard was killed. The agent's process ends with it, its group does not.
                if let Some(group) = agent.and_then(Pid::from_raw) {
                    signal_group(group, Signal::KILL);
                }
                format!("its guard ended with {status}")
            }
        },
    };
    info!(how, "the agent has ended");
    stderr.finished(LAST_WORDS_PATIENCE).await;
    ended.send_replace(Some(how));
}

/// Ends what is left of a group whose leader has ended.
async fn end_leftovers(group: Pid) {
    if !signal_group(group, Signal::TERM) {
        return;
    }
    let deadline = Instant::now() + LEFTOVER_GRACE;
    while Instant::now() < deadline {
        tokio::time::sleep(LEFTOVER_ROUND).await;
        if test_kill_process_group(group).is_err() {
            return;
        }
    }
    signal_group(group, Signal::KILL);
}

/// Sends a signal to a group; says whether there was anybody in it.
///
/// A group's number is not given away as long as it has members; an empty one's could be somebody else's only if
/// numbers came round in the moment since its leader was waited for.
fn signal_group(group: Pid, signal: Signal) -> bool {
    kill_process_group(group, signal).is_ok()
}

/// How a process ended, in words.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => match signal_name(signal) {
            Some(name) => format!("signal {name}"),
            None => format!("signal {signal}"),
        },
        (None, None) => "an unknown end".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use rustix::process::test_kill_process;
    use tokio::io::AsyncBufReadExt;
    use tokio::io::BufReader;
    use tokio::io::Lines;
    use tokio::process::ChildStdin;
    use tokio::process::ChildStdout;
    use tokio::process::Command;

    use super::*;

    /// More than any agent here takes, however few processors it gets.
    const LONG: Duration = Duration::from_secs(60);

    impl AgentProcess {
        /// How it ended, if it has.
        fn has_exited(&self) -> Option<String> {
            self.0.ended.borrow().clone()
        }
    }

    struct Agent {
        process: AgentProcess,
        stdin: Option<ChildStdin>,
        lines: Lines<BufReader<ChildStdout>>,
        _logs: tempfile::TempDir,
    }

    impl Agent {
        /// A script that runs as an agent without a guard.
        fn start(script: &str) -> Self {
            let logs = tempfile::tempdir().unwrap();
            let mut child = Command::new("sh")
                .args(["-c", script])
                .process_group(0)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let pid = Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
            let stdin = child.stdin.take();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let stderr = child.stderr.take().unwrap();
            let stderr = StderrLog::read(stderr, logs.path().join("a.log"), "test".into());
            let process = AgentProcess::new(child, pid, None, stderr);
            Self { process, stdin, lines, _logs: logs }
        }

        async fn line(&mut self) -> String {
            self.lines.next_line().await.unwrap().unwrap()
        }

        /// Everybody who could write has ended.
        async fn output_ends(&mut self) {
            while self.lines.next_line().await.unwrap().is_some() {}
        }
    }

    fn pid(process: &str) -> Pid {
        Pid::from_raw(process.trim().parse().unwrap()).unwrap()
    }

    fn exists(process: &str) -> bool {
        test_kill_process(pid(process)).is_ok()
    }

    /// Waits until a process that is nobody's child here is gone.
    async fn gone(process: &str) {
        while exists(process) {
            tokio::task::yield_now().await;
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.trim()));
            // One that nobody waits for is gone too.
            if stat.is_ok_and(|stat| stat.contains(") Z ")) {
                return;
            }
        }
    }

    #[tokio::test]
    async fn the_end_is_described_by_code_or_signal() {
        assert_eq!(Agent::start("exit 0").process.exited().await, "exit code 0");
        assert_eq!(Agent::start("exit 42").process.exited().await, "exit code 42");
        assert_eq!(Agent::start("kill -KILL $$").process.exited().await, "signal SIGKILL");
        assert_eq!(Agent::start("kill -TERM $$").process.exited().await, "signal SIGTERM");
        assert_eq!(describe(ExitStatus::from_raw(50)), "signal 50");
    }

    #[tokio::test]
    async fn an_agent_that_runs_has_not_exited() {
        let mut agent = Agent::start("echo ready; cat; exit 5");
        assert_eq!(agent.line().await, "ready");
        assert_eq!(agent.process.has_exited(), None);
        assert!(exists(&agent.process.pid().to_string()));
        drop(agent.stdin.take());
        assert_eq!(agent.process.exited().await, "exit code 5");
        assert_eq!(agent.process.has_exited().as_deref(), Some("exit code 5"));
    }

    #[tokio::test]
    async fn an_agent_that_ends_when_its_input_closes_is_not_signalled() {
        let mut agent = Agent::start("trap 'exit 9' TERM; echo ready; cat; exit 0");
        agent.line().await;
        drop(agent.stdin.take());
        agent.process.stop_within(LONG, LONG).await;
        assert_eq!(agent.process.has_exited().as_deref(), Some("exit code 0"));
    }

    #[tokio::test]
    async fn an_agent_that_stays_is_asked_by_sigterm() {
        let mut agent =
            Agent::start("trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done");
        agent.line().await;
        drop(agent.stdin.take());
        agent.process.stop_within(Duration::ZERO, LONG).await;
        assert_eq!(agent.process.has_exited().as_deref(), Some("exit code 9"));
    }

    #[tokio::test]
    async fn an_agent_that_ignores_sigterm_is_killed_with_its_descendants() {
        let mut agent =
            Agent::start("trap '' TERM; sh -c 'echo $$; while :; do sleep 1; done' & wait; wait");
        let grandchild = agent.line().await;
        drop(agent.stdin.take());
        let (first, second) = (agent.process.clone(), agent.process.clone());
        // Both wait for the same end.
        tokio::join!(first.stop(), second.stop());
        assert_eq!(agent.process.exited().await, "signal SIGKILL");
        gone(&grandchild).await;
        agent.process.stop().await;
    }

    #[tokio::test]
    async fn what_an_agent_leaves_behind_ends_with_it() {
        // One of them does not want to.
        let mut agent = Agent::start(
            "sh -c 'trap \"\" TERM; echo $$; exec sleep 1000' & sleep 1000 & echo $!; \
             read line; exit 4",
        );
        let (one, two) = (agent.line().await, agent.line().await);
        drop(agent.stdin.take());
        assert_eq!(agent.process.exited().await, "exit code 4");
        gone(&one).await;
        gone(&two).await;
        agent.output_ends().await;
    }

    #[tokio::test]
    async fn killing_reaches_the_whole_group() {
        let mut agent = Agent::start("sleep 1000 & echo $!; wait");
        let child = agent.line().await;
        agent.process.kill();
        assert_eq!(agent.process.exited().await, "signal SIGKILL");
        gone(&child).await;
        // There is nobody left to be killed.
        agent.process.kill();
    }

    #[tokio::test]
    async fn dropping_the_last_clone_kills_the_group() {
        let mut agent = Agent::start("sleep 1000 & echo $!; wait");
        let child = agent.line().await;
        let clone = agent.process.clone();
        drop(clone);
        assert_eq!(agent.process.has_exited(), None);
        let Agent { process, mut lines, .. } = agent;
        drop(process);
        // Nobody has the output any more.
        assert_eq!(lines.next_line().await.unwrap(), None);
        gone(&child).await;
    }

    #[tokio::test]
    async fn the_last_words_are_there_when_the_end_is_known() {
        let agent =
            Agent::start("i=0; while [ $i -lt 80 ]; do echo line $i >&2; i=$((i+1)); done; exit 1");
        agent.process.exited().await;
        let words = agent.process.last_stderr();
        assert_eq!(words.len(), crate::stderr_log::LAST_LINES);
        assert_eq!(words.last().map(String::as_str), Some("line 79"));
    }

    #[tokio::test]
    async fn somebody_else_with_the_agents_standard_error_does_not_hide_its_end() {
        let mut agent =
            Agent::start("setsid sh -c 'echo $$; exec sleep 1000' >&1 & read line; exit 6");
        let stranger = agent.line().await;
        drop(agent.stdin.take());
        assert_eq!(agent.process.exited().await, "exit code 6");
        // It has left the group, which only a guard would notice.
        kill_process(pid(&stranger), Signal::KILL).unwrap();
        agent.output_ends().await;
    }
}
