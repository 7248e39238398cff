//! Fills the holes of the C library's heap before the fork.
//!
//! Booting leaves free pieces between what is in use, all over the heap. A fork would allocate from them first, and copy a
//! page for each. Without holes it allocates one piece after the other at the heap's end, on few pages. What fills the
//! holes is never touched but for its header.

/// The largest and the smallest piece that is tried. A larger one than the first is a mapping of its own; a smaller one than
/// the last does not exist.
#[cfg(target_env = "gnu")]
const SIZES: std::ops::RangeInclusive<usize> = 16..=64 * 1024;

/// Pieces at most: a bound for a heap that does not behave as expected. After a boot there are some thousand.
#[cfg(target_env = "gnu")]
const MAX_PIECES: usize = 100_000;

/// Takes every free piece but the last, and never gives it back.
pub fn fill() {
    #[cfg(target_env = "gnu")]
    // SAFETY: plain calls of the C library's allocator; what is allocated is given up, never used.
    unsafe {
        let mut size = *SIZES.end();
        let mut pieces = 0;
        let mut end = end_of_pieces();
        while size >= *SIZES.start() && pieces < MAX_PIECES {
            let piece = libc::malloc(size);
            if piece.is_null() {
                return;
            }
            pieces += 1;
            if (piece as usize) < end {
                continue;
            }
            // It came from the heap's end, so no hole is that large any more.
            libc::free(piece);
            size -= if size > 1024 { size / 8 / 16 * 16 } else { 16 };
            end = end_of_pieces();
        }
    }
}

#[cfg(target_env = "gnu")]
unsafe extern "C" {
    fn sbrk(increment: isize) -> *mut std::ffi::c_void;
}

/// Where the last free piece begins: it reaches to the end of the heap.
#[cfg(target_env = "gnu")]
fn end_of_pieces() -> usize {
    // SAFETY: both calls only look. The heap may be larger than the numbers of `mallinfo`, its last piece is not.
    unsafe { (sbrk(0) as usize).saturating_sub(libc::mallinfo().keepcost as usize) }
}
