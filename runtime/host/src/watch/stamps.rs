//! Noticing changes by looking: what every path that matters looked like.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use super::plan::Plan;

/// What all the paths of a plan looked like at one time.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Stamps(BTreeMap<PathBuf, Option<Stamp>>);

impl Stamps {
    /// Looks at every path that matters.
    pub fn of(plan: &Plan) -> Self {
        Self(plan.paths().map(|path| (path.clone(), Stamp::of(&path))).collect())
    }
}

/// A file or folder as far as it matters.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    identity: (u64, u64),
    mode: u32,
    /// Size, and when its content and its properties were last changed. Not for folders, which change
    /// with every file in them.
    version: Option<(u64, [i64; 4])>,
}

impl Stamp {
    /// `None` if there is nothing.
    fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
        Some(Self {
            identity: (found.dev(), found.ino()),
            mode: found.mode(),
            version: (!found.is_dir()).then(|| (found.size(), times)),
        })
    }
}

/// Which folder it is that has this name now; `None` if there is none.
pub fn identity(folder: &Path) -> Option<(u64, u64)> {
    let found = std::fs::metadata(folder).ok()?;
    found.is_dir().then(|| (found.dev(), found.ino()))
}
