//! Our ops, and the replacements for those of Deno's ops that act on the whole process.
//!
//! Deno runs one program per process, so `process.exit`, `process.env`, signals and standard output
//! are the process's. Here many extensions share one: each of these ops is replaced by one that acts
//! on its own isolate alone.

#![allow(missing_docs, reason = "the op2 macro makes items that cannot carry documentation")]

pub mod bridge;
pub mod descriptors;
pub mod directory;
pub mod environment;
pub mod exit;
pub mod links;
pub mod output;
pub mod programs;
pub mod signals;
mod unavailable;
pub mod workers;

use deno_core::Extension;
use deno_core::ExtensionFileSource;
use deno_core::OpDecl;

deno_core::extension!(
    tenon,
    ops = [
        bridge::op_tenon_request,
        bridge::op_tenon_reply,
        bridge::op_tenon_log,
        bridge::op_tenon_stay,
        descriptors::op_tenon_descriptor,
        descriptors::op_tenon_is_of_the_runtime,
        links::op_tenon_may_link,
        programs::op_tenon_start,
        programs::op_tenon_not_started,
        programs::op_tenon_not_connected,
        workers::op_tenon_worker,
    ],
    esm_entry_point = "ext:tenon/platform.js",
    esm = [
        dir "../../js-sdk/src",
        "bridge.js",
        "canvas.js",
        "commands.js",
        "config.js",
        "events.js",
        "extension.js",
        "factory.js",
        "handlers.js",
        "hooks.js",
        "index.js",
        "live-state.js",
        "native-classes.js",
        "platform.js",
        "registrations.js",
        "rpc.js",
        "send-and-wait.js",
        "session.js",
        "tool-result.js",
        "tools.js",
        "ui.js",
    ],
    middleware = replace_process_wide_ops,
    customizer = |extension: &mut Extension| {
        // Only a snapshot profits from modules that are evaluated ahead of time.
        if cfg!(not(feature = "quickjs")) {
            extension.esm_files.to_mut().push(ExtensionFileSource::loaded_during_snapshot(
                "ext:tenon/bake.js",
                concat!(env!("CARGO_MANIFEST_DIR"), "/../../js-sdk/src/bake.js"),
            ));
            extension.esm_entry_point = Some("ext:tenon/bake.js");
        }
    }
);

/// Swaps an op of Deno's for ours; every other op passes untouched.
fn replace_process_wide_ops(op: OpDecl) -> OpDecl {
    match op.name {
        "op_env" => environment::op_tenon_env(),
        "op_get_env" => environment::op_tenon_get_env(),
        "op_get_env_no_permission_check" => environment::op_tenon_get_env(),
        "op_set_env" => environment::op_tenon_set_env(),
        "op_delete_env" => environment::op_tenon_delete_env(),
        "op_node_load_env_file" => environment::op_tenon_load_env_file(),
        "op_fs_chdir" => directory::op_tenon_chdir(),
        "op_exit" => exit::op_tenon_exit(),
        "op_process_abort" => exit::op_tenon_abort(),
        "op_node_process_kill" => signals::op_tenon_kill(),
        "op_node_process_setuid"
        | "op_node_process_seteuid"
        | "op_node_process_setgid"
        | "op_node_process_setegid"
        | "op_node_os_set_priority"
        | "op_inspector_open"
        | "op_inspector_wait"
        | "op_inspector_connect"
        | "op_require_break_on_next_statement"
        | "op_v8_set_flags_from_string" => unavailable::op_tenon_process_wide(),
        // No debugger can be connected, so nobody hears these; the op takes nothing but objects.
        "op_inspector_emit_protocol_event" => unavailable::op_tenon_unheard(),
        // It takes any number for a socket of its own.
        "op_node_udp_open" => unavailable::op_tenon_no_foreign_socket(),
        // Relics that nothing of node's uses and that would reach the whole process.
        "op_kill" | "op_run" | "op_panic" => op.disable(),
        "op_signal_bind" => signals::op_tenon_signal_bind(),
        "op_signal_poll" => signals::op_tenon_signal_poll(),
        "op_signal_unbind" => signals::op_tenon_signal_unbind(),
        "op_node_process_set_title" => environment::op_tenon_set_title(),
        "op_exec_path" => environment::op_tenon_exec_path(),
        "op_print" => output::op_tenon_print(),
        #[cfg(feature = "quickjs")]
        "op_create_worker" => unavailable::op_tenon_no_worker(),
        #[cfg(feature = "quickjs")]
        "op_vm_create_context" | "op_vm_create_context_without_contextify" => {
            unavailable::op_tenon_no_context()
        }
        _ => op,
    }
}
