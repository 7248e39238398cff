//! ACP agents as subprocesses.
