//! Until an extension is ready, and what it takes while it is idle.

use super::Plan;
use super::report::Figure;
use super::report::Samples;
use super::report::Side;
use crate::commands::bench::node_host::NodeExtension;
use crate::commands::bench::process;
use crate::commands::bench::single;
use crate::error::CliError;

/// Extensions in a repetition. Node processes are fewer, because each takes so long.
const EXTENSIONS: usize = 20;
const NODE_EXTENSIONS: usize = 8;

const READY: (&str, &str, &str) = ("start", "time until ready", "ms");
pub const CPU: (&str, &str, &str) = ("start", "CPU until ready", "ms");
pub const MEMORY: (&str, &str, &str) = ("start", "private memory, idle", "MB");

pub const COLD: &str = "Tenon, five modules";
pub const SPARE: &str = "Tenon, from the spare";

/// What one way of starting extensions took.
#[derive(Default)]
struct Taken {
    ready: Samples,
    cpu: Samples,
    memory: Samples,
}

impl Taken {
    fn figures(&self, side: Side, case: &str) -> [Figure; 3] {
        [
            self.cpu.figure(CPU, side, case),
            self.memory.figure(MEMORY, side, case),
            self.ready.figure(READY, side, case),
        ]
    }
}

pub async fn measure(plan: &mut Plan<'_>) -> Result<Vec<Figure>, CliError> {
    let program = std::env::current_exe()?;
    let mut node = Taken::default();
    let cases = [
        (single::MODULES, Side::Tenon, COLD),
        (single::SPARE, Side::Tenon, SPARE),
        (single::BARE, Side::Floor, "bare isolate"),
    ];
    let mut taken = cases.map(|_| Taken::default());
    for _ in 0..plan.repetitions {
        plan.step("start");
        if let Some(host) = &plan.node {
            let mut running = Vec::new();
            for _ in 0..NODE_EXTENSIONS {
                running.push(host.start("start", single::FIVE_MODULES).await?);
            }
            node.ready.add(running.iter().map(|it| it.ready_ms).collect());
            node.cpu.add(running.iter().map(|it| it.cpu_ms).collect());
            let memory = |it: &NodeExtension| process::private_bytes(it.pid()) as f64 / 1e6;
            node.memory.add(running.iter().map(memory).collect());
            for extension in running {
                extension.end().await;
            }
        }
        for ((case, ..), taken) in cases.iter().zip(&mut taken) {
            let single = single::measure_in(&program, case, EXTENSIONS)?;
            taken.ready.add(single.ready_ms);
            taken.cpu.add(single.cpu_ms);
            taken.memory.add(vec![single.private_mb]);
        }
    }
    let mut figures = Vec::new();
    if plan.node.is_some() {
        figures.extend(node.figures(Side::Node, "node process + SDK"));
    }
    for ((_, side, name), taken) in cases.iter().zip(&taken) {
        figures.extend(taken.figures(*side, name));
    }
    // What is compared stands together.
    figures
        .sort_by_key(|figure| [CPU.1, MEMORY.1, READY.1].iter().position(|it| *it == figure.topic));
    Ok(figures)
}
