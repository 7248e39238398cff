//! For tests: what a hook is told, and how a text of JSON came about.

use std::cell::RefCell;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::Formatter;

use super::Chain;
use super::HookInput;

/// What the next extension of a chain would be told.
pub fn told(chain: &impl Chain) -> Value {
    serde_json::to_value(input(chain)).unwrap()
}

fn input<C: Chain>(chain: &C) -> HookInput<'_, C> {
    HookInput { chain, session_id: "s", timestamp: 0, cwd: Path::new("/") }
}

/// A text, and what was done for it.
#[derive(Debug, Default)]
pub struct Written {
    pub text: String,
    /// How many objects were walked.
    pub objects: usize,
    /// What was there as text already.
    pub spliced: Vec<String>,
}

impl Written {
    /// Writes something down.
    pub fn of(value: &impl Serialize) -> Self {
        let (mut text, watched) = (Vec::new(), RefCell::default());
        let mut serializer = serde_json::Serializer::with_formatter(&mut text, Watch(&watched));
        value.serialize(&mut serializer).unwrap();
        Self { text: String::from_utf8(text).unwrap(), ..watched.into_inner() }
    }

    /// Writes down what the next extension of a chain would be told.
    pub fn of_hook(chain: &impl Chain) -> Self {
        Self::of(&input(chain))
    }
}

struct Watch<'a>(&'a RefCell<Written>);

impl Formatter for Watch<'_> {
    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.borrow_mut().objects += 1;
        writer.write_all(b"{")
    }

    fn write_raw_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        self.0.borrow_mut().spliced.push(fragment.to_owned());
        writer.write_all(fragment.as_bytes())
    }
}
