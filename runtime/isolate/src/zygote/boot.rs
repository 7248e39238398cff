//! Boots one engine before the first fork, as far as every extension needs it.
//!
//! A fork copies memory, descriptors, and one thread. So at that point no other thread may be active, no operation may be
//! pending, no random number may have been drawn, and the tokio runtime that booted the platform must be gone.

use std::io::Write;
use std::os::fd::RawFd;

use crate::driver;
use crate::engine;
use crate::limits::HEAP_BYTES;
use crate::outbox::Outbox;
use crate::terminator::Terminator;
use crate::worker;
use crate::worker::Worker;

use super::full_heap;
use super::rehearsal;
use super::room;

/// A process ready to be forked.
pub struct Booted {
    pub worker: Worker,
    pub outbox: Outbox,
    pub terminator: Terminator,
    /// The descriptors of the engine instance, which a fork keeps.
    pub descriptors: Vec<RawFd>,
}

/// Boots the engine and makes an instance with the platform in it.
pub fn boot() -> std::io::Result<Booted> {
    // Before anything that starts a thread.
    engine::share_one_arena();
    room::check()?;
    let before = open_descriptors();
    engine::init_for_forks();
    // Timers alone: a driver of files or signals would be shared with the forks.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let (outbox, terminator) = (Outbox::default(), Terminator::default());
    let mut worker = {
        let _inside = runtime.enter();
        worker::create(HEAP_BYTES, outbox.clone(), &terminator)?
    };
    runtime.block_on(async {
        driver::register_names(&mut worker).await;
        driver::load_usual_modules(&mut worker).await;
        if let Err(error) = rehearsal::rehearse(&mut worker).await {
            // Extensions start without it, only later.
            let _ = writeln!(std::io::stderr(), "the zygote's rehearsal failed: {error}");
        }
    });
    engine::finish_compiling(&mut worker.runtime);
    drop(runtime);
    #[cfg(feature = "v8")]
    super::fork_memory::include_heap()?;
    let descriptors =
        open_descriptors().into_iter().filter(|file| !before.contains(file)).collect();
    // Nothing is allocated after this.
    full_heap::fill();
    Ok(Booted { worker, outbox, terminator, descriptors })
}

/// The descriptors that are open now.
fn open_descriptors() -> Vec<RawFd> {
    // SAFETY: fcntl with F_GETFD only looks.
    (3..MAX_BOOT_DESCRIPTOR)
        .filter(|&file| unsafe { libc::fcntl(file, libc::F_GETFD) } >= 0)
        .collect()
}

/// Nothing that is open while the zygote boots has a higher number: it is the first thing the process does.
const MAX_BOOT_DESCRIPTOR: RawFd = 256;
