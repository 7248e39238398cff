//! Files to try things on.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::chown;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;

/// A workspace, an extension's folder and something outside both.
pub struct World(PathBuf);

impl World {
    pub fn make(base: &Path, owner: u32) -> io::Result<Self> {
        let world = Self(base.canonicalize()?);
        let files = [
            "ws/notes.txt",
            "ws/.github/extensions/other/main.js",
            "ws/.git/config",
            "ws/.git/hooks/pre-commit",
            "ws/.git/refs/heads/main",
            "ws/sub/deep/secret/key.txt",
            "ws/sub/token.txt",
            "ws/home/config.toml",
            "ws/home/data/kept.txt",
            "ws/home/run/nothing",
            "ws/sub/trust.json",
            "ext/main.js",
            "outside/home/config.toml",
            "outside/home/data/kept.txt",
            "outside/home/run/nothing",
            "outside/secret.txt",
        ];
        for file in files {
            let path = world.0.join(file);
            fs::create_dir_all(path.parent().unwrap())?;
            fs::write(&path, file)?;
        }
        symlink("../outside/secret.txt", world.0.join("ws/way-out"))?;
        symlink("sub/deep/secret", world.0.join("ws/to-secret"))?;
        symlink("../.git/hooks", world.0.join("ws/sub/to-hooks"))?;
        symlink("../outside/home", world.0.join("ws/to-home"))?;
        symlink("../../ws/sub/trust.json", world.0.join("outside/home/trust.json"))?;
        give(&world.0, owner)?;
        Ok(world)
    }

    pub fn at(base: &Path) -> Self {
        Self(base.to_owned())
    }

    pub fn base(&self) -> &Path {
        &self.0
    }

    pub fn workspace(&self) -> PathBuf {
        self.0.join("ws")
    }

    pub fn extension(&self) -> PathBuf {
        self.0.join("ext")
    }

    /// A path below the base.
    pub fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// The same, as grants have it.
    pub fn text(&self, path: &str) -> String {
        self.path(path).display().to_string()
    }
}

fn give(path: &Path, owner: u32) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_dir() {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), owner)?;
        }
    }
    if !metadata.is_symlink() {
        chown(path, Some(owner), Some(owner))?;
    }
    Ok(())
}
