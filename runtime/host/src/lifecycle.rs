//! The state machine of extensions: what each one is, which load of it serves whom, and what follows from what happens to it.
//!
//! An extension is loaded again while the load before still serves. What is on its way in waits in `next`, `current` serves, and
//! what was replaced finishes its calls in `draining`. Every transition is a method of [`Table`]. It changes the table and
//! returns [`Effects`]: what the session has to do about it once nothing is locked. Nothing in here waits, locks, reads files or
//! asks for the time, so all of it is tested without an engine.
//!
//! What an extension's process says may be anything at any time. What does not fit the stage its load is in changes nothing and
//! is a line in the extension's log. What comes from a load that is gone already is ignored.

mod effects;
mod ending;
mod load;
mod machine;
mod names;
mod offers;
mod record;
mod serving;
mod starting;
mod table;
mod taken_port;

#[cfg(test)]
#[expect(unused_must_use, reason = "a test looks at the effects that it is about")]
mod tests;

pub use effects::Effect;
pub use effects::Effects;
pub use ending::End;
pub use ending::Stays;
pub use load::Epoch;
pub use load::Key;
pub use load::Load;
pub use load::Payload;
pub use load::Peer;
pub use load::Stage;
pub use load::id_of;
pub use machine::Extension;
pub use offers::CheckedOffers;
pub use record::Record;
pub use starting::Obstructed;
pub use table::Slot;
pub use table::Table;
