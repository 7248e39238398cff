//! What several transitions in a row come to.

use std::time::Duration;

use super::*;
use crate::extension::LoadError;
use crate::extension::Status;
use crate::supervision::HEALTHY_AFTER;
use crate::supervision::MAX_FAILURES;

fn plan(world: &World) -> u64 {
    world.get(&key("a")).unwrap().record().plan()
}

#[test]
fn a_plan_to_make_room_is_waited_for_until_it_is_overtaken() {
    let mut world = World::default();
    let first = world.start("a");
    world.run(&first);
    let second = world.start("a");
    world.join(&second);
    let taken = "Error: listen EADDRINUSE: address already in use 127.0.0.1:3000";
    let effects = world.end(&second, threw(taken));
    let number = plan(&world);
    let check = Effect::CheckPort { key: key("a"), pid: 7, port: 3000, plan: number };
    assert_eq!(effects.last(), Some(&check));
    assert!(world.get(&key("a")).unwrap().is_starting());
    // The process does not listen: nobody waits any longer.
    let mut other = world.clone();
    assert_eq!(names(&other.port_answered(&key("a"), 3000, number, false)), "changed");
    assert!(!other.get(&key("a")).unwrap().is_starting());
    // It does: the load that serves makes room, and something overtakes that.
    let room = Effect::MakeRoom { key: key("a"), port: 3000, plan: number };
    assert_eq!(*world.port_answered(&key("a"), 3000, number, true), [room]);
    assert!(world.get(&key("a")).unwrap().is_starting());
    world.forgive(&key("a"));
    assert!(!world.get(&key("a")).unwrap().is_starting());
    assert_eq!(*world.port_answered(&key("a"), 3000, number, true), []);
}

#[test]
fn a_call_that_may_wait_for_the_reload_is_not_waited_for_by_it() {
    let mut world = World::default();
    let first = world.start("a");
    world.run(&first);
    world.payload_mut(&first).unwrap().calls = 1;
    let second = world.start("a");
    world.join(&second);
    world.end(&second, threw("Error: listen EADDRINUSE: address already in use 127.0.0.1:3000"));
    assert!(!world.get(&key("a")).unwrap().is_starting());
}

#[test]
fn one_that_goes_on_failing_is_switched_off_with_the_last_error() {
    let mut world = World::default();
    for count in 1..=MAX_FAILURES {
        let load = world.start("a");
        world.run(&load);
        let effects = names(&world.end(&load, threw("boom")));
        assert_eq!(effects.ends_with("restart"), count < MAX_FAILURES, "{effects}");
    }
    let info = world.get(&key("a")).unwrap().info();
    assert_eq!((info.status, info.failures), (Status::Disabled, MAX_FAILURES));
    let error = &info.error.as_ref().unwrap().what.message;
    assert!(error.contains("5 times in a row") && error.ends_with("last: boom"), "{error}");
    assert!(!world.get(&key("a")).unwrap().is_starting());
}

#[test]
fn failures_are_forgotten_once_a_load_has_run_well() {
    let mut world = World::default();
    let first = world.start("a");
    world.run(&first);
    world.end(&first, threw("boom"));
    let second = world.start("a");
    let effects = world.run(&second);
    assert!(effects.contains(&Effect::ForgiveLater(second.clone())));
    world.well_for_long(&first);
    assert_eq!(world.get(&key("a")).unwrap().info().failures, 1);
    world.well_for_long(&second);
    assert_eq!(world.get(&key("a")).unwrap().info().failures, 0);
    // One that fails later than that begins anew, whether anybody has said so or not.
    let failed = Instant::now() + HEALTHY_AFTER * 2;
    let effects = world.ended(&second, threw("boom"), failed, &Timing::default());
    let Some(Effect::Restart { after, .. }) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(*after, Duration::from_secs(1));
}

#[test]
fn a_failure_of_the_old_load_does_not_count_against_the_new_one() {
    let mut world = World::default();
    let first = world.start("a");
    world.run(&first);
    let second = world.start("a");
    let effects = world.end(&first, threw("boom"));
    assert!(matches!(effects.last(), Some(Effect::Restart { .. })), "{effects:?}");
    assert_eq!(world.get(&key("a")).unwrap().record().failures(), 0);
    world.run(&second);
    assert_eq!(world.current_peer(&key("a")), Some(second));
}

#[test]
fn two_that_swap_their_tools_take_over_from_each_other() {
    let mut world = World::default();
    for name in ["a", "b"] {
        let load = world.start(name);
        world.run(&load);
    }
    let newcomer = world.start("a");
    assert!(matches!(world.joined(&newcomer, tools(&["b"])), Err(serving::Refusal::Taken(_))));
    // The other is about to be replaced by something else.
    let other = world.start("b");
    world.changed(&key("b"));
    world.joined(&newcomer, tools(&["b"])).unwrap();
    world.ready(&newcomer, report(), Instant::now());
    assert!(world.get(&key("b")).unwrap().info().tools.is_empty());
    world.joined(&other, tools(&["a"])).unwrap();
    world.ready(&other, report(), Instant::now());
    let owners: Vec<_> = world.names.owners().map(|(tool, key)| (tool, key.1.as_str())).collect();
    assert_eq!(owners, [("a", "b"), ("b", "a")]);
}

#[test]
fn one_that_is_ready_too_late_for_its_names_is_stopped_and_the_one_before_goes_on() {
    let mut world = World::default();
    let first = world.start("a");
    world.run(&first);
    let second = world.start("a");
    world.joined(&second, tools(&["b"])).unwrap();
    let other = world.start("b");
    world.run(&other);
    let effects = world.ready(&second, report(), Instant::now());
    assert_eq!(names(&effects), "log stop changed offers");
    assert_eq!(world.current_peer(&key("a")), Some(first));
    let error = world.get(&key("a")).unwrap().info().error.as_ref().unwrap();
    assert!(error.what.message.contains("already taken by project:b"), "{}", error.what.message);
}

#[test]
fn a_replaced_load_stops_when_nobody_needs_it() {
    let mut world = World::default();
    let first = world.start("a");
    let hooks = json!({ "hooks": [{ "name": "onPreToolUse" }] });
    let hooks = CheckedOffers::new(serde_json::from_value(hooks).unwrap());
    world.process_started(&first, 7, Layers::default());
    world.joined(&first, hooks).unwrap();
    world.ready(&first, report(), Instant::now());
    let view = world.open_view();
    world.pin(&first);
    let second = world.start("a");
    world.run(&second);
    assert!(!world.stop_if_drained(&first));
    // Somebody was about to call it.
    assert!(world.unpin(&first));
    // An older view may still come to its hooks.
    assert!(!world.stop_if_drained(&first));
    let serving = |world: &World| world.find_serving(view, None, |_, load| Some(load.stage()));
    assert_eq!(serving(&world).unwrap().0, first);
    assert!(world.close_view(view));
    assert!(world.stop_if_drained(&first));
    // From now on that view would be sent to the newest.
    assert_eq!(serving(&world).unwrap().0, second);
}

#[test]
fn of_loads_that_are_kept_for_views_alone_there_are_few() {
    let mut world = World::default();
    let hooks = json!({ "hooks": [{ "name": "onPreToolUse" }] });
    let hooks = CheckedOffers::new(serde_json::from_value(hooks).unwrap());
    world.open_view();
    let mut loads = Vec::new();
    for _ in 0..table::MAX_KEPT + 2 {
        let load = world.start("a");
        world.joined(&load, hooks.clone()).unwrap();
        world.ready(&load, report(), Instant::now());
        world.open_view();
        loads.push(load);
    }
    let replaced = &loads[..=table::MAX_KEPT];
    let drained: Vec<bool> = replaced.iter().map(|load| world.stop_if_drained(load)).collect();
    assert_eq!(drained, [true, false, false, false, false]);
}

#[test]
fn what_waits_for_an_approval_is_said_for_as_long_as_it_does() {
    let mut world = World::default();
    let first = world.start("a");
    world.run(&first);
    let error = LoadError::new("it waits", None);
    let held = Some("hash".to_owned());
    let by = Obstructed { status: Status::Untrusted, error: error.clone(), held };
    world.blocked(&key("a"), by, BTreeMap::new());
    let info = world.get(&key("a")).unwrap().info().clone();
    assert_eq!((info.status, info.error), (Status::Running, Some(error)));
    assert!(info.waits_for_approval);
    let second = world.start("a");
    world.run(&second);
    let info = world.get(&key("a")).unwrap().info();
    assert!(!info.waits_for_approval && info.error.is_none());
}

#[test]
fn a_process_that_starts_after_its_extension_was_withdrawn_is_noted() {
    let mut world = World::default();
    let first = world.start("a");
    world.retire(&key("a"), Stays::No);
    assert_eq!(names(&world.process_started(&first, 7, Layers::default())), "mark");
    assert_eq!(names(&world.stopped(&first)), "drop forgotten changed");
    assert!(world.get(&key("a")).is_none());
}
