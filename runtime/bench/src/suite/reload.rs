//! A changed extension among ten: until its new tool can be called.

use std::time::Instant;

use tenon_console::error::CliError;

use super::Plan;
use super::report::Figure;
use super::report::Samples;
use super::report::Side;
use super::report::Topic;
use crate::measured::MeasuredSession;
use crate::measured::SessionSetup;
use crate::node_host::NodeExtension;
use crate::node_host::NodeHost;
use crate::reload;
use crate::single;

/// Extensions, one of which changes.
const EXTENSIONS: usize = 10;

/// Saves in a repetition, and restarts of a node process.
const SAVES: usize = 5;
const RESTARTS: usize = 3;

pub const ONE: Topic = ("reload", "reload of one among ten", "ms");
const ALL: Topic = ("reload", "reload of all ten", "ms");

pub const SAVED: &str = "Tenon, after the wait for quiet";

pub async fn measure(plan: &mut Plan<'_>) -> Result<Vec<Figure>, CliError> {
    let setup = SessionSetup { watch: true, record: true, ..SessionSetup::default() };
    let measured = MeasuredSession::open(plan.tenon, reload::sources(EXTENSIONS), setup).await?;
    let mut node = match &plan.node {
        Some(host) => start_all(host).await?,
        None => Vec::new(),
    };
    let debounce = measured.debounce.as_secs_f64() * 1e3;
    let [mut saved, mut whole, mut all] = [(); 3].map(|()| Samples::default());
    let [mut node_one, mut node_all] = [(); 2].map(|()| Samples::default());
    // Twice for compilers and caches.
    for number in 0..2 {
        reload::save(&measured, &format!("warm_up_{number}")).await?;
    }
    for repetition in 0..plan.repetitions {
        plan.step("reload");
        if let Some(host) = &plan.node {
            let mut times = Vec::new();
            for _ in 0..RESTARTS {
                let started = Instant::now();
                node.remove(0).end().await;
                node.push(host.start("reload", single::FIVE_MODULES).await?);
                times.push(milliseconds(started));
            }
            node_one.add(times);
            let started = Instant::now();
            for extension in std::mem::take(&mut node) {
                extension.end().await;
            }
            node = start_all(host).await?;
            node_all.add(vec![milliseconds(started)]);
        }
        let mut times = Vec::new();
        for number in 0..SAVES {
            measured.session.wait_until_prepared().await;
            let took = reload::save(&measured, &format!("saved_{repetition}_{number}")).await?;
            times.push(took.as_secs_f64() * 1e3);
        }
        saved.add(times.iter().map(|time| time - debounce).collect());
        whole.add(times);
        let started = Instant::now();
        let report = measured.session.reload().await;
        all.add(vec![milliseconds(started)]);
        if !report.failed.is_empty() || report.reloaded.len() != EXTENSIONS {
            return Err(CliError::new(format!("a reload failed: {report:?}")));
        }
    }
    measured.end().await?;
    let mut figures = Vec::new();
    if plan.node.is_some() {
        figures.push(node_one.figure(ONE, Side::Node, "one node process again"));
    }
    figures.push(saved.figure(ONE, Side::Tenon, SAVED));
    figures.push(whole.figure(ONE, Side::Tenon, "Tenon, with the wait of 75 ms"));
    if plan.node.is_some() {
        figures.push(node_all.figure(ALL, Side::Node, "ten node processes again"));
    }
    figures.push(all.figure(ALL, Side::Tenon, "Tenon, extensions_reload"));
    Ok(figures)
}

fn milliseconds(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e3
}

/// All at once, as the original does it.
async fn start_all(host: &NodeHost) -> Result<Vec<NodeExtension>, CliError> {
    super::growth::start_node(host, EXTENSIONS).await
}
