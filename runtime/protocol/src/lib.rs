//! What a session and its extensions say to each other.
//!
//! Plain data and the way it travels: [`message`]s, the [`limits`] and grants in them, [`wire`] frames, the
//! [`zygote`]'s socket with the [`descriptors`] it passes along.
//! Nothing here depends on a JavaScript engine, so a session and its tests build and link without one.

pub mod descriptors;
pub mod engine;
pub mod json;
pub mod json_values;
pub mod layers;
pub mod limits;
pub mod message;
#[cfg(target_os = "linux")]
pub mod peer;
pub mod permission;
pub mod place;
pub mod wire;
pub mod zygote;
