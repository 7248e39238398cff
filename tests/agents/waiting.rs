//! Waiting for programs to end, but not for ever.

use std::process::Child;
use std::process::ExitStatus;
use std::time::Duration;
use std::time::Instant;

use crate::client::PATIENCE;

/// How often a process is looked at.
const ROUND: Duration = Duration::from_millis(10);

/// Waits for the end of a process that must end; one that does not is killed.
pub fn ends(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("process {} does not end", child.id());
        }
        std::thread::sleep(ROUND);
    }
}
