//! A [`Grant`] as Deno's permissions, which every op checks.

use std::sync::Arc;

use deno_runtime::deno_permissions::Permissions;
use deno_runtime::deno_permissions::PermissionsContainer;
use deno_runtime::deno_permissions::PermissionsOptions;
use deno_runtime::deno_permissions::RuntimePermissionDescriptorParser;
use sys_traits::impls::RealSys;

use crate::message::Access;
use crate::message::Grant;

/// A grant that names something no permission can be made of.
#[derive(Debug, thiserror::Error)]
#[error("the extension's grant is not valid: {0}")]
pub struct GrantError(String);

/// The permissions of one extension.
pub fn permissions(grant: &Grant) -> Result<PermissionsContainer, GrantError> {
    let parser = Arc::new(RuntimePermissionDescriptorParser::new(RealSys));
    // Only who may do everything may read what Deno guards most, such as files in /proc.
    if *grant == Grant::default() {
        return Ok(PermissionsContainer::allow_all(parser));
    }
    let (allow_read, deny_read) = lists(&grant.read);
    let (allow_write, deny_write) = lists(&grant.write);
    let (allow_net, deny_net) = lists(&grant.net);
    let (allow_run, deny_run) = lists(&grant.run);
    // A native add-on can do whatever a program can, so it needs the right to run any program.
    let native_code = grant.run == Access::all() && grant.read == Access::all();
    let options = PermissionsOptions {
        allow_read,
        deny_read,
        allow_write,
        deny_write,
        allow_net,
        deny_net,
        allow_run,
        deny_run,
        // The environment an extension has is made for it; there is nothing behind it to guard.
        allow_env: Some(Vec::new()),
        allow_sys: Some(Vec::new()),
        allow_ffi: native_code.then(Vec::new),
        prompt: false,
        ..PermissionsOptions::default()
    };
    let permissions = Permissions::from_options(&*parser, &options)
        .map_err(|error| GrantError(error.to_string()))?;
    Ok(PermissionsContainer::new(parser, permissions))
}

/// The permissions of an isolate that has not taken on an extension yet.
pub fn nothing() -> PermissionsContainer {
    let parser = Arc::new(RuntimePermissionDescriptorParser::new(RealSys));
    PermissionsContainer::new(parser, Permissions::none_without_prompt())
}

/// Deno says "everything" with an empty list and "nothing" with none at all.
fn lists(access: &Access) -> (Option<Vec<String>>, Option<Vec<String>>) {
    let allow = match &access.allow {
        None => Some(Vec::new()),
        Some(names) if names.is_empty() => None,
        Some(names) => Some(names.clone()),
    };
    (allow, (!access.deny.is_empty()).then(|| access.deny.clone()))
}
