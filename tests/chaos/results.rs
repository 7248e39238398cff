//! A flood of long results fills no disk.

use libtest_mimic::Trial;
use tenon_host::SessionOptions;
use tenon_tests::trial;

use crate::world::World;
use crate::world::call;
use crate::world::with_tools;

/// The longest result that the agent gets whole here, in bytes.
const LARGE: usize = 1000;

/// The most bytes of results that a session keeps.
const QUOTA: u64 = 256 * 1024 * 1024;

pub fn trials() -> Vec<Trial> {
    vec![trial("results::what_is_beyond_the_quota_is_cut_and_what_was_kept_stays", beyond)]
}

async fn beyond() {
    let world = World::new();
    // Not a whole number of characters fits.
    world.extension(
        "talker",
        &with_tools("", "{ name: \"long\", handler: () => \"ü\".repeat(1500) + \"!\" }"),
    );
    let options = SessionOptions { large_result_bytes: Some(LARGE + 1), ..world.options() };
    let session = world.open(options).await;
    let kept = call(&session, "long").await.unwrap();
    let file = kept.rest["resultFile"].as_str().unwrap().to_owned();
    let whole = "ü".repeat(1500) + "!";
    assert_eq!(std::fs::read_to_string(&file).unwrap(), whole);

    let results = std::path::Path::new(&file).parent().unwrap();
    let others = std::fs::File::create(results.join("others.txt")).unwrap();
    others.set_len(QUOTA - whole.len() as u64).unwrap();
    let cut = call(&session, "long").await.unwrap();
    assert!(!cut.rest.contains_key("resultFile"), "{cut:?}");
    let (beginning, why) = cut.text_result_for_llm.split_once('\n').unwrap();
    assert_eq!(beginning, "ü".repeat(LARGE / 2));
    assert!(why.contains("3 KB long") && why.contains("256 MB together"), "{why}");
    assert_eq!(std::fs::read_dir(results).unwrap().count(), 2);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), whole);

    // Where there is room again, results are kept again.
    std::fs::remove_file(results.join("others.txt")).unwrap();
    let kept = call(&session, "long").await.unwrap();
    assert_ne!(kept.rest["resultFile"].as_str().unwrap(), file);
    world.close(session).await;
}
