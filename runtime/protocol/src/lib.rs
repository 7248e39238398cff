//! What a session and its extensions say to each other.
//!
//! Plain data and the way it travels: [`message`]s, the [`limits`] and grants in them, [`wire`] frames, the
//! [`control`] socket of an isolate host with the [`descriptors`] it passes along and the [`slots`] both sides share.
//! Nothing here depends on a JavaScript engine, so a session and its tests build and link without one.

pub mod control;
pub mod descriptors;
pub mod engine;
pub mod limits;
pub mod message;
pub mod place;
pub mod slots;
pub mod wire;
