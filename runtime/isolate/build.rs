//! Turns Deno's and our JavaScript into what the program carries.
//!
//! On V8: a startup snapshot with everything usual already evaluated, and the sources of what stays
//! lazy. On QuickJS, which has no snapshots: every source, transpiled here instead of at each start.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a build script talks to cargo and stops"
)]

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;
use std::path::PathBuf;
use std::rc::Rc;

use deno_core::Extension;
use deno_core::ExtensionFileSource;
use deno_core::ModuleName;
use tenon_platform::extensions;
use tenon_platform::extensions::Purpose;
use tenon_platform::sources;
use tenon_platform::sources::FileKind;

#[cfg(all(feature = "v8", feature = "quickjs"))]
compile_error!("choose one engine: QuickJS needs `--no-default-features --features quickjs`");
#[cfg(not(any(feature = "v8", feature = "quickjs")))]
compile_error!("choose an engine: the feature `v8` or the feature `quickjs`");

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let in_snapshot = if cfg!(feature = "v8") { make_snapshot(&out) } else { HashSet::new() };
    write_sources(&out, &extensions::all(Purpose::Snapshot), &in_snapshot);
}

/// Writes `snapshot.bin`; returns the lazy files that were evaluated into it.
fn make_snapshot(out: &Path) -> HashSet<String> {
    let options = deno_core::snapshot::CreateSnapshotOptions {
        cargo_manifest_dir: env!("CARGO_MANIFEST_DIR"),
        startup_snapshot: None,
        extensions: extensions::all(Purpose::Snapshot),
        extension_transpiler: Some(Rc::new(sources::transpile)),
        with_runtime_cb: Some(Box::new(add_vm_context)),
        skip_op_registration: false,
    };
    let made = deno_core::snapshot::create_snapshot(options, None).expect("the snapshot is made");
    std::fs::write(out.join("snapshot.bin"), made.output).expect("OUT_DIR is writable");
    made.consumed_lazy_specifiers.into_iter().collect()
}

/// `node:vm` makes its contexts from a template that must be in the snapshot.
fn add_vm_context(runtime: &mut deno_core::JsRuntimeForSnapshot) {
    use deno_runtime::deno_node;
    let isolate = runtime.v8_isolate();
    deno_core::v8::scope!(scope, isolate);
    let template = deno_node::init_global_template(scope, deno_node::ContextInitMode::ForSnapshot);
    let context = deno_node::create_v8_context(
        scope,
        template,
        deno_node::ContextInitMode::ForSnapshot,
        std::ptr::null_mut(),
    );
    let index = scope.add_context(context);
    assert_eq!(index, deno_node::VM_CONTEXT_INDEX, "node:vm looks for its context there");
}

/// Writes `sources.rs`: three tables of (specifier, text) for what the snapshot does not hold.
fn write_sources(out: &Path, extensions: &[Extension], in_snapshot: &HashSet<String>) {
    let mut tables = [String::new(), String::new(), String::new()];
    for (index, (kind, file)) in sources::files(extensions).into_iter().enumerate() {
        if let deno_core::ExtensionFileSourceCode::LoadedFromFsDuringSnapshot(path) = &file.code {
            println!("cargo:rerun-if-changed={path}");
        }
        let snapshotted = match kind {
            FileKind::Eager => cfg!(feature = "v8"),
            FileKind::LazyScript | FileKind::LazyModule => in_snapshot.contains(file.specifier),
        };
        if snapshotted {
            continue;
        }
        let path = out.join(format!("source-{index}.js"));
        std::fs::write(&path, javascript(kind, &file)).expect("OUT_DIR is writable");
        writeln!(tables[kind as usize], "    ({:?}, include_str!({path:?})),", file.specifier)
            .expect("a string grows");
    }
    let [eager, scripts, modules] = tables;
    let text = format!(
        "pub static EAGER: &[(&str, &str)] = &[\n{eager}];\n\
         pub static LAZY_SCRIPTS: &[(&str, &str)] = &[\n{scripts}];\n\
         pub static LAZY_MODULES: &[(&str, &str)] = &[\n{modules}];\n"
    );
    std::fs::write(out.join("sources.rs"), text).expect("OUT_DIR is writable");
}

fn javascript(kind: FileKind, file: &ExtensionFileSource) -> String {
    let source = file.load().expect("the source file is readable");
    let (code, _map) = sources::transpile(ModuleName::from_static(file.specifier), source)
        .unwrap_or_else(|error| panic!("{}: {error}", file.specifier));
    assert!(code.as_str().is_ascii(), "{} must be ASCII to be shared with V8", file.specifier);
    match kind {
        // Wrapped ahead of time, the engine can use the program's own memory instead of a copy.
        FileKind::LazyScript => deno_core::wrap_lazy_ext_script(code.as_str()),
        FileKind::Eager | FileKind::LazyModule => code.as_str().to_owned(),
    }
}
