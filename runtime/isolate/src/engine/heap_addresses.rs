//! Keeps V8's heap together in the address space.
//!
//! Without pointer compression V8 asks for every chunk of 256 KB at a random address, so that no two are near each other.
//! The kernel needs three tables of 4 KB for each, and a fork has its own of all of them: 0.4 MB for every extension. Here
//! the chunks come one after the other, from one random address on.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use deno_core::v8;

use super::virtual_table;

/// Place of `GetPageAllocator` among the functions of `v8::Platform`.
const GET_PAGE_ALLOCATOR: usize = 2;

/// Virtual functions of `v8::PageAllocator`, its two destructors included.
const FUNCTIONS: usize = 19;
const GET_RANDOM_MMAP_ADDR: usize = 5;

/// The size of a chunk, and so the least distance of two addresses.
const CHUNK: u64 = 256 * 1024;

/// Addresses are handed out over so much room, then from its beginning again. It is larger than all heaps of an
/// extension; where something is mapped already, the kernel finds another place.
const ROOM: u64 = 4 * 1024 * 1024 * 1024;

/// The highest address that V8 would choose.
const HIGHEST: u64 = if cfg!(target_arch = "aarch64") { 0x3f_ffff_f000 } else { 0x3fff_ffff_f000 };

/// Where the room begins.
static BEGIN: AtomicU64 = AtomicU64::new(0);

/// How many addresses were handed out.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Has the platform's page allocator hand out addresses that are near each other.
///
/// # Safety
///
/// The platform must be the object of the known version, and not be used by another thread.
pub unsafe fn install(platform: &v8::UniqueRef<v8::Platform>) {
    let mut random = [0; 8];
    // SAFETY: the buffer is ours and has the given length.
    if unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) } != 8 {
        return;
    }
    // As random as an address of V8's own, but for the part inside the room.
    BEGIN.store(u64::from_le_bytes(random) & HIGHEST & !(ROOM - 1), Relaxed);
    let platform = std::ptr::from_ref::<v8::Platform>(platform).cast::<()>();
    // SAFETY: the function has this signature; it returns an object that the platform owns, with one table.
    unsafe {
        let get = virtual_table::function(platform, GET_PAGE_ALLOCATOR);
        let get: extern "C" fn(*const ()) -> *mut () = std::mem::transmute(get);
        let allocator = get(platform);
        if !allocator.is_null() {
            let ours = next_address as *const ();
            virtual_table::replace(allocator, FUNCTIONS, &[(GET_RANDOM_MMAP_ADDR, ours)]);
        }
    }
}

extern "C" fn next_address(_allocator: *mut ()) -> u64 {
    BEGIN.load(Relaxed) + COUNT.fetch_add(1, Relaxed) * CHUNK % ROOM
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_a_chunk_apart_and_stay_in_the_room() {
        let (first, second) =
            (next_address(std::ptr::null_mut()), next_address(std::ptr::null_mut()));
        assert_eq!(
            (first + CHUNK - BEGIN.load(Relaxed)) % ROOM,
            (second - BEGIN.load(Relaxed)) % ROOM
        );
        const {
            assert!(
                (HIGHEST & !(ROOM - 1)) + ROOM <= 1 << 47,
                "the room may end above the process's memory"
            );
        }
    }
}
