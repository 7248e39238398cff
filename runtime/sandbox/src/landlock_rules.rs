//! Landlock: what may be read, written and started, by place; TCP, signals and abstract sockets.
//!
//! The rules are on files, not on names, and are made after the mounts: a rule on what a mount covers
//! would allow the covered, not what is seen.

use std::fs::File;
use std::os::fd::IntoRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use landlock::ABI;
use landlock::Access;
use landlock::AccessFs;
use landlock::AccessNet;
use landlock::BitFlags;
use landlock::CompatLevel;
use landlock::Compatible;
use landlock::PathBeneath;
use landlock::Ruleset;
use landlock::RulesetAttr;
use landlock::RulesetCreated;
use landlock::RulesetCreatedAttr;
use landlock::RulesetError;
use landlock::Scope;
use landlock::make_bitflags;

use crate::error::SandboxError;
use crate::layers::Layer;
use crate::plan::NETWORK_READS;
use crate::plan::Network;
use crate::plan::PROGRAMS;
use crate::plan::PROGRAMS_READ;
use crate::plan::Plan;

/// The newest version whose rights are known here; newer kernels offer this one too.
const NEWEST: ABI = ABI::V9;

const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});

/// What no grant contains. With a device of one's own making, root reads the disk past all rules; a
/// device's commands and sockets have rules of their own.
const NEVER_WRITE: BitFlags<AccessFs> =
    make_bitflags!(AccessFs::{MakeChar | MakeBlock | IoctlDev | ResolveUnix});

/// What looks like folders at the top, and is the kernel. Their owner is root, so that root needs no capability to write there.
const SETTINGS: &[&str] = &["proc", "sys"];

/// Devices that hold nothing of anybody's.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
const DEVICE: BitFlags<AccessFs> =
    make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate | IoctlDev});

/// Terminals that programs make. Only their commands: to open them takes a grant for all files, because
/// the user's other terminals are among them.
const TERMINALS: &[&str] = &["/dev/ptmx", "/dev/pts"];

/// What the engine and the standard library read of the machine.
const MACHINE: &[&str] =
    &["/sys/fs/cgroup", "/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage"];

/// The same, in `/proc`, where no program is started: then the rest of it, with the arguments of
/// everybody's programs, stays closed. `/proc/self` is the folder of this process alone, none of a
/// child's. These files exist only while someone looks, and are others the next time; so they are held
/// open for as long as the process lives, and the rules on them stay good.
const PROCESS: &[&str] = &[
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/loadavg",
    "/proc/uptime",
];

/// The version of the kernel's interface.
pub fn abi() -> Option<u8> {
    /// `LANDLOCK_CREATE_RULESET_VERSION`
    const VERSION: u32 = 1;
    // SAFETY: with this flag the kernel reads nothing and answers with a number.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, VERSION)
    };
    u8::try_from(version).ok().filter(|version| *version > 0)
}

/// Puts the plan's rules in force, as far as a version of the interface goes.
pub fn apply(plan: &Plan, version: u8) -> Result<(), SandboxError> {
    let failed = |action: &str, error: RulesetError| {
        SandboxError::failed(Layer::Landlock, action, std::io::Error::other(error))
    };
    let abi = ABI::from(i32::from(version)).min(NEWEST);
    let ruleset = ruleset(plan, abi).map_err(|error| failed("make a ruleset", error))?;
    let mut rules = Rules { ruleset, abi };
    rules.add_all(plan).map_err(|error| failed("add a rule", error))?;
    let status =
        rules.ruleset.restrict_self().map_err(|error| failed("restrict the process", error))?;
    if status.ruleset == landlock::RulesetStatus::NotEnforced {
        let reason = "the kernel did not enforce the ruleset".to_owned();
        return Err(SandboxError::Missing { layer: Layer::Landlock, reason });
    }
    Ok(())
}

fn ruleset(plan: &Plan, abi: ABI) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?;
    if plan.network == Network::Nothing && abi >= ABI::V4 {
        ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4))?;
    }
    if abi >= ABI::V6 {
        ruleset = ruleset.scope(Scope::from_all(ABI::V6))?;
    }
    ruleset.create()
}

struct Rules {
    ruleset: RulesetCreated,
    abi: ABI,
}

impl Rules {
    fn add_all(&mut self, plan: &Plan) -> Result<(), RulesetError> {
        let start = if plan.run { AccessFs::Execute.into() } else { BitFlags::EMPTY };
        for path in &plan.read {
            // Programs read about themselves in `/proc`, and a rule for that is one for all processes.
            if path == Path::new("/") && !plan.run {
                self.add_files_of_the_system(READ, &["proc"])?;
                self.add_held(Path::new("/proc/self"), READ)?;
                self.add(path, AccessFs::ReadDir.into())?;
            } else {
                self.add(path, READ | start)?;
            }
        }
        let write = AccessFs::from_write(self.abi) & !NEVER_WRITE;
        for path in &plan.write {
            if path == Path::new("/") {
                // Nor in `/proc/self`: a program could write into the memory of the extension that started it.
                self.add_files_of_the_system(write, SETTINGS)?;
            } else {
                self.add(path, write)?;
            }
        }
        self.add_each(DEVICES, DEVICE)?;
        self.add_each(MACHINE, READ)?;
        if plan.run {
            self.add_each(PROGRAMS, READ | AccessFs::Execute)?;
            self.add_each(PROGRAMS_READ, READ)?;
            self.add_each(TERMINALS, AccessFs::IoctlDev.into())?;
            self.add(Path::new("/dev"), AccessFs::ReadDir.into())?;
            for path in &plan.programs {
                self.add(path, READ | AccessFs::Execute)?;
            }
        } else {
            for path in PROCESS {
                self.add_held(Path::new(path), READ)?;
            }
        }
        if plan.network != Network::Nothing || plan.run {
            self.add_each(NETWORK_READS, READ)?;
        }
        if plan.network == Network::Everything {
            self.add(Path::new("/"), AccessFs::ResolveUnix.into())?;
        }
        Ok(())
    }

    /// Allows this on all that there is, but not on some folders at the top that are the kernel: settings, and other processes.
    fn add_files_of_the_system(
        &mut self,
        access: BitFlags<AccessFs>,
        kernel: &[&str],
    ) -> Result<(), RulesetError> {
        let top = std::fs::read_dir("/").into_iter().flatten().filter_map(Result::ok);
        // Of a link, what it leads to has a rule of its own: it is at the top too, or below.
        let files = top.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
        let files = files.map(|entry| entry.path());
        for path in files.filter(|path| !kernel.iter().any(|name| path.ends_with(name))) {
            self.add(&path, access)?;
        }
        Ok(())
    }

    fn add_each(&mut self, paths: &[&str], access: BitFlags<AccessFs>) -> Result<(), RulesetError> {
        paths.iter().try_for_each(|path| self.add(Path::new(path), access))
    }

    /// Allows this on a path; what is not there needs no rule.
    fn add(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), RulesetError> {
        match opened(path) {
            Some((file, is_folder)) => self.add_opened(&file, is_folder, access),
            None => Ok(()),
        }
    }

    /// Allows this on a path, and holds it open from now on.
    fn add_held(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), RulesetError> {
        let Some((file, is_folder)) = opened(path) else { return Ok(()) };
        self.add_opened(&file, is_folder, access)?;
        let _held = file.into_raw_fd();
        Ok(())
    }

    fn add_opened(
        &mut self,
        file: &OwnedFd,
        is_folder: bool,
        access: BitFlags<AccessFs>,
    ) -> Result<(), RulesetError> {
        let possible =
            if is_folder { AccessFs::from_all(self.abi) } else { AccessFs::from_file(self.abi) };
        let access = access & possible;
        // An empty rule is an error, and needless.
        if access.is_empty() {
            return Ok(());
        }
        (&mut self.ruleset).add_rule(PathBeneath::new(file, access)).map(drop)
    }
}

/// A path, opened for nothing but to be named, and whether it is a folder.
fn opened(path: &Path) -> Option<(OwnedFd, bool)> {
    let mut options = File::options();
    let file = options.read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC).open(path).ok()?;
    let is_folder = file.metadata().ok()?.is_dir();
    Some((file.into(), is_folder))
}
