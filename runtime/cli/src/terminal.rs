//! The terminal, as far as `tenon run` and `tenon chat` share it: events as text, questions to the person.

pub mod dialog;
mod figures;
mod front;
pub mod keys;
pub mod line;
mod look;
mod lookup;
mod markdown;
mod notices;
pub mod paint;
mod renderer;
pub mod screen;
mod tool_lines;

pub use front::TerminalFront;
pub use lookup::Lookup;
pub use renderer::RenderOptions;
pub use renderer::Renderer;
