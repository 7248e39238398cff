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

/// Rehearses. What fails here fails in the extension that needs it, with its own error; the rehearsal only costs.
pub async fn rehearse(worker: &mut Worker) {
    refuse_requests(worker, true);
    let _ = run(worker).await;
    refuse_requests(worker, false);
}

fn refuse_requests(worker: &mut Worker, refused: bool) {
    worker.runtime.op_state().borrow_mut().borrow_mut::<Bridge>().refuse_requests(refused);
}

async fn run(worker: &mut Worker) -> Result<(), CoreError> {
    let Ok(url) = ModuleSpecifier::parse("tenon:rehearsal") else { return Ok(()) };
    let adopt = ["/rehearsal.mjs".into(), "rehearsal".into(), "/rehearsal".into(), 1000.into()];
    driver::call(&mut worker.runtime, &worker.functions.adopt, &adopt)?;
    let id = worker.runtime.load_side_es_module_from_code(&url, EXTENSION).await?;
    let mut evaluation = Box::pin(worker.runtime.mod_evaluate(id));
    turn_until(worker, |cx| evaluation.as_mut().poll(cx).is_ready()).await;
    for kind in ["listens", "tool", "hook", "command"] {
        // No such tool: the way there and the failure are what is rehearsed.
        let call = [kind.into(), 1.into(), "{}".into()];
        driver::call(&mut worker.runtime, &worker.functions.dispatch, &call)?;
    }
    driver::call(&mut worker.runtime, &worker.functions.deliver, &["[]".into()])?;
    turn_until(worker, |_| false).await;
    Ok(())
}

/// Turns the event loop until something is done, or nothing more happens by itself.
async fn turn_until(worker: &mut Worker, mut is_done: impl FnMut(&mut Context<'_>) -> bool) {
    for _ in 0..MAX_TURNS {
        let (idle, done) = poll_fn(|cx| {
            worker.run_foreground(cx);
            let turn = worker.runtime.poll_event_loop(cx, PollEventLoopOptions::default());
            Poll::Ready((turn.is_ready(), is_done(cx)))
        })
        .await;
        if done || idle {
            return;
        }
    }
}
