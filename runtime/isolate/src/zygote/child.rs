//! A forked process, from the fork to its end: it becomes one extension's, and exits with it.

use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use tenon_protocol::layers::ControlGroup;
use tenon_protocol::layers::Layers;
use tenon_protocol::limits::GROUP_MEMORY_SLACK_BYTES;
use tenon_protocol::limits::tasks_of_group;
use tenon_protocol::message::EndReason;
use tenon_protocol::message::FromIsolate;
use tenon_protocol::message::Grant;
use tenon_protocol::message::IsolateLimits;
use tenon_protocol::message::LoadSpec;
use tenon_protocol::wire::Decoder;
use tenon_protocol::zygote::EXIT_WITH_ALL;
use tenon_sandbox::control_groups::Group;
use tokio::sync::mpsc;

use super::boot::Booted;
use super::confinement;
use crate::children;
use crate::claim::Claim;
use crate::driver;
use crate::engine;
use crate::limits;
use crate::limits::HEAP_BYTES;
use crate::outbox::Outbox;
use crate::session_socket;
use crate::session_socket::Sender;
use crate::terminator::Terminator;
use crate::worker;
use crate::worker::Worker;

/// What a new process is given.
pub struct Files {
    /// Its connection to the session.
    pub socket: UnixStream,
    /// Where the last words of a process that crashes go.
    pub errors: OwnedFd,
}

/// Runs an extension, and exits.
pub fn run(booted: Booted, files: Files, group: Option<Group>) -> ! {
    let Files { socket, errors } = files;
    let group = group.map(ManuallyDrop::new);
    say_where_it_panics();
    let kept = keep_only(&booted.descriptors, &socket, errors);
    let code = match kept.and_then(|()| session_socket::read_spec(&socket)) {
        Ok((spec, decoder)) => {
            let group = group.map(|group| limit(&group, &spec.limits));
            live(booted, spec, group, decoder, socket)
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "the process could not be set up: {error}");
            1
        }
    };
    // Nothing is torn down: the system takes back memory and descriptors, and destructors would write to pages that
    // are shared until then.
    // SAFETY: it takes an integer and does not return.
    unsafe { libc::_exit(code) }
}

/// Makes the last words of a process that panics one line for each panic. The standard library adds a stack where a panic
/// cannot unwind, which it cannot out of Deno's ops, and the session keeps the last lines only.
fn say_where_it_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or_default();
        let _ = writeln!(std::io::stderr(), "panicked at {place}: {message}");
    }));
}

/// Closes every descriptor but those of the engine instance, the socket and standard error.
fn keep_only(own: &[RawFd], socket: &UnixStream, errors: OwnedFd) -> std::io::Result<()> {
    // SAFETY: both are open files of this process; dup2 touches no memory.
    if unsafe { libc::dup2(errors.as_raw_fd(), libc::STDERR_FILENO) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    let mut kept = own.to_vec();
    kept.push(socket.as_raw_fd());
    kept.sort_unstable();
    // The owner is about to be closed below with the rest.
    std::mem::forget(errors);
    let mut next = 3;
    for file in kept {
        close_range(next, file - 1);
        next = file + 1;
    }
    close_range(next, RawFd::MAX);
    Ok(())
}

fn close_range(first: RawFd, last: RawFd) {
    if first > last {
        return;
    }
    // SAFETY: it takes three integers. What it closes belongs to the zygote's part of the program, which this process
    // does not run any more.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if closed != 0 {
        // Before Linux 5.9. The zygote has a few descriptors for each process.
        let most = last.min(first.saturating_add(limits::MAX_DESCRIPTORS_TO_CLOSE));
        // SAFETY: as above.
        (first..=most).for_each(|file| _ = unsafe { libc::close(file) });
    }
}

/// Limits what this process and all that it starts may have together.
fn limit(group: &Group, limits: &IsolateLimits) -> ControlGroup {
    let memory = limits.memory_bytes.saturating_add(GROUP_MEMORY_SLACK_BYTES);
    group.limit(memory as u64, tasks_of_group(limits.children) as u64)
}

/// Everything up to the extension's last message. Returns the code to exit with.
fn live(
    booted: Booted,
    spec: LoadSpec,
    group: Option<ControlGroup>,
    decoder: Decoder,
    socket: UnixStream,
) -> i32 {
    let Booted { mut worker, outbox, terminator, .. } = booted;
    // A debugger of the user may attach to it, as to any other process. The zygote itself stays protected.
    // SAFETY: prctl takes integers here.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) };
    let layers = match confinement::confine(&spec) {
        Ok(layers) => Layers { control_group: group, ..layers },
        Err(message) => {
            refuse(socket, message);
            return 0;
        }
    };
    engine::renew_after_fork(&mut worker.runtime);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(limits::MAX_BLOCKING_THREADS)
        .thread_keep_alive(limits::BLOCKING_THREAD_KEEP_ALIVE)
        .build();
    let sender = socket.set_nonblocking(true).and_then(|()| socket.try_clone()).map(Sender::new);
    let (runtime, sender) = match (runtime, sender) {
        (Ok(runtime), Ok(sender)) => (runtime, Arc::new(sender)),
        (Err(error), _) | (_, Err(error)) => {
            let _ = writeln!(std::io::stderr(), "the process could not be set up: {error}");
            return 0;
        }
    };
    let inside = runtime.enter();
    let told = sender.clone();
    outbox.connect(Box::new(move |message| told.send(message)));
    let (worker, outbox, terminator) = match with_heap(worker, outbox, terminator, &spec, &sender) {
        Ok(parts) => parts,
        Err(error) => {
            let message = error.to_string();
            sender.send(FromIsolate::Ended(EndReason::Setup { message }));
            return 0;
        }
    };
    let is_restricted = spec.grant != Grant::default();
    let assignment = Assignment { spec, layers, decoder, socket };
    let reason = serve(&runtime, worker, &outbox, &terminator, assignment);
    let breach = if let EndReason::Limit(breach) = &reason { Some(breach) } else { None };
    let takes_all = breach.is_some_and(limits::counts_children);
    let is_beyond_limit = breach.is_some();
    if terminator.tell_end() {
        outbox.send(FromIsolate::Ended(reason));
    }
    drop(inside);
    if is_beyond_limit {
        // An operation on another thread may be one that takes more and more memory.
        std::mem::forget(runtime);
    } else {
        // The session kills a process that has said its last word and does not exit, with all that it has detached.
        runtime.shutdown_timeout(limits::LAST_OPERATIONS_GRACE);
    }
    if takes_all || is_restricted { EXIT_WITH_ALL } else { 0 }
}

/// Tells the session why nothing of the extension runs.
fn refuse(socket: UnixStream, message: String) {
    Sender::new(socket).send(FromIsolate::Ended(EndReason::Setup { message }));
}

/// The instance that was forked, or a new one: the limit of a heap is set when an instance is made.
fn with_heap(
    mut worker: Worker,
    outbox: Outbox,
    terminator: Terminator,
    spec: &LoadSpec,
    sender: &Arc<Sender>,
) -> std::io::Result<(Worker, Outbox, Terminator)> {
    if spec.limits.heap_bytes == HEAP_BYTES {
        worker.output.reopen()?;
        return Ok((worker, outbox, terminator));
    }
    std::mem::forget(worker);
    let (outbox, terminator) = (Outbox::default(), Terminator::default());
    let told = sender.clone();
    outbox.connect(Box::new(move |message| told.send(message)));
    let worker = worker::create(spec.limits.heap_bytes, outbox.clone(), &terminator)?;
    Ok((worker, outbox, terminator))
}

/// The extension that the process runs, and its connection to the session.
struct Assignment {
    spec: LoadSpec,
    layers: Layers,
    decoder: Decoder,
    socket: UnixStream,
}

fn serve(
    runtime: &tokio::runtime::Runtime,
    mut worker: Worker,
    outbox: &Outbox,
    terminator: &Terminator,
    assignment: Assignment,
) -> EndReason {
    let Assignment { spec, layers, decoder, socket } = assignment;
    terminator.own_process();
    if spec.grant != Grant::default() {
        terminator.leave_nothing();
    }
    // Without descriptors for processes nobody could tell what to reap.
    if children::are_distinguishable() && children::adopt_orphans().is_ok() {
        runtime.spawn(terminator.clone().keep_reaping());
    }
    terminator.attach_thread();
    terminator.attach(worker.runtime.v8_isolate().thread_safe_handle());
    let (inbox_sender, inbox) = mpsc::unbounded_channel();
    let feed = session_socket::feed(socket, decoder, inbox_sender);
    let claim = Claim { spec, inbox, feed: Some(Box::pin(feed)), is_alone: true, layers };
    tenon_platform::ops::descriptors::keep_what_is_open();
    let reason = runtime.block_on(driver::serve(&mut worker, claim, outbox, terminator));
    terminator.end_start();
    terminator.detach();
    let Worker { runtime, functions, output, log, .. } = worker;
    // The process exits, so the engine is not torn down.
    std::mem::forget((runtime, functions));
    output.close_and_wait();
    log.report();
    reason
}
