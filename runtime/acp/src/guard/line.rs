//! The line between us and a guard: a pair of sockets.
//!
//! We give orders, the guard reports. When we are gone, however we went, the guard finds the line closed.

use std::io;
use std::io::Read;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::ExitStatus;

use std::os::unix::process::ExitStatusExt;

/// What a guard is told, one byte each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Ask the agent, and whatever it has started, to end.
    Terminate,
    /// End them.
    Kill,
}

impl Order {
    /// The byte for it.
    pub fn byte(self) -> u8 {
        match self {
            Self::Terminate => b't',
            Self::Kill => b'k',
        }
    }

    /// What a byte means.
    pub fn of(byte: u8) -> Option<Self> {
        [Self::Terminate, Self::Kill].into_iter().find(|order| order.byte() == byte)
    }
}

/// What a guard says, one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The agent runs as this process.
    Agent(i32),
    /// It has ended like this, as the system puts it; nothing of it is left.
    Ended(i32),
    /// It could not be started.
    Failed(String),
}

impl Report {
    /// The line for it.
    pub fn line(&self) -> String {
        match self {
            Self::Agent(process) => format!("agent {process}\n"),
            Self::Ended(status) => format!("ended {status}\n"),
            Self::Failed(why) => format!("failed {}\n", why.replace('\n', " ")),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        match word {
            "agent" => rest.parse().ok().map(Self::Agent),
            "ended" => rest.parse().ok().map(Self::Ended),
            "failed" => Some(Self::Failed(rest.to_owned())),
            _ => None,
        }
    }
}

/// How it went with an agent behind a guard that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The agent ended.
    Ended(ExitStatus),
    /// It could not be started.
    Failed(String),
    /// Nobody knows; the guard itself was ended. The agent's process, if it had been started.
    Unknown(Option<i32>),
}

/// Our end of the line.
pub struct Lifeline(UnixStream);

impl Lifeline {
    /// Both ends; the other one is the guard's.
    pub fn pair() -> io::Result<(Self, UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        // A guard that does not read is not worth waiting for.
        ours.set_nonblocking(true)?;
        Ok((Self(ours), theirs))
    }

    /// Gives an order. A guard that is gone takes none, which its end will tell.
    pub fn order(&self, order: Order) {
        let _ = (&self.0).write(&[order.byte()]);
    }

    /// What the guard has said; to be asked when it is gone.
    pub fn outcome(&self) -> Outcome {
        let mut text = Vec::new();
        // What it had said before an error is there all the same.
        let _ = (&self.0).read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text);
        let mut outcome = Outcome::Unknown(None);
        for report in text.lines().filter_map(Report::parse) {
            outcome = match report {
                Report::Agent(process) => Outcome::Unknown(Some(process)),
                Report::Ended(status) => Outcome::Ended(ExitStatus::from_raw(status)),
                Report::Failed(why) => Outcome::Failed(why),
            };
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome_of(reports: &[Report]) -> Outcome {
        let (ours, mut theirs) = Lifeline::pair().unwrap();
        for report in reports {
            theirs.write_all(report.line().as_bytes()).unwrap();
        }
        drop(theirs);
        ours.outcome()
    }

    #[test]
    fn an_order_arrives_and_the_end_of_our_side_is_seen() {
        let (ours, mut theirs) = Lifeline::pair().unwrap();
        ours.order(Order::Terminate);
        ours.order(Order::Kill);
        drop(ours);
        let mut orders = Vec::new();
        theirs.read_to_end(&mut orders).unwrap();
        let orders: Vec<_> = orders.into_iter().map(Order::of).collect();
        assert_eq!(orders, [Some(Order::Terminate), Some(Order::Kill)]);
        assert_eq!(Order::of(b'?'), None);
    }

    #[test]
    fn the_last_report_counts() {
        let killed = ExitStatus::from_raw(9);
        assert_eq!(outcome_of(&[Report::Agent(7), Report::Ended(9)]), Outcome::Ended(killed));
        assert_eq!(outcome_of(&[Report::Agent(7)]), Outcome::Unknown(Some(7)));
        assert_eq!(outcome_of(&[]), Outcome::Unknown(None));
        let failed = Report::Failed("no\nsuch file".into());
        assert_eq!(outcome_of(&[failed]), Outcome::Failed("no such file".into()));
    }

    #[test]
    fn a_guard_that_is_gone_is_no_error() {
        let (ours, theirs) = Lifeline::pair().unwrap();
        drop(theirs);
        ours.order(Order::Kill);
        assert_eq!(ours.outcome(), Outcome::Unknown(None));
    }

    #[test]
    fn a_guard_that_says_nothing_is_not_waited_for() {
        let (ours, _theirs) = Lifeline::pair().unwrap();
        assert_eq!(ours.outcome(), Outcome::Unknown(None));
    }
}
