//! `tenon demo-agent`: an ACP agent on standard input and output, without a model.

use std::process::ExitCode;
use std::time::Duration;

use tenon_demo_agent::DemoOptions;
use tenon_demo_agent::serve;
use tenon_host::environment;

use crate::args::demo_agent::DemoAgentArgs;
use crate::error::CliError;

/// Variables that lead HTTP through a proxy. The MCP servers of a session are on this machine, where a proxy
/// elsewhere does not find them.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// What the command line says about it.
fn options(demo: &DemoAgentArgs) -> DemoOptions {
    DemoOptions {
        silent: demo.silent,
        garbage: demo.garbage,
        exit_at: demo.exit_at,
        no_load: demo.no_load,
        no_modes: demo.no_modes,
        no_models: demo.no_models,
        no_http: demo.no_http,
        never_list: demo.never_list,
        never_ask: demo.never_ask,
        no_meta: demo.no_meta,
        forget: demo.forget,
        deaf: demo.deaf,
        slow: Duration::from_millis(demo.slow),
        state: None,
        // This process has taken secrets and proxies out of its own.
        environment: environment::of_host(),
    }
}

/// Is the agent, until its input ends. Standard output must still be the real one.
///
/// # Safety
///
/// No other thread may exist.
pub unsafe fn run(demo: &DemoAgentArgs) -> ExitCode {
    for name in PROXIES {
        // SAFETY: there is one thread. What we start ourselves gets the environment as it was.
        unsafe { std::env::remove_var(name) };
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            CliError::new(format!("no event loop could be started: {error}")).print();
            return ExitCode::FAILURE;
        }
    };
    let served = runtime.block_on(serve(options(demo)));
    // A thread may still be reading standard input, and would be waited for.
    runtime.shutdown_background();
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            CliError::new(error).print();
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use tenon_demo_agent::ExitAt;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        demo: DemoAgentArgs,
    }

    #[test]
    fn options_are_taken_from_the_command_line() {
        let line = ["demo-agent", "--exit-at", "new", "--slow", "20", "--no-http", "--deaf"];
        let options = options(&Line::try_parse_from(line).unwrap().demo);
        assert_eq!((options.exit_at, options.slow), (Some(ExitAt::New), Duration::from_millis(20)));
        assert!(options.no_http && options.deaf && !options.silent);
        let wrong = Line::try_parse_from(["demo-agent", "--exit-at", "noon"]).unwrap_err();
        assert!(wrong.to_string().contains("initialize, new or prompt"), "{wrong}");
    }
}
