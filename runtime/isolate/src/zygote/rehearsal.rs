//! Does once, before the fork, what every extension does until it is ready, so that the functions behind it are compiled
//! and the modules behind it are evaluated in memory that all forks share.

use std::future::poll_fn;
use std::task::Context;
use std::task::Poll;

use deno_core::ModuleSpecifier;
use deno_core::PollEventLoopOptions;
use deno_core::error::CoreError;
use tenon_platform::ops::bridge::Bridge;

use crate::driver;
use crate::worker::Worker;

/// An extension that imports what extensions usually import, and joins. Its join is refused, so nothing is registered.
/// It draws nothing random: what is drawn before the fork would be the same in every process.
const EXTENSION: &str = include_str!("rehearsal.mjs");

/// Turns of the event loop that the rehearsal may take. It waits for nothing outside, so it needs a few.
const MAX_TURNS: usize = 200;

/// The rehearsal did not get to its end.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    /// JavaScript threw, or a module was not found.
    #[error(transparent)]
    JavaScript(#[from] CoreError),
    /// Its address is none.
    #[error(transparent)]
    Address(#[from] deno_core::url::ParseError),
    /// Nothing more happened, and it was still waiting.
    #[error("it waits for something that does not come")]
    Unfinished,
}

/// Rehearses. What fails here fails in the extension that needs it, with its own error; without the rehearsal extensions only take
/// longer to start.
pub async fn rehearse(worker: &mut Worker) -> Result<(), RehearsalError> {
    refuse_requests(worker, true);
    let outcome = run(worker).await;
    refuse_requests(worker, false);
    outcome
}

fn refuse_requests(worker: &mut Worker, refused: bool) {
    worker.runtime.op_state().borrow_mut().borrow_mut::<Bridge>().refuse_requests(refused);
}

async fn run(worker: &mut Worker) -> Result<(), RehearsalError> {
    let url = ModuleSpecifier::parse("tenon:rehearsal")?;
    let adopt = ["/rehearsal.mjs".into(), "rehearsal".into(), "/rehearsal".into(), 1000.into()];
    driver::call(&mut worker.runtime, &worker.functions.adopt, &adopt)?;
    let id = worker.runtime.load_side_es_module_from_code(&url, EXTENSION).await?;
    let mut evaluation = Box::pin(worker.runtime.mod_evaluate(id));
    let mut evaluated = None;
    turn_until(worker, |cx| {
        if let Poll::Ready(outcome) = evaluation.as_mut().poll(cx) {
            evaluated = Some(outcome);
        }
        evaluated.is_some()
    })
    .await?;
    evaluated.ok_or(RehearsalError::Unfinished)??;
    for kind in ["listens", "tool", "hook", "command"] {
        // No such tool: the way there and the failure are what is rehearsed.
        let call = [kind.into(), 1.into(), "{}".into()];
        driver::call(&mut worker.runtime, &worker.functions.dispatch, &call)?;
    }
    driver::call(&mut worker.runtime, &worker.functions.deliver, &["[]".into()])?;
    turn_until(worker, |_| false).await
}

/// Turns the event loop until something is done, or nothing more happens by itself.
async fn turn_until(
    worker: &mut Worker,
    mut is_done: impl FnMut(&mut Context<'_>) -> bool,
) -> Result<(), RehearsalError> {
    for _ in 0..MAX_TURNS {
        let (turn, done) = poll_fn(|cx| {
            worker.run_foreground(cx);
            let turn = worker.runtime.poll_event_loop(cx, PollEventLoopOptions::default());
            Poll::Ready((turn, is_done(cx)))
        })
        .await;
        match turn {
            Poll::Ready(Err(error)) => return Err(error.into()),
            Poll::Ready(Ok(())) => return Ok(()),
            Poll::Pending if done => return Ok(()),
            Poll::Pending => {}
        }
    }
    Err(RehearsalError::Unfinished)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::HEAP_BYTES;
    use crate::outbox::Outbox;
    use crate::terminator::Terminator;
    use crate::worker;

    #[test]
    fn the_rehearsal_gets_to_its_end() {
        crate::init_engine();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _inside = runtime.enter();
        let mut worker =
            worker::create(HEAP_BYTES, Outbox::default(), &Terminator::default()).unwrap();
        runtime.block_on(async {
            driver::register_names(&mut worker).await;
            driver::load_usual_modules(&mut worker).await;
            rehearse(&mut worker).await.unwrap();
        });
    }
}
