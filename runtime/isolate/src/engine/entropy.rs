//! `Math.random` on QuickJS. The engine seeds its generator when a context is made, which is before the fork, so every
//! process would draw the same numbers. The numbers come from here instead.

use std::cell::Cell;

thread_local! {
    /// The process that seeded the generator, and the generator's state.
    static STATE: Cell<(u32, u64)> = const { Cell::new((0, 0)) };
}

/// Fills a buffer with numbers that are good enough for `Math.random`: xorshift64*, seeded by the system in every
/// process and thread.
pub fn fill(buffer: &mut [u8]) -> bool {
    let process = std::process::id();
    let (seeded_in, mut state) = STATE.get();
    if seeded_in != process {
        let mut seed = [0; 8];
        // SAFETY: the buffer is ours and has the given length.
        if unsafe { libc::getrandom(seed.as_mut_ptr().cast(), seed.len(), 0) } != 8 {
            return false;
        }
        // Zero is the one state that xorshift cannot leave.
        state = u64::from_le_bytes(seed) | 1;
    }
    for chunk in buffer.chunks_mut(8) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let bytes = state.wrapping_mul(0x2545_F491_4F6C_DD1D).to_le_bytes();
        chunk.copy_from_slice(&bytes[..chunk.len()]);
    }
    STATE.set((process, state));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_repeat_and_fill_every_byte() {
        let (mut one, mut two) = ([0; 37], [0; 37]);
        assert!(fill(&mut one) && fill(&mut two));
        assert_ne!(one, two);
        assert!(one.iter().any(|byte| *byte > 127) && one[32..].iter().any(|byte| *byte != 0));
    }
}
