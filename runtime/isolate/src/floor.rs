//! Measuring: CPU time, and the least an isolate can cost, the engine alone without any platform.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use deno_core::v8;

use crate::children;

/// Makes an engine instance on the calling thread, runs one expression in it, calls `idle` while it
/// is alive, and drops it.
pub fn bare_isolate(idle: impl FnOnce()) {
    let mut isolate = v8::Isolate::new(v8::CreateParams::default());
    {
        v8::scope!(let scope, &mut isolate);
        let context = v8::Context::new(scope, v8::ContextOptions::default());
        let scope = &mut v8::ContextScope::new(scope, context);
        if let Some(source) = v8::String::new(scope, "globalThis.x = 1 + 1")
            && let Some(script) = v8::Script::compile(scope, source, None)
        {
            let _ = script.run(scope);
        }
    }
    idle();
}

/// CPU time of the calling thread.
pub fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours that outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// CPU time of this process, all threads together.
pub fn process_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours that outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The CPU time of one thread, which any thread may ask for. Where the system does not tell, it is the wall
/// time since the clock was made.
pub struct CpuClock {
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux tells"))]
    thread: i32,
    #[cfg(not(target_os = "linux"))]
    since: std::time::Instant,
    last_us: AtomicU64,
    is_stopped: AtomicBool,
}

impl CpuClock {
    /// The clock of the calling thread.
    pub fn of_this_thread() -> Self {
        Self {
            thread: children::current_thread(),
            #[cfg(not(target_os = "linux"))]
            since: std::time::Instant::now(),
            last_us: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// The CPU time that the thread has used, all of it if the thread has ended.
    pub fn read(&self) -> Duration {
        let last_us = match self.ask() {
            Some(time) if !self.is_stopped.load(Relaxed) => {
                let time = time.as_micros() as u64;
                self.last_us.fetch_max(time, Relaxed).max(time)
            }
            _ => self.last_us.load(Relaxed),
        };
        Duration::from_micros(last_us)
    }

    /// The thread is about to end, and its number will be another's.
    pub fn stop(&self) {
        self.read();
        self.is_stopped.store(true, Relaxed);
    }

    #[cfg(target_os = "linux")]
    fn ask(&self) -> Option<Duration> {
        // The kernel's number for the clock of a thread: the thread's own, inverted, above three bits
        // that say "CPU time, of a thread". Unlike the C library's way to it, this may be asked about a
        // thread that has ended: the kernel does not find it.
        let clock = (!self.thread << 3) | 0b110;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a timespec of ours that outlives the call.
        let found = unsafe { libc::clock_gettime(clock, &mut time) } == 0;
        found.then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }

    #[cfg(not(target_os = "linux"))]
    fn ask(&self) -> Option<Duration> {
        Some(self.since.elapsed())
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_threads_cpu_time_is_seen_from_another_and_kept_when_it_has_ended() {
        let (sender, clocks) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let clock = Arc::new(CpuClock::of_this_thread());
            while thread_cpu_time() < Duration::from_millis(20) {
                std::hint::spin_loop();
            }
            sender.send(clock).unwrap();
            let _ = released.recv();
        });
        let clock = clocks.recv().unwrap();
        let used = clock.read();
        assert!(used >= Duration::from_millis(20), "{used:?}");
        drop(release);
        thread.join().unwrap();
        // It may be joined a moment before the system has done with it, which takes CPU time too.
        while Path::new(&format!("/proc/self/task/{}", clock.thread)).exists() {
            std::thread::yield_now();
        }
        assert!(clock.read() >= used);
        assert_eq!(clock.read(), clock.read());
    }

    #[test]
    fn a_stopped_clock_does_not_tell_of_another_thread() {
        let clock = CpuClock::of_this_thread();
        clock.stop();
        let used = clock.read();
        let before = thread_cpu_time();
        while thread_cpu_time() < before + Duration::from_millis(5) {
            std::hint::spin_loop();
        }
        assert_eq!(clock.read(), used);
    }
}
