//! `tenon acp`: an ACP agent for any editor, with another agent behind it.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tenon_acp::proxy;
use tenon_acp::proxy::MakeOptions;
use tenon_acp::proxy::ProxyOptions;
use tenon_acp::stdio;
use tenon_host::SessionOptions;
use tenon_host::discovery;
use tenon_host::session::LARGE_RESULT_BYTES;
use tenon_host::trust::TrustStore;

use crate::agent_choice;
use crate::args::Args;
use crate::args::fronts::AcpArgs;
use crate::error::CliError;
use crate::output;
use crate::workspace;
use crate::workspace::Workspace;

/// How long an editor has to take our last words.
const LAST_WORDS: Duration = Duration::from_secs(2);

pub async fn run(args: &Args, acp: &AcpArgs) -> Result<ExitCode, CliError> {
    let workspace = Workspace::of(args)?;
    let definition = agent_choice::definition(args, acp.agent.as_deref(), None)?;
    let options = ProxyOptions {
        definition,
        permissions: agent_choice::permissions(acp.permissions.as_deref())?,
        tenon: agent_choice::own_program()?,
        guarded: true,
        home: workspace.home.clone(),
        session_options: session_options(workspace, args.trust)?,
    };
    let input = stdio::input()?;
    let (output, written) = stdio::output(output::protocol_stdout()?)?;
    proxy::serve_until(input, output, options, workspace::interruption())
        .await
        .map_err(|error| CliError::new(error.to_string()))?;
    // An editor that has gone reads nothing any more.
    let _ = tokio::time::timeout(LAST_WORDS, written.wait()).await;
    Ok(ExitCode::SUCCESS)
}

/// Sessions in whatever directory the editor names. Standard input is the editor's, so nobody is asked whether a
/// repository is trusted: `--trust` says so for all of them, or the person said so before.
fn session_options(workspace: Workspace, trust: bool) -> Result<Arc<MakeOptions>, CliError> {
    // The isolates of all sessions share a process.
    let isolates = workspace::isolates(Some(&workspace.home))?;
    let options = move |cwd: &Path| -> Result<SessionOptions, String> {
        let cwd = std::fs::canonicalize(cwd)
            .map_err(|error| format!("{} cannot be entered: {error}", cwd.display()))?;
        let root = discovery::project_root(&cwd);
        let trusted = trust || TrustStore::of(&workspace.home).is_trusted(root);
        Ok(SessionOptions {
            trusted,
            record: true,
            watch: true,
            log_files: true,
            large_result_bytes: Some(LARGE_RESULT_BYTES),
            isolates: isolates.clone(),
            user_folders: workspace.user_folders.clone(),
            extension_folders: workspace.extension_folders.clone(),
            ..SessionOptions::new(cwd, workspace.home.clone())
        })
    };
    Ok(Arc::new(options))
}
