//! Finding and reading the modules of an extension.

mod commonjs;
pub mod loader;
pub mod node;
mod typescript;
