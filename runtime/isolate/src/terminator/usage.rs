//! What an extension uses: time, memory, child processes.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use deno_core::v8;

use super::Terminator;
use crate::children;
use crate::children::Found;
use crate::interrupt;
use crate::interrupt::Memory;
use crate::limits;
#[cfg(target_os = "linux")]
use crate::memory;
use crate::message::Breach;
use crate::message::IsolateUsage;

impl Terminator {
    /// What the isolate uses.
    pub fn usage(&self) -> IsolateUsage {
        let cpu = self.0.clock.get().map(|clock| clock.read()).unwrap_or_default();
        IsolateUsage {
            cpu_us: cpu.as_micros() as u64,
            heap_bytes: self.0.heap_bytes.load(Relaxed),
            buffer_bytes: self.0.buffer_bytes.load(Relaxed),
            pid: std::process::id(),
        }
    }

    /// The extension's child processes, up to one more than `most`.
    pub fn find_children(&self, most: usize) -> Found {
        let threads = self.0.state.lock().map(|state| state.threads.clone()).unwrap_or_default();
        children::find(&threads, most)
    }

    /// Has the extension's own thread reap what it has adopted, when it returns to its event loop.
    pub fn have_adopted_reaped(&self) {
        #[cfg(target_os = "linux")]
        self.0.children_ended.notify_one();
    }

    /// Reaps what the calling thread has adopted and has ended.
    pub fn reap_adopted(&self) {
        #[cfg(target_os = "linux")]
        if self.is_alone() {
            // Whoever kills processes holds this lock, too, so that their numbers stay their own meanwhile.
            let Ok(_state) = self.0.state.lock() else { return };
            children::reap_adopted();
        }
    }

    /// Reaps what the extension's thread has adopted, whenever something of that has ended. To be run by its event loop, beside its
    /// turns: inside of one, an operation may be about to wait for a process.
    #[cfg(target_os = "linux")]
    pub async fn keep_reaping(self) {
        loop {
            self.0.children_ended.notified().await;
            self.reap_adopted();
        }
    }

    /// Has the isolate on the given thread measured in the middle of what it is doing.
    pub fn measure(&self, thread: i32) {
        let Ok(state) = self.0.state.lock() else { return };
        let Some(place) = state.place(thread) else { return };
        if place.is_measuring.swap(true, Relaxed) {
            return;
        }
        let (inner, is_measuring) = (Arc::downgrade(&self.0), place.is_measuring.clone());
        interrupt::request(&place.handle, move |isolate| {
            is_measuring.store(false, Relaxed);
            if let Some(terminator) = Self::upgrade(&inner) {
                terminator.measure_now(isolate);
            }
        });
    }

    /// Measures the isolate of the calling thread.
    pub fn measure_now(&self, isolate: &mut v8::Isolate) {
        let limit = self.limits().map_or(usize::MAX, |limits| limits.buffer_bytes);
        let thread = children::current_thread();
        let Memory { heap, external } = interrupt::memory(isolate, limit);
        let is_own =
            self.0.state.lock().is_ok_and(|state| {
                state.places.first().is_some_and(|place| place.thread == thread)
            });
        if is_own {
            self.0.heap_bytes.store(heap as u64, Relaxed);
            self.0.buffer_bytes.store(external as u64, Relaxed);
        }
        if external > limit {
            self.breach_on(thread, buffer_breach(limit));
        }
    }

    /// The isolate of the calling thread asked for more memory outside the heap than it may have.
    pub fn breach_buffers(&self) {
        let limit = self.limits().map_or(usize::MAX, |limits| limits.buffer_bytes);
        self.breach_on(children::current_thread(), buffer_breach(limit));
    }

    /// Whether the process is so far above its limit of memory that nothing is waited for any longer.
    pub(super) fn has_far_too_much_memory(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.limits().is_some_and(|limits| {
            let most = limits.memory_bytes.saturating_add(limits::MEMORY_EXCESS_BYTES);
            self.is_alone() && memory::resident_bytes() > most
        });
        #[cfg(not(target_os = "linux"))]
        false
    }
}

fn buffer_breach(limit: usize) -> Breach {
    let megabytes = limit / (1024 * 1024);
    let allowed = format!("its memory outside the heap reached the limit of {megabytes} MB");
    limits::breach("buffer-mb", allowed)
}
