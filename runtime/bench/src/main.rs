//! `tenon-bench`: measures what extensions cost in Tenon.

use std::process::ExitCode;

fn main() -> ExitCode {
    // SAFETY: nothing was done before, so there is one thread.
    unsafe { tenon_bench::main() }
}
