//! The person's terminal, and who has no part in it.

use libtest_mimic::Trial;
use tenon_tests::Workspace;

use crate::pty::Terminal;
use tenon_tests::trial;

pub fn trials() -> Vec<Trial> {
    vec![trial("terminal::no_program_of_an_extension_reaches_it", programs)]
}

async fn programs() {
    for profile in ["workspace", "full"] {
        let body = "const { execFileSync } = await import('node:child_process'); \
                    const script = 'if (: <>/dev/tty) 2>/dev/null; then echo reached; else echo alone; fi'; \
                    return `it is ${execFileSync('sh', ['-c', script])}`;";
        let workspace = Workspace::new().tool("probe", body);
        let config = format!("[extensions.probe]\nprofile = \"{profile}\"\nallow-run = [\"sh\"]\n");
        workspace.home_file("config.toml", config);
        // The zygote is started here, too.
        let mut terminal = Terminal::start(&workspace, &["call", "probe"]);
        let said = terminal.sees("it is ");
        terminal.sees("alone");
        assert!(terminal.ends().success(), "{said}");
    }
}
