//! Real folders, real changes. Nothing here asserts how long anything takes.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::AtomicUsize;

use super::*;

const QUIET: Duration = Duration::from_millis(30);

/// How long to wait for what must come: only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long to wait for what must not come. Too short a time cannot fail a test.
const SILENCE: Duration = Duration::from_millis(400);

struct Scene {
    temp: tempfile::TempDir,
    watcher: Watcher,
    calls: mpsc::Receiver<()>,
    count: Arc<AtomicUsize>,
}

impl Scene {
    fn new() -> Self {
        Self::with(Mode::Native)
    }

    fn with(mode: Mode) -> Self {
        let (called, calls) = mpsc::channel();
        let count = Arc::new(AtomicUsize::new(0));
        let counter = count.clone();
        let watcher = Watcher::new(mode, QUIET, move || {
            counter.fetch_add(1, Ordering::Relaxed);
            let _ = called.send(());
        });
        Self { temp: tempfile::tempdir().unwrap(), watcher: watcher.unwrap(), calls, count }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.temp.path().join(path)
    }

    fn root(&self) -> PathBuf {
        self.path("repo/.github/extensions")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// One extension, and a file it imports from elsewhere.
    fn furnished(self) -> Self {
        self.write("repo/.github/extensions/one/extension.mjs", "first");
        self.write("repo/shared/util.mjs", "first");
        self.watch();
        self
    }

    fn watch(&self) {
        let files = BTreeSet::from([self.path("repo/shared/util.mjs")]);
        self.watcher.watch(&[self.root()], || files);
    }

    fn entry(&self) -> PathBuf {
        self.root().join("one/extension.mjs")
    }

    /// Waits for a call, at or after which the condition holds.
    fn wait_until(&self, holds: impl Fn() -> bool) {
        loop {
            self.calls.recv_timeout(PATIENCE).expect("a call");
            if holds() {
                return;
            }
        }
    }

    fn wait_for_text(&self, path: &Path, text: &str) {
        self.wait_until(|| fs::read_to_string(path).is_ok_and(|found| found == text));
    }

    fn expect_silence(&self) {
        assert!(self.calls.recv_timeout(SILENCE).is_err(), "called without a change");
    }
}

#[test]
fn a_file_that_is_truncated_and_written_is_noticed() {
    let scene = Scene::new().furnished();
    fs::write(scene.entry(), "").unwrap();
    fs::write(scene.entry(), "second").unwrap();
    scene.wait_for_text(&scene.entry(), "second");
}

#[test]
fn a_file_saved_by_renaming_is_noticed_every_time() {
    let scene = Scene::new().furnished();
    for text in ["second", "third", "fourth"] {
        let temporary = scene.root().join("one/.extension.mjs.tmp");
        fs::write(&temporary, text).unwrap();
        fs::rename(&temporary, scene.entry()).unwrap();
        scene.wait_for_text(&scene.entry(), text);
    }
}

#[test]
fn a_file_renamed_over_from_another_folder_is_noticed() {
    let scene = Scene::new().furnished();
    scene.write("elsewhere", "second");
    fs::rename(scene.path("elsewhere"), scene.entry()).unwrap();
    scene.wait_for_text(&scene.entry(), "second");
}

#[test]
fn a_new_extension_is_noticed_and_then_watched() {
    let scene = Scene::new().furnished();
    let entry = scene.root().join("two/extension.mjs");
    scene.write("repo/.github/extensions/two/extension.mjs", "first");
    scene.wait_for_text(&entry, "first");
    fs::write(&entry, "second").unwrap();
    scene.wait_for_text(&entry, "second");
}

#[test]
fn a_removed_extension_is_noticed_and_so_is_its_return() {
    let scene = Scene::new().furnished();
    for text in ["second", "third"] {
        fs::remove_dir_all(scene.root().join("one")).unwrap();
        scene.wait_until(|| !scene.root().join("one").exists());
        scene.write("repo/.github/extensions/one/extension.mjs", "");
        scene.wait_until(|| scene.entry().exists());
        fs::write(scene.entry(), text).unwrap();
        scene.wait_for_text(&scene.entry(), text);
    }
}

#[test]
fn an_extension_whose_folder_is_replaced_is_still_watched() {
    let scene = Scene::new().furnished();
    scene.write("repo/new/extension.mjs", "second");
    fs::rename(scene.root().join("one"), scene.path("repo/old")).unwrap();
    fs::rename(scene.path("repo/new"), scene.root().join("one")).unwrap();
    scene.wait_for_text(&scene.entry(), "second");
    fs::write(scene.entry(), "third").unwrap();
    scene.wait_for_text(&scene.entry(), "third");
}

#[test]
fn a_root_that_is_made_late_is_noticed_from_its_first_missing_folder_on() {
    let scene = Scene::new();
    scene.watch();
    scene.write("repo/.github/extensions/one/extension.mjs", "first");
    scene.wait_for_text(&scene.entry(), "first");
    fs::write(scene.entry(), "second").unwrap();
    scene.wait_for_text(&scene.entry(), "second");
}

#[test]
fn a_root_that_is_removed_or_moved_away_and_made_again_is_watched_again() {
    let scene = Scene::new().furnished();
    fs::remove_dir_all(scene.path("repo/.github")).unwrap();
    scene.wait_until(|| !scene.root().exists());
    scene.write("repo/.github/extensions/one/extension.mjs", "second");
    scene.wait_for_text(&scene.entry(), "second");
    fs::rename(scene.path("repo/.github"), scene.path("repo/.off")).unwrap();
    scene.wait_until(|| !scene.root().exists());
    fs::rename(scene.path("repo/.off"), scene.path("repo/.github")).unwrap();
    scene.wait_until(|| scene.root().exists());
    fs::write(scene.entry(), "third").unwrap();
    scene.wait_for_text(&scene.entry(), "third");
}

#[test]
fn a_storm_gives_few_calls_and_the_last_change_is_told() {
    let scene = Scene::new().furnished();
    let begun = Instant::now();
    let last = scene.root().join("e499/extension.mjs");
    for number in 0..500 {
        scene.write(&format!("repo/.github/extensions/e{number}/extension.mjs"), "");
    }
    scene.wait_until(|| last.exists());
    let count = scene.count.load(Ordering::Relaxed);
    // Before each call it was quiet for a while, or the storm lasted longer; however slowly the files were made.
    let least = QUIET * u32::try_from(count).unwrap();
    let took = begun.elapsed();
    assert!(least <= took, "{count} calls in {took:?}");
}

#[test]
fn a_storm_that_never_gets_quiet_is_told_meanwhile() {
    let scene = Scene::new().furnished();
    let entry = scene.entry();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let storm = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            fs::write(&entry, "again").unwrap();
        }
    });
    let calls: Vec<_> = (0..2).map(|_| scene.calls.recv_timeout(PATIENCE)).collect();
    stop.store(true, Ordering::Relaxed);
    storm.join().unwrap();
    assert!(calls.iter().all(Result::is_ok));
}

#[test]
fn an_imported_file_outside_the_extension_is_noticed() {
    let scene = Scene::new().furnished();
    let file = scene.path("repo/shared/util.mjs");
    fs::write(&file, "second").unwrap();
    scene.wait_for_text(&file, "second");
}

#[test]
fn an_import_that_was_missing_is_noticed_when_it_is_made() {
    let scene = Scene::new().furnished();
    let missing = scene.root().join("one/lib/missing.mjs");
    scene.watcher.watch(&[scene.root()], || BTreeSet::from([missing.clone()]));
    scene.write("repo/.github/extensions/one/lib/missing.mjs", "found");
    scene.wait_for_text(&missing, "found");
}

#[test]
fn files_that_nobody_loaded_are_no_change() {
    let scene = Scene::new().furnished();
    scene.write("repo/.github/extensions/one/notes.md", "a");
    scene.write("repo/.github/extensions/one/node_modules/p/extension.mjs", "a");
    scene.write("repo/.github/extensions/README.md", "a");
    scene.write("repo/.github/workflows/build.yml", "a");
    scene.write("repo/shared/other.mjs", "a");
    fs::read(scene.entry()).unwrap();
    scene.expect_silence();
}

#[test]
fn an_extension_behind_a_link_is_watched_where_it_really_is() {
    let scene = Scene::new().furnished();
    scene.write("elsewhere/extension.mjs", "first");
    let linked = scene.root().join("linked");
    symlink(scene.path("elsewhere"), &linked).unwrap();
    scene.wait_until(|| linked.exists());
    scene.write("elsewhere/extension.mjs", "second");
    scene.wait_for_text(&linked.join("extension.mjs"), "second");
    fs::remove_file(&linked).unwrap();
    scene.wait_until(|| !linked.exists());
}

#[test]
fn looking_again_and_again_notices_the_same() {
    let scene = Scene::with(Mode::Poll(Duration::from_millis(20))).furnished();
    assert_eq!(scene.watcher.mode(), Mode::Poll(Duration::from_millis(20)));
    fs::write(scene.entry(), "second").unwrap();
    scene.wait_for_text(&scene.entry(), "second");
    let file = scene.path("repo/shared/util.mjs");
    fs::write(&file, "second").unwrap();
    scene.wait_for_text(&file, "second");
    scene.write("repo/.github/extensions/two/extension.mjs", "first");
    scene.wait_until(|| scene.root().join("two/extension.mjs").exists());
    fs::remove_dir_all(scene.path("repo/.github")).unwrap();
    scene.wait_until(|| !scene.root().exists());
    scene.write("repo/.github/extensions/one/extension.mjs", "third");
    scene.wait_for_text(&scene.entry(), "third");
}

#[test]
fn looking_finds_no_change_in_what_nobody_loaded() {
    let scene = Scene::with(Mode::Poll(Duration::from_millis(20))).furnished();
    scene.write("repo/.github/extensions/one/notes.md", "a");
    scene.write("repo/.github/extensions/README.md", "a");
    scene.expect_silence();
}

#[test]
fn what_changed_before_the_set_of_files_was_replaced_is_not_lost() {
    let scene = Scene::with(Mode::Poll(Duration::from_secs(3600))).furnished();
    fs::write(scene.entry(), "second").unwrap();
    scene.watch();
    scene.wait_for_text(&scene.entry(), "second");
}

#[test]
fn of_two_sets_of_files_the_one_that_was_read_last_is_watched() {
    let scene = Scene::new().furnished();
    let late = scene.path("repo/late/late.mjs");
    scene.write("repo/late/late.mjs", "first");
    let (watcher, roots) = (&scene.watcher, [scene.root()]);
    let (begins, begun) = mpsc::channel();
    let slow = || {
        begins.send(()).unwrap();
        std::thread::sleep(SILENCE);
        BTreeSet::new()
    };
    std::thread::scope(|threads| {
        threads.spawn(|| watcher.watch(&roots, slow));
        begun.recv().unwrap();
        watcher.watch(&roots, || BTreeSet::from([late.clone()]));
    });
    fs::write(&late, "second").unwrap();
    scene.wait_for_text(&late, "second");
}

#[test]
fn what_was_noticed_elsewhere_is_told() {
    let scene = Scene::new().furnished();
    scene.watcher.changed();
    scene.wait_until(|| true);
}

#[test]
fn at_the_systems_limit_changes_are_looked_for_and_it_says_so() {
    let scene = Scene::new().furnished();
    {
        let mut state = scene.watcher.shared.state();
        state.fall_back(&notify::Error::new(ErrorKind::MaxFilesWatch));
        state.arm_all();
    }
    let _ = scene.watcher.signals.send(Signal::Wake);
    assert_eq!(scene.watcher.mode(), Mode::Poll(FALLBACK_POLL));
    let problems = scene.watcher.problems();
    assert!(problems[0].contains("max_user_watches"), "{problems:?}");
    fs::write(scene.entry(), "second").unwrap();
    scene.wait_for_text(&scene.entry(), "second");
}

#[test]
fn nothing_is_told_after_it_was_dropped() {
    let Scene { temp, watcher, calls, .. } = Scene::new().furnished();
    drop(watcher);
    fs::write(temp.path().join("repo/.github/extensions/one/extension.mjs"), "second").unwrap();
    // The thread has ended, and what it would call is gone with it.
    assert!(matches!(calls.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected)));
}
