//! What the startup snapshot holds is whole.

use serde_json::json;
use tenon_tests::Workspace;
use tenon_tests::folder;

#[test]
#[cfg_attr(feature = "quickjs", ignore = "QuickJS: there is no snapshot")]
fn every_function_of_every_node_module_still_has_its_own_source() {
    let workspace = Workspace::new().linked_extension("intact", &folder("specs/snapshot/intact"));
    let answer = workspace.answer("functions_intact", &json!({}));
    let checked: usize = answer.strip_suffix(" functions are intact").unwrap().parse().unwrap();
    assert!(checked > 1_000, "{answer}");
}
