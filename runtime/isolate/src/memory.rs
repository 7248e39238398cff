//! The limits on memory outside the heap, and on all memory of an extension's process.
//!
//! V8 gets the memory of array buffers from an allocator of ours, which counts it and refuses what is too
//! much. Three kinds of memory do not come this way and are seen only when the isolate is measured: Wasm
//! memories and resizable buffers, which V8 maps itself, and buffers that an op made of a vector of its own.
//!
//! QuickJS counts array buffers with its heap, whose limit holds for both together. What it does not count
//! are shared buffers, Wasm memories and buffers of ops; for these there is no limit.

use deno_core::v8;

/// The memory of this process that it shares with nobody: what it has written to since it was forked, and what it has
/// allocated.
pub fn resident_bytes() -> usize {
    // Pages that are still shared with the zygote count, which is a few megabytes too much.
    resident_bytes_of("self")
}

/// Whether processes have more memory together, without files and what is shared on purpose. A process that has ended has none.
pub fn together_exceed(processes: &[i32], most: usize) -> bool {
    let counted = |process: &i32| resident_bytes_of(&process.to_string());
    if processes.iter().map(counted).sum::<usize>() <= most {
        return false;
    }
    // Pages that copies of a process still have in common were counted for each. To count them once takes the system a look at
    // every page. What may not be looked at counts in full.
    let share = |process: &i32| share_of_pages(*process).unwrap_or_else(|| counted(process));
    processes.iter().map(share).sum::<usize>() > most
}

/// The memory of a process in which each page counts as often as the process is one of those that have it: half, a third.
fn share_of_pages(process: i32) -> Option<usize> {
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss_Anon:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}

/// The memory of a process without files and what it shares on purpose.
fn resident_bytes_of(process: &str) -> usize {
    // Two of the numbers in this file are pages that are resident, and those of them that come from a file or are shared.
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let mut numbers = text.split_whitespace().skip(1).map(|word| word.parse().unwrap_or(0_usize));
    let (resident, shared) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    resident.saturating_sub(shared) * PAGE_BYTES
}

/// What the system counts memory in, where it matters.
const PAGE_BYTES: usize = 4096;

/// The parameters of a new engine instance with the given heap.
fn with_heap(bytes: usize) -> v8::CreateParams {
    v8::CreateParams::default().heap_limits(0, bytes)
}

#[cfg(feature = "v8")]
pub use counted::Allotment;
#[cfg(feature = "v8")]
pub use counted::Buffers;
#[cfg(feature = "quickjs")]
pub use uncounted::Allotment;
#[cfg(feature = "quickjs")]
pub use uncounted::Buffers;

#[cfg(feature = "v8")]
mod counted {
    use std::ffi::c_void;
    use std::ptr::null_mut;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use deno_core::v8;

    use crate::limits::BUFFER_UNWIND_BYTES;

    /// When V8 is refused memory it collects garbage and asks again, three times. Only this refusal in a
    /// row means that the memory is in use.
    const FINAL_REFUSAL: u32 = 4;

    /// The array buffers of one extension and its workers. A buffer may outlive the isolate that made it,
    /// so every isolate has a share in it and every buffer keeps its share.
    #[derive(Clone)]
    pub struct Buffers(Arc<Counter>);

    struct Counter {
        used: AtomicUsize,
        limit: AtomicUsize,
        /// Called when the limit is reached, on the thread that reached it.
        full: Box<dyn Fn() + Send + Sync>,
    }

    impl Buffers {
        /// No buffers yet, and no limit.
        pub fn new(full: impl Fn() + Send + Sync + 'static) -> Self {
            let (used, limit) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
            Self(Arc::new(Counter { used, limit, full: Box::new(full) }))
        }

        /// Sets the limit, once the extension is known.
        pub fn set_limit(&self, bytes: usize) {
            self.0.limit.store(bytes, Relaxed);
        }

        /// The parameters of a new engine instance whose buffers are counted here, and what it may have.
        pub fn create_params(&self, heap_bytes: usize) -> (v8::CreateParams, Allotment) {
            let share = Arc::new(Share::of(self));
            let allotment = Allotment(share.clone());
            // SAFETY: the pointer is an `Arc`'s, of the type that the functions in the table expect; the
            // last of them gives it back.
            let allocator =
                unsafe { v8::new_rust_allocator(Arc::into_raw(share), &ALLOCATOR_FUNCTIONS) };
            (super::with_heap(heap_bytes).array_buffer_allocator(allocator), allotment)
        }

        #[cfg(test)]
        fn used(&self) -> usize {
            self.0.used.load(Relaxed)
        }
    }

    /// What one engine instance may have: at first everything, because an instance that cannot have the
    /// buffers in its snapshot ends the process.
    pub struct Allotment(Arc<Share>);

    impl Allotment {
        /// The instance is ready for the extension's code: from now on the limit holds.
        pub fn limit(&self) {
            self.0.open.store(false, Relaxed);
        }

        /// Whether the instance is being refused memory. Before V8 asks for the last time, it asks for more
        /// heap, although that is not what is missing.
        pub fn is_refused(&self) -> bool {
            self.0.refusals.load(Relaxed) > 0
        }
    }

    /// One instance's part in its extension's buffers.
    struct Share {
        buffers: Buffers,
        open: AtomicBool,
        refusals: AtomicU32,
    }

    impl Share {
        fn of(buffers: &Buffers) -> Self {
            let (open, refusals) = (AtomicBool::new(true), AtomicU32::new(0));
            Self { buffers: buffers.clone(), open, refusals }
        }

        /// Counts so many bytes; false if they may not be had.
        fn take(&self, bytes: usize) -> bool {
            let counter = &self.buffers.0;
            let before = counter.used.fetch_add(bytes, Relaxed);
            let limit = counter.limit.load(Relaxed);
            if before.saturating_add(bytes) <= limit {
                if self.refusals.load(Relaxed) != 0 {
                    self.refusals.store(0, Relaxed);
                }
                return true;
            }
            if self.open.load(Relaxed) || self.is_last_wish(before, bytes, limit) {
                return true;
            }
            self.give_back(bytes);
            false
        }

        /// Whether memory above the limit is given after all: the extension is being terminated, and what
        /// asks may be native code that would end the process.
        fn is_last_wish(&self, before: usize, bytes: usize, limit: usize) -> bool {
            if self.refusals.fetch_add(1, Relaxed) + 1 < FINAL_REFUSAL {
                return false;
            }
            self.refusals.store(0, Relaxed);
            (self.buffers.0.full)();
            before.saturating_add(bytes) <= limit.saturating_add(BUFFER_UNWIND_BYTES)
        }

        fn give_back(&self, bytes: usize) {
            self.buffers.0.used.fetch_sub(bytes, Relaxed);
        }

        fn allocate(
            &self,
            bytes: usize,
            allocate: impl FnOnce(usize) -> *mut c_void,
        ) -> *mut c_void {
            if !self.take(bytes) {
                return null_mut();
            }
            // An empty buffer has an address, too.
            let memory = allocate(bytes.max(1));
            if memory.is_null() {
                self.give_back(bytes);
            }
            memory
        }
    }

    static ALLOCATOR_FUNCTIONS: v8::RustAllocatorVtable<Share> =
        v8::RustAllocatorVtable { allocate, allocate_uninitialized, free, drop: release };

    unsafe extern "C" fn allocate(share: &Share, bytes: usize) -> *mut c_void {
        // SAFETY: calloc takes two numbers.
        share.allocate(bytes, |bytes| unsafe { libc::calloc(bytes, 1) })
    }

    unsafe extern "C" fn allocate_uninitialized(share: &Share, bytes: usize) -> *mut c_void {
        // SAFETY: malloc takes a number.
        share.allocate(bytes, |bytes| unsafe { libc::malloc(bytes) })
    }

    unsafe extern "C" fn free(share: &Share, memory: *mut c_void, bytes: usize) {
        // SAFETY: V8 gives back what it got from `allocate`, once.
        unsafe { libc::free(memory) };
        share.give_back(bytes);
    }

    unsafe extern "C" fn release(share: *const Share) {
        // SAFETY: `create_params` made the pointer of an `Arc`, and V8 drops its allocator once.
        drop(unsafe { Arc::from_raw(share) });
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn limited(bytes: usize) -> (Arc<AtomicU32>, Buffers, Share) {
            let calls = Arc::new(AtomicU32::new(0));
            let counted = calls.clone();
            let buffers = Buffers::new(move || {
                counted.fetch_add(1, Relaxed);
            });
            buffers.set_limit(bytes);
            let share = Share::of(&buffers);
            share.open.store(false, Relaxed);
            (calls, buffers, share)
        }

        #[test]
        fn memory_is_counted_until_it_is_freed() {
            let (calls, buffers, share) = limited(100);
            // SAFETY: what is allocated is freed with the same length.
            unsafe {
                let memory = allocate(&share, 60);
                assert!(!memory.is_null());
                assert_eq!(buffers.used(), 60);
                assert!(allocate_uninitialized(&share, 60).is_null());
                free(&share, memory, 60);
            }
            assert_eq!((buffers.used(), calls.load(Relaxed)), (0, 0));
        }

        #[test]
        fn only_a_refusal_after_the_garbage_was_collected_reaches_the_limit() {
            let (calls, buffers, share) = limited(100);
            let large = 10 * BUFFER_UNWIND_BYTES;
            for _ in 1..FINAL_REFUSAL {
                assert!(!share.take(large));
                assert_eq!(calls.load(Relaxed), 0);
            }
            assert!(!share.take(large));
            assert_eq!((buffers.used(), calls.load(Relaxed)), (0, 1));
        }

        #[test]
        fn memory_that_is_found_in_time_starts_the_count_again() {
            let (calls, _buffers, share) = limited(100);
            for _ in 0..FINAL_REFUSAL {
                assert!(!share.take(101));
                assert!(share.take(1));
            }
            assert_eq!(calls.load(Relaxed), 0);
        }

        #[test]
        fn a_little_is_given_at_the_end_because_native_code_may_depend_on_it() {
            let (calls, buffers, share) = limited(100);
            let given = (0..FINAL_REFUSAL).filter(|_| share.take(101)).count();
            assert_eq!((given, calls.load(Relaxed), buffers.used()), (1, 1, 101));
        }

        #[test]
        fn an_instance_that_is_being_made_is_refused_nothing() {
            let (calls, buffers, share) = limited(100);
            share.open.store(true, Relaxed);
            assert!(share.take(1_000));
            assert_eq!((buffers.used(), calls.load(Relaxed)), (1_000, 0));
        }

        #[test]
        fn the_shares_of_an_extension_are_counted_together() {
            let (_calls, buffers, share) = limited(100);
            let other = Share::of(&buffers);
            other.open.store(false, Relaxed);
            assert!(share.take(60));
            assert!(!other.take(60));
            share.give_back(60);
            assert!(other.take(60));
        }
    }
}

#[cfg(feature = "quickjs")]
mod uncounted {
    use deno_core::v8;

    /// The array buffers of one extension and its workers, which QuickJS counts itself.
    #[derive(Clone)]
    pub struct Buffers;

    impl Buffers {
        /// Nothing is counted here.
        pub fn new(_full: impl Fn() + Send + Sync + 'static) -> Self {
            Self
        }

        /// The heap's limit holds for buffers, too.
        pub fn set_limit(&self, _bytes: usize) {}

        /// The parameters of a new engine instance.
        pub fn create_params(&self, heap_bytes: usize) -> (v8::CreateParams, Allotment) {
            (super::with_heap(heap_bytes), Allotment)
        }
    }

    /// What one engine instance may have.
    pub struct Allotment;

    impl Allotment {
        /// The heap's limit holds from the beginning.
        pub fn limit(&self) {}

        /// Refusals are the heap's.
        pub fn is_refused(&self) -> bool {
            false
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::io::Read;
    use std::io::Write;
    use std::process::Child;
    use std::process::Command;
    use std::process::Stdio;

    use super::*;

    const MEGABYTE: usize = 1024 * 1024;

    /// A program that keeps so much of what it reads.
    fn keeping(bytes: usize) -> Child {
        let mut child = Command::new("tail")
            .args(["-c", &bytes.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It writes when it has all, and waits because nobody reads more.
        child.stdin.take().unwrap().write_all(&vec![b'x'; bytes]).unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        child
    }

    #[test]
    fn the_memory_of_processes_is_added_up() {
        let mut programs = [keeping(40 * MEGABYTE), keeping(40 * MEGABYTE)];
        let both = programs.each_ref().map(|program| program.id().cast_signed());
        assert!(!together_exceed(&both[..1], 60 * MEGABYTE));
        assert!(together_exceed(&both, 60 * MEGABYTE));
        assert!(!together_exceed(&both, 120 * MEGABYTE));
        assert!(share_of_pages(both[0]).unwrap() >= 39 * MEGABYTE);
        for program in &mut programs {
            program.kill().unwrap();
            program.wait().unwrap();
        }
    }

    #[test]
    fn a_copy_of_a_process_counts_once_as_long_as_it_writes_nothing() {
        // In a process of its own: the copies must not have the pages of other tests.
        let held = vec![1_u8; 64 * MEGABYTE];
        let (mut reader, writer) = std::io::pipe().unwrap();
        // SAFETY: the copy makes system calls only.
        let copy = unsafe { libc::fork() };
        if copy == 0 {
            // SAFETY: as above; it ends when its parent has it ended.
            unsafe {
                libc::write(std::os::fd::AsRawFd::as_raw_fd(&writer), [1_u8].as_ptr().cast(), 1);
                loop {
                    libc::pause();
                }
            }
        }
        reader.read_exact(&mut [0]).unwrap();
        let both = [std::process::id().cast_signed(), copy];
        let (own, own_share) = (resident_bytes(), share_of_pages(both[0]).unwrap());
        assert!(own >= 64 * MEGABYTE && own_share < own, "{own} {own_share}");
        assert!(!together_exceed(&both, own + 32 * MEGABYTE));
        drop(held);
        // SAFETY: numbers, and a status that nobody asks for.
        unsafe {
            libc::kill(copy, libc::SIGKILL);
            libc::waitpid(copy, std::ptr::null_mut(), 0);
        }
    }
}
