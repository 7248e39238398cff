//! Ctrl-C, and being told to end: the first time the turn is stopped, the second time the program.

use std::task::Poll;

use tokio::signal::unix::Signal;
use tokio::signal::unix::SignalKind;
use tokio::signal::unix::signal;
use tokio::sync::watch;

use crate::error::CliError;

/// What the program ends with when it was interrupted: 128 and the number of SIGINT, as shells have it.
pub const EXIT_CODE: u8 = 130;

/// Signals that ask the program to end. Those of a kind that nobody handles end it the plain way.
pub struct Interrupts(watch::Receiver<bool>);

impl Interrupts {
    /// Takes notice from now on, on a thread of its own: the second signal must end the program also while
    /// everything else waits for somebody to read standard output.
    pub fn watch() -> Result<Self, CliError> {
        let failed = |error| CliError::new(format!("signals cannot be handled: {error}"));
        let (sender, receiver) = watch::channel(false);
        let (ready, is_ready) = std::sync::mpsc::channel();
        std::thread::Builder::new()
            .name("tenon-interrupt".to_owned())
            .spawn(move || {
                // Made here: an event loop must not be dropped inside another, should there be no thread.
                let mut runtime = tokio::runtime::Builder::new_current_thread();
                let runtime = match runtime.enable_all().build() {
                    Ok(runtime) => runtime,
                    Err(error) => return drop(ready.send(Err(error))),
                };
                runtime.block_on(async {
                    let kinds =
                        [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
                    let signals: Result<Vec<_>, _> = kinds.into_iter().map(signal).collect();
                    let mut signals = match signals {
                        Ok(signals) => signals,
                        Err(error) => return drop(ready.send(Err(error))),
                    };
                    // Whoever started us waits for this.
                    let _ = ready.send(Ok(()));
                    next(&mut signals).await;
                    sender.send_replace(true);
                    next(&mut signals).await;
                    // The agent and the isolates notice that we are gone, and end with their children.
                    std::process::exit(EXIT_CODE.into());
                });
            })
            .map_err(failed)?;
        match is_ready.recv() {
            Ok(Ok(())) => Ok(Self(receiver)),
            Ok(Err(error)) => Err(failed(error)),
            Err(_) => Err(CliError::new("signals cannot be handled: their thread has ended")),
        }
    }

    /// Waits for the first.
    pub async fn first(&self) {
        // The thread lives as long as the program.
        let _ = self.0.clone().wait_for(|interrupted| *interrupted).await;
    }
}

/// Waits for any of the signals.
async fn next(signals: &mut [Signal]) {
    std::future::poll_fn(|cx| {
        let mut received = signals.iter_mut().map(|signal| signal.poll_recv(cx));
        if received.any(|received| received.is_ready()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
