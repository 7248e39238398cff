//! Files below a folder, in which an extension makes links and names as it likes.
//!
//! Whatever is read, written, made or deleted: what is outside of the folder stays as it is, nothing of it is read, and a file
//! that is opened is inside. What was written is what is read; what can be made can be replaced.

#![no_main]

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::sync::OnceLock;

use arbitrary::Result;
use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;
use tenon_acp::client_services::fuzzing as files;
use tenon_host::beneath::Beneath;

const SECRET: &str = "what is outside";

/// The longest text that is read, in bytes.
const MOST: usize = 1000;

/// The most that is done in one run.
const MOST_STEPS: usize = 12;

struct Place {
    temp: TempDir,
    inside: PathBuf,
    outside: PathBuf,
}

fn place() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| {
        // In memory, where there is such a folder: several files are made and deleted in each run.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let temp = tempfile::Builder::new().prefix("tenon-fuzz-").tempdir_in(folder).unwrap();
        let root = temp.path().canonicalize().unwrap();
        let (inside, outside) = (root.join("inside"), root.join("outside"));
        fs::create_dir_all(outside.join("a")).unwrap();
        fs::write(outside.join("secret"), SECRET).unwrap();
        fs::write(outside.join("a/b"), SECRET).unwrap();
        fs::write(root.join("secret"), SECRET).unwrap();
        Place { temp, inside, outside }
    })
}

/// All that is outside, with what is in it.
fn outside(place: &Place) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut folders = vec![place.temp.path().canonicalize().unwrap()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path == place.inside {
                continue;
            }
            let kind = fs::symlink_metadata(&path).unwrap();
            found.push((path.clone(), kind.is_file().then(|| fs::read(&path).unwrap())));
            if kind.is_dir() {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

fuzz_target!(|data: &[u8]| {
    static BEFORE: OnceLock<Vec<(PathBuf, Option<Vec<u8>>)>> = OnceLock::new();
    let place = place();
    let before = BEFORE.get_or_init(|| outside(place));
    fs::create_dir(&place.inside).unwrap();
    // The end of the input ends what is done.
    let _ = run(place, &mut Unstructured::new(data));
    fs::remove_dir_all(&place.inside).unwrap();
    assert!(*before == outside(place), "what is outside has changed");
});

fn run(place: &Place, u: &mut Unstructured<'_>) -> Result<()> {
    // A second name of a file is the file: only what puts a new one in its place leaves the other alone.
    let with_names = u.arbitrary()?;
    for _ in 0..MOST_STEPS {
        match u.int_in_range(0..=8)? {
            kind @ 0..=2 => {
                let (at, target) = (place.inside.join(relative(u)?), target(place, u)?);
                if !at.parent().is_some_and(|folder| is_inside(place, folder)) {
                    continue;
                }
                // What cannot be made is not there.
                let _ = match kind {
                    0 => symlink(target, at),
                    1 if with_names => fs::hard_link(place.outside.join("secret"), at),
                    _ => fs::create_dir(at),
                };
            }
            3..=6 => beneath(place, u, with_names)?,
            _ if !with_names => by_agent(place, u)?,
            _ => {}
        }
    }
    Ok(())
}

fn is_inside(place: &Place, folder: &Path) -> bool {
    fs::canonicalize(folder).is_ok_and(|real| real.starts_with(&place.inside))
}

fn name(u: &mut Unstructured<'_>) -> Result<OsString> {
    let names = ["a", "b", "link", "..", ".", "", "secret", "outside", "inside"];
    Ok(match u.int_in_range(0..=11)? {
        10 => OsString::from_vec(u.arbitrary()?),
        11 => "é".repeat(u.int_in_range(100..=130)?).into(),
        index => names[index % names.len()].into(),
    })
}

fn relative(u: &mut Unstructured<'_>) -> Result<PathBuf> {
    let mut path = OsString::new();
    for number in 0..u.int_in_range(1..=4)? {
        if number > 0 {
            path.push("/");
        }
        path.push(name(u)?);
    }
    // What begins at the root is tried elsewhere.
    let path = PathBuf::from(path);
    Ok(path.strip_prefix("/").map(Path::to_owned).unwrap_or(path))
}

/// Where a link leads.
fn target(place: &Place, u: &mut Unstructured<'_>) -> Result<PathBuf> {
    Ok(match u.int_in_range(0..=6)? {
        0 => place.outside.clone(),
        1 => place.outside.join("secret"),
        2 => place.outside.join("missing"),
        3 => "..".into(),
        4 => "../outside/a".into(),
        5 => place.inside.clone(),
        _ => relative(u)?,
    })
}

/// What a session does with paths of an extension.
fn beneath(place: &Place, u: &mut Unstructured<'_>, with_names: bool) -> Result<()> {
    let folder = Beneath::open(&place.inside).unwrap();
    let path = match u.int_in_range(0..=7)? {
        0 => place.outside.join("secret"),
        1 => place.inside.join(relative(u)?),
        _ => relative(u)?,
    };
    match u.int_in_range(0..=4)? {
        0 => {
            if let Ok(text) = folder.read(&path, MOST) {
                assert!(text.len() <= MOST);
                assert!(with_names || text != SECRET, "{} was read", path.display());
            }
        }
        1 => {
            if folder.replace(&path, b"mine").is_ok() {
                assert_eq!(folder.read(&path, MOST).unwrap(), "mine");
            }
        }
        2 => {
            if folder.create(&path, b"mine").is_ok() {
                assert_eq!(folder.read(&path, MOST).unwrap(), "mine");
                assert!(folder.create(&path, b"again").is_err());
                folder.replace(&path, b"more").unwrap();
                assert_eq!(folder.read(&path, MOST).unwrap(), "more");
            }
        }
        3 => {
            if let Ok(mut file) = folder.append(&path) {
                let real = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
                assert!(real.starts_with(&place.inside), "{} was opened", real.display());
                let mut text = String::new();
                file.read_to_string(&mut text).unwrap();
                assert_ne!(text, SECRET);
            }
        }
        _ => drop(folder.remove(&path)),
    }
    Ok(())
}

/// What is done with paths of an agent.
fn by_agent(place: &Place, u: &mut Unstructured<'_>) -> Result<()> {
    let path = match u.int_in_range(0..=7)? {
        0 => relative(u)?,
        1 => place.outside.join(relative(u)?),
        2 => Path::new("/").join(relative(u)?),
        _ => place.inside.join(relative(u)?),
    };
    let Ok(real) = files::resolve(&place.inside, &path) else { return Ok(()) };
    assert!(real.starts_with(&place.inside), "{} leads to {}", path.display(), real.display());
    assert_eq!(files::resolve(&place.inside, &real).unwrap(), real);
    if u.arbitrary()? {
        let (line, limit) = (u.arbitrary()?, u.arbitrary()?);
        if let Ok(text) = files::read(&real, line, limit) {
            assert_ne!(text, SECRET);
        }
    } else if files::write(&real, "one\ntwo").is_ok() {
        assert_eq!(files::read(&real, None, None).unwrap(), "one\ntwo");
        assert_eq!(files::read(&real, Some(2), Some(1)).unwrap(), "two");
    }
    Ok(())
}
