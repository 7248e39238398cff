//! Why an extension could not be installed.

use std::path::PathBuf;

use crate::discovery::ENTRY_FILES;
use crate::scaffold::NameError;

/// An extension could not be installed, or not taken away.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The source cannot be understood, or will not be used.
    #[error("\"{text}\" cannot be installed: {why}")]
    BadSource {
        /// What was given.
        text: String,
        /// Why not.
        why: String,
    },
    /// Git could not get the files.
    #[error("{source_text} cannot be fetched:\n{said}")]
    Git {
        /// The repository.
        source_text: String,
        /// What git said.
        said: String,
    },
    /// The path inside the source is not one.
    #[error("{path} is not a folder inside the source")]
    NotInside {
        /// The path.
        path: PathBuf,
    },
    /// There is no extension.
    #[error(
        "there is no extension in {place}: none of {} is in it, in a folder of it, or in a folder of its \
         .github/extensions",
        ENTRY_FILES.join(", ")
    )]
    NoEntry {
        /// Where was looked.
        place: String,
    },
    /// There are several extensions.
    #[error("there are several extensions in {place}; choose one by its path: {}", list(folders))]
    Several {
        /// Where was looked.
        place: String,
        /// Their folders, relative to it.
        folders: Vec<PathBuf>,
    },
    /// Its name will not do.
    #[error("{0}; another name can be given")]
    Name(#[from] NameError),
    /// There is something of that name.
    #[error("{path} is there already; remove it first, replace it, or give another name")]
    Exists {
        /// What is there.
        path: PathBuf,
    },
    /// The extension would be copied into itself.
    #[error("{path} contains the folder it is to be installed into")]
    IntoItself {
        /// The source.
        path: PathBuf,
    },
    /// A link leads out of the extension, or nowhere.
    #[error("{path} is a link to {target}, which is not a file of the extension")]
    Escapes {
        /// The link.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// Something that is neither file nor folder.
    #[error("{path} is neither a file nor a folder")]
    Special {
        /// What it is.
        path: PathBuf,
    },
    /// Too many files.
    #[error("it has more than {limit} files; is it the right folder?")]
    TooManyFiles {
        /// How many there may be.
        limit: usize,
    },
    /// Too many bytes.
    #[error("it has more than {} MB; is it the right folder?", limit / (1024 * 1024))]
    TooLarge {
        /// How many there may be.
        limit: u64,
    },
    /// It was looked at and found wanting.
    #[error("it was not installed: {why}")]
    Refused {
        /// What is wrong with it.
        why: String,
    },
    /// Somebody wanted the program to end before it was in place.
    #[error("interrupted")]
    Interrupted,
    /// No extension is there.
    #[error("{path} is not the folder of an extension")]
    NotAnExtension {
        /// The path.
        path: PathBuf,
    },
    /// The file system would not.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

fn list(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}
