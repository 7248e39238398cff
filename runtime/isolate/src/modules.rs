//! Finding and reading the modules of an extension.

mod commonjs;
pub mod home;
#[cfg(feature = "quickjs")]
pub mod internal;
pub mod loader;
pub mod node;
mod outside;
mod specifier;
mod typescript;
