//! `tenon agents`.

use std::process::ExitCode;

use serde_json::json;
use tenon_acp::profiles::PROFILES;

use crate::args::Args;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::DIM;
use crate::output::GREEN;
use crate::output::Table;

/// Lists the known agents and which of them are installed.
pub fn run(args: &Args) -> Result<ExitCode, CliError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if args.json {
        let list: Vec<_> = PROFILES
            .iter()
            .map(|profile| {
                json!({
                    "name": profile.name,
                    "command": profile.command(),
                    "package": profile.package,
                    "path": profile.locate(&path),
                })
            })
            .collect();
        output::json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["AGENT", "INSTALLED", "COMMAND", "NPM PACKAGE"]);
    for profile in &PROFILES {
        let installed = profile.locate(&path).is_some();
        table.row(vec![
            (profile.name.to_owned(), BOLD),
            if installed { ("yes".to_owned(), GREEN) } else { ("no".to_owned(), DIM) },
            (profile.command(), anstyle::Style::new()),
            (profile.package.to_owned(), DIM),
        ]);
    }
    table.print();
    Ok(ExitCode::SUCCESS)
}
