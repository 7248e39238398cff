//! Until an extension is ready, and what it takes while it is idle and after it has worked.

use tenon_console::error::CliError;

use super::Plan;
use super::report::Figure;
use super::report::Samples;
use super::report::Side;
use super::report::Topic;
use crate::in_process;
use crate::single;
use crate::single::Single;

/// Extensions in a repetition, as many as node processes: what is shared is shared by as many.
const EXTENSIONS: usize = 10;

pub const CPU: Topic = ("start", "CPU until ready", "ms");
pub const MEMORY: Topic = ("start", "private memory, idle", "MB");
pub const CALLED: Topic = ("start", "private memory after 1,000 calls", "MB");
const COLLECTED: Topic = ("start", "private memory after a garbage collection", "MB");
pub const WHOLE: Topic = ("start", "PSS and page tables, idle", "MB");
pub const ONE_MORE: Topic = ("start", "PSS and page tables, one more", "MB");
const READY: Topic = ("start", "time until ready", "ms");
const ZYGOTE_CPU: Topic = ("zygote", "zygote, once: CPU until it can fork", "ms");
const ZYGOTE_READY: Topic = ("zygote", "zygote, once: time until it can fork", "ms");
const ZYGOTE_MEMORY: Topic = ("zygote", "zygote: PSS and page tables beside ten", "MB");

/// The topics, in the order in which they are shown.
const TOPICS: [Topic; 10] = [
    CPU,
    MEMORY,
    CALLED,
    COLLECTED,
    WHOLE,
    ONE_MORE,
    READY,
    ZYGOTE_CPU,
    ZYGOTE_READY,
    ZYGOTE_MEMORY,
];

pub const NODE: &str = "node process + SDK";
pub const TENON: &str = "Tenon";
const BARE: &str = "bare isolate";
const WITH_SESSION: &str = "Tenon, with the session's share";

/// What one way of starting extensions took, by topic.
#[derive(Default)]
struct Taken(Vec<(Topic, &'static str, Samples)>);

impl Taken {
    fn add(&mut self, case: &'static str, single: Single) {
        let with_session = single.cpu_ms.iter().zip(&single.session_cpu_ms);
        let with_session = with_session.map(|(process, session)| process + session).collect();
        let zygote = |pick: fn(&single::Zygote) -> f64| single.zygote.iter().map(pick).collect();
        let all: [(Topic, Vec<f64>); 9] = [
            (ZYGOTE_CPU, zygote(|it| it.cpu_ms)),
            (ZYGOTE_READY, zygote(|it| it.ready_ms)),
            (ZYGOTE_MEMORY, zygote(|it| it.whole_mb)),
            (CPU, single.cpu_ms),
            (MEMORY, single.private_mb),
            (CALLED, single.called_mb),
            (COLLECTED, single.collected_mb),
            (WHOLE, single.whole_mb),
            (ONE_MORE, single.one_more_mb),
        ];
        for (topic, samples) in all {
            self.put(topic, case, samples);
        }
        self.put(READY, case, single.ready_ms);
        if case == TENON {
            self.put(CPU, WITH_SESSION, with_session);
        }
    }

    fn put(&mut self, topic: Topic, case: &'static str, samples: Vec<f64>) {
        if samples.is_empty() {
            return;
        }
        match self.0.iter_mut().find(|(of, its, _)| (*of, *its) == (topic, case)) {
            Some((.., taken)) => taken.add(samples),
            None => {
                let mut taken = Samples::default();
                taken.add(samples);
                self.0.push((topic, case, taken));
            }
        }
    }
}

pub async fn measure(plan: &mut Plan<'_>) -> Result<Vec<Figure>, CliError> {
    let cases = [(single::MODULES, TENON), (single::CONFINED, "Tenon, in a sandbox")];
    let mut taken = Taken::default();
    for _ in 0..plan.repetitions {
        plan.step("start");
        if let Some(host) = &plan.node {
            taken.add(NODE, single::of_node(host, EXTENSIONS).await?);
        }
        for (case, name) in cases {
            taken.add(name, single::measure_in(plan.tenon, case, EXTENSIONS)?);
        }
        if let Some(program) = &plan.in_process {
            taken.add(BARE, in_process::measure(program, in_process::BARE, EXTENSIONS).await?);
        }
    }
    let side = |case: &str| match case {
        NODE => Side::Node,
        BARE => Side::Floor,
        _ => Side::Tenon,
    };
    let figures =
        taken.0.iter().map(|(topic, case, samples)| samples.figure(*topic, side(case), *case));
    let mut figures: Vec<Figure> = figures.collect();
    // What is compared stands together.
    figures.sort_by_key(|figure| {
        TOPICS.iter().position(|it| (it.0, it.1) == (figure.chapter, figure.topic))
    });
    // The zygote of extensions in a sandbox is the same.
    figures.retain(|figure| figure.chapter != ZYGOTE_CPU.0 || figure.case == TENON);
    Ok(figures)
}
