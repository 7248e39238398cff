//! Links that WebAssembly makes: Deno does not check where they lead, as it does for `node:fs`.

use deno_core::OpState;
use deno_core::op2;
use deno_runtime::deno_permissions::PermissionsContainer;

/// Whether an extension may make links: only who may read and write everything, because a link can lead anywhere, and who
/// follows it may be allowed more than who made it.
#[op2(fast)]
pub fn op_tenon_may_link(state: &mut OpState) -> bool {
    let permissions = state.borrow::<PermissionsContainer>();
    permissions.check_read_all("node:wasi").is_ok()
        && permissions.check_write_all("node:wasi").is_ok()
}
