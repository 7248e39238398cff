//! Memory shared with an isolate host: one word for each isolate that says whether its code is running.
//!
//! When the host dies, nobody in it can say who was at work. The words outlive it.

use std::io;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;
use std::os::fd::FromRawFd;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;

/// The most isolates of one host that are told apart; those beyond are never suspected.
pub const SLOTS: usize = 16 * 1024;

/// A number for an isolate within its host.
pub type Slot = u32;

/// The shared words.
pub struct Slots {
    memory: NonNull<AtomicU32>,
    file: OwnedFd,
    free: Mutex<Free>,
}

#[derive(Default)]
struct Free {
    next: Slot,
    returned: Vec<Slot>,
}

// SAFETY: the memory is only used through atomics, and unmapped when the last owner is gone.
unsafe impl Send for Slots {}
// SAFETY: as above.
unsafe impl Sync for Slots {}

impl Slots {
    /// New words, all zero.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the name is a constant C string; the descriptor is new and ours.
        let file = unsafe {
            let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
            let descriptor = libc::memfd_create(c"tenon-turns".as_ptr(), flags);
            if descriptor < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(descriptor)
        };
        std::fs::File::from(file.try_clone()?).set_len((SLOTS * size_of::<AtomicU32>()) as u64)?;
        // The other process runs code of others: what it could cut off would be our end.
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: fcntl takes integers here, and the file is ours.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Self::map(file)
    }

    /// The words behind a descriptor that [`Slots::new`] made, perhaps in another process.
    pub fn map(file: OwnedFd) -> io::Result<Self> {
        let length = SLOTS * size_of::<AtomicU32>();
        if std::fs::File::from(file.try_clone()?).metadata()?.len() < length as u64 {
            return Err(io::Error::other("the shared memory is too small"));
        }
        let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping of a file that is long enough, and sealed: nobody can shorten it.
        let memory = unsafe {
            libc::mmap(std::ptr::null_mut(), length, access, shared, file.as_raw_fd(), 0)
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or_else(|| io::Error::other("no address"))?;
        Ok(Self { memory, file, free: Mutex::default() })
    }

    /// To be passed to the other process.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The word of an isolate; `None` if there are not that many.
    pub fn word(&self, slot: Slot) -> Option<&AtomicU32> {
        // SAFETY: within the mapping, which lives as long as we do; zeroed memory is a valid atomic.
        ((slot as usize) < SLOTS).then(|| unsafe { self.memory.add(slot as usize).as_ref() })
    }

    /// A number that nobody has.
    pub fn take(&self) -> Slot {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = free.returned.pop().unwrap_or_else(|| {
            free.next += 1;
            free.next - 1
        });
        if let Some(word) = self.word(slot) {
            word.store(0, Ordering::Relaxed);
        }
        slot
    }

    /// Gives a number back.
    pub fn give_back(&self, slot: Slot) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).returned.push(slot);
    }

    /// Whether the isolate's code is running: its word is odd.
    pub fn is_running(&self, slot: Slot) -> bool {
        self.word(slot).is_some_and(|word| word.load(Ordering::Relaxed) % 2 == 1)
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this length; no reference into it outlives us.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), SLOTS * size_of::<AtomicU32>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_mapping_writes_the_other_reads() {
        let ours = Slots::new().unwrap();
        let theirs = Slots::map(ours.file().try_clone_to_owned().unwrap()).unwrap();
        let slot = ours.take();
        assert!(!ours.is_running(slot));
        theirs.word(slot).unwrap().fetch_add(1, Ordering::Relaxed);
        assert!(ours.is_running(slot));
        assert!(theirs.word(SLOTS as u32).is_none());
    }

    #[test]
    fn nobody_can_cut_the_memory_off() {
        let slots = Slots::new().unwrap();
        let file = std::fs::File::from(slots.file().try_clone_to_owned().unwrap());
        assert!(file.set_len(0).is_err());
    }

    #[test]
    fn a_number_that_was_given_back_is_used_again() {
        let slots = Slots::new().unwrap();
        let (first, second) = (slots.take(), slots.take());
        assert_ne!(first, second);
        slots.give_back(first);
        assert_eq!(slots.take(), first);
    }
}
