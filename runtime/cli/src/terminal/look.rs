//! Signs and styles of the terminal: for one that shows colours, and for plain text.

use anstyle::Style;

use crate::output::BOLD;
use crate::output::CYAN;
use crate::output::DIM;
use crate::output::GREEN;
use crate::output::RED;
use crate::output::YELLOW;

/// How things look. Plain text has no sequences, and no signs outside of ASCII.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Something begins.
    pub begins: &'static str,
    /// It went well.
    pub done: &'static str,
    /// It did not.
    pub failed: &'static str,
    /// It was not allowed.
    pub denied: &'static str,
    /// Somebody says something.
    pub says: &'static str,
    /// Between a name and what is said of it.
    pub between: &'static str,
    /// A step of a plan: to be done, being done, done.
    pub steps: [&'static str; 3],
    /// Before each line of a thought.
    pub thinks: &'static str,
    /// Names.
    pub name: Style,
    /// What is of less interest.
    pub faint: Style,
    /// What went well.
    pub good: Style,
    /// What did not.
    pub bad: Style,
    /// What may not be as it should.
    pub doubtful: Style,
    /// What is pointed at.
    pub pointed: Style,
}

impl Look {
    /// With colours, or as plain text.
    pub const fn new(colour: bool) -> Self {
        if colour { Self::COLOURS } else { Self::PLAIN }
    }

    const COLOURS: Self = Self {
        begins: "●",
        done: "✓",
        failed: "✗",
        denied: "⊘",
        says: "›",
        between: "·",
        steps: ["☐", "▶", "☑"],
        thinks: "",
        name: BOLD,
        faint: DIM,
        good: GREEN,
        bad: RED,
        doubtful: YELLOW,
        pointed: CYAN,
    };

    const PLAIN: Self = Self {
        begins: "*",
        done: "ok",
        failed: "failed",
        denied: "denied",
        says: ">",
        between: "-",
        steps: ["[ ]", "[>]", "[x]"],
        thinks: "~ ",
        name: Style::new(),
        faint: Style::new(),
        good: Style::new(),
        bad: Style::new(),
        doubtful: Style::new(),
        pointed: Style::new(),
    };
}
