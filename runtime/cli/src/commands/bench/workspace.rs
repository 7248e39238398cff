//! Sessions to measure: extensions from sources, events recorded as usual.

use std::path::Path;

use tenon_host::Isolates;
use tenon_host::Session;
use tenon_host::SessionOptions;

use crate::error::CliError;

/// A session in a folder of its own with the given extensions loaded, each by name and source.
pub async fn session(
    folder: &Path,
    sources: impl IntoIterator<Item = (String, String)>,
    isolates: Isolates,
) -> Result<Session, CliError> {
    let extensions = folder.join("extensions");
    for (name, source) in sources {
        std::fs::create_dir_all(extensions.join(&name))?;
        std::fs::write(extensions.join(name).join("extension.mjs"), source)?;
    }
    let options = SessionOptions {
        extension_folders: vec![extensions],
        record: true,
        isolates,
        ..SessionOptions::new(folder.to_owned(), folder.join("home"))
    };
    let session = Session::new(options)?;
    session.load().await;
    Ok(session)
}
