//! `tenon ext`: a file for each of its commands.

mod check;
mod inspect;
mod install;
mod list;
mod logs;
mod new;
mod reload;
mod remove;
mod report;
mod switch;
pub mod tell;
mod top;

use std::process::ExitCode;

pub use self::list::print_list;
pub use self::report::print_error;
use crate::args::Args;
use crate::args::ExtCommand;
use crate::error::CliError;

pub async fn run(args: &Args, command: &ExtCommand) -> Result<ExitCode, CliError> {
    match command {
        ExtCommand::List => list::run(args).await,
        ExtCommand::Inspect { name } => inspect::run(args, name).await,
        ExtCommand::New(new) => new::run(args, new),
        ExtCommand::Check(check) => check::run(args, check).await,
        ExtCommand::Reload { name } => reload::run(args, name.as_deref()).await,
        ExtCommand::Enable { name } => switch::enable(args, name).await,
        ExtCommand::Disable { name, why } => switch::disable(args, name, why.as_deref()).await,
        ExtCommand::Install(install) => install::run(args, install).await,
        ExtCommand::Remove { name, yes } => remove::run(args, name, *yes).await,
        ExtCommand::Logs(logs) => logs::run(args, logs).await,
        ExtCommand::Top { once } => top::run(args, *once).await,
    }
}
