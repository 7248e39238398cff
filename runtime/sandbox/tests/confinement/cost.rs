//! How long it takes to confine a process: `cargo test -p tenon-sandbox --test confinement -- --cost`.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use tenon_protocol::message::Access;
use tenon_protocol::message::Grant;
use tenon_sandbox::Mode;
use tenon_sandbox::Request;

use crate::attempts;
use crate::world::World;

/// Enough for the middle one to be about the same each time.
const ROUNDS: usize = 200;

pub fn measure() {
    let place = tempfile::tempdir().unwrap();
    // SAFETY: cannot fail.
    let world = World::make(place.path(), unsafe { libc::geteuid() }).unwrap();
    let inside = || Access::only([world.text("ws")]);
    let none = Access::none();
    let plain =
        Grant { read: inside(), write: inside(), net: none.clone(), run: none, ..Grant::default() };
    let runs = Grant { run: Access::all(), ..plain.clone() };
    let protected: Vec<_> = [".github/extensions", ".git/hooks", ".git/config"]
        .map(|path| world.workspace().join(path))
        .into();
    let cases: [(&str, &Grant, &[PathBuf]); 3] = [
        ("workspace, no programs", &plain, &[]),
        ("workspace, with programs", &runs, &[]),
        ("workspace with three protected paths", &plain, &protected),
    ];
    let mut lines = String::new();
    for (name, grant, protected) in cases {
        let mut times: Vec<_> = (0..ROUNDS).map(|_| once(&world, grant, protected)).collect();
        times.sort();
        let (wall, cpu) = times[ROUNDS / 2];
        lines.push_str(&format!("{name}: {wall:?} ({cpu:?} CPU)\n"));
    }
    std::io::stdout().write_all(lines.as_bytes()).unwrap();
}

/// Confines a child and returns what it took, by the clock and of the processor.
fn once(world: &World, grant: &Grant, protected: &[PathBuf]) -> (Duration, Duration) {
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let status = attempts::in_child(|| {
        let folder = world.extension();
        let request =
            Request { grant, folder: &folder, readable: &[], protected, mode: Mode::Required };
        let (start, cpu) = (Instant::now(), processor_time());
        let done = tenon_sandbox::confine(&request);
        let (wall, cpu) = (start.elapsed(), processor_time() - cpu);
        done.unwrap();
        let numbers = [wall, cpu].map(|time| (time.as_nanos() as u64).to_ne_bytes());
        i32::from(writer.write_all(&numbers.concat()).is_err())
    });
    assert_eq!(status, 0);
    let mut bytes = [0; 16];
    std::io::Read::read_exact(&mut reader, &mut bytes).unwrap();
    let number = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    (Duration::from_nanos(number(0)), Duration::from_nanos(number(8)))
}

fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills one time.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
