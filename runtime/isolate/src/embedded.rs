//! What the build script made: the startup snapshot and the sources beside it.

/// The startup snapshot; there is none on QuickJS.
#[cfg(feature = "v8")]
pub static SNAPSHOT: Option<&[u8]> =
    Some(include_bytes!(concat!(env!("OUT_DIR"), "/snapshot.bin")));
/// The startup snapshot; there is none on QuickJS.
#[cfg(feature = "quickjs")]
pub static SNAPSHOT: Option<&[u8]> = None;

mod generated {
    #![allow(missing_docs, reason = "generated")]
    include!(concat!(env!("OUT_DIR"), "/sources.rs"));
}

pub use generated::EAGER;
pub use generated::LAZY_MODULES;
pub use generated::LAZY_SCRIPTS;
