//! Events to several extensions: how late they are, and what each delivery costs.

use std::time::Duration;
use std::time::SystemTime;

use serde_json::Value;
use serde_json::json;
use tenon_console::error::CliError;
use tenon_host::Session;
use tenon_host::session::EndReason;

use super::Plan;
use super::report::Figure;
use super::report::Samples;
use super::report::Side;
use super::report::Topic;
use crate::events;
use crate::measured;
use crate::node_host::NodeExtension;
use crate::node_host::NodeHost;
use crate::process;
use crate::tenon::Tenon;

/// Extensions that subscribe.
const SUBSCRIBERS: usize = 10;

/// Events per second: a fast model's answer, word by word.
const RATE: u64 = 1000;

/// How long events stream in a repetition.
const LENGTH: Duration = Duration::from_millis(1500);

/// Events in a repetition that reach a subscriber at rest, and how far they are apart.
const SINGLE: u64 = 40;
const APART: Duration = Duration::from_millis(25);

pub const IDLE: Topic = ("events", "how late an event is, subscriber idle", "ms");
pub const LATE: Topic = ("events", "how late an event is, 1,000 a second to ten", "ms");
const CPU: Topic = ("events", "CPU for a delivery", "us");

pub const TENON: &str = "Tenon";

#[derive(Default)]
struct Taken {
    late: Samples,
    cpu: Samples,
}

impl Taken {
    /// What the subscribers say of a stream.
    fn add(&mut self, events: u64, cpu_ms: f64, reports: &[Value]) -> Result<(), CliError> {
        let sum = |field: &str| reports.iter().filter_map(|it| it[field].as_u64()).sum::<u64>();
        let sent = events * SUBSCRIBERS as u64;
        if sum("count") != sent || sum("disorder") > 0 {
            let count = sum("count");
            return Err(CliError::new(format!(
                "of {sent} events {count} arrived, or not in order"
            )));
        }
        self.late.add(reports.iter().filter_map(|report| report["p50"].as_f64()).collect());
        self.cpu.add(vec![cpu_ms * 1e3 / sent as f64]);
        Ok(())
    }
}

pub async fn measure(plan: &mut Plan<'_>) -> Result<Vec<Figure>, CliError> {
    let folder = tempfile::tempdir()?;
    let isolates = plan.tenon.isolates();
    let listener = |number: usize| events::LISTENER.replace("NUMBER", &number.to_string());
    let sources = (0..SUBSCRIBERS).map(|number| (format!("listener-{number}"), listener(number)));
    let session = measured::session_in(folder.path(), sources, isolates.clone()).await?;
    let mut node = Vec::new();
    if let Some(host) = &plan.node {
        for number in 0..SUBSCRIBERS {
            node.push(host.start(&format!("listener-{number}"), &listener(number)).await?);
        }
    }
    let mut rest = IdleSubscribers::start(plan.tenon, plan.node.as_ref()).await?;
    let [mut ours, mut theirs] = [(); 2].map(|()| Taken::default());
    for repetition in 0..=plan.repetitions {
        // The first is for compilers and caches.
        let is_warm_up = repetition == 0;
        if !is_warm_up {
            plan.step("events");
        }
        rest.round(is_warm_up).await?;
        let pids = || isolates.pids().into_iter().chain([std::process::id()]);
        let before: f64 = pids().map(process::cpu_ms).sum();
        // As an agent's updates come: in a task of the event loop.
        let emitting = session.clone();
        let emitting = tokio::spawn(async move { events::emit(&emitting, RATE, LENGTH).await });
        let sent = emitting.await.map_err(|error| CliError::new(error.to_string()))?;
        let reports = events::reports(&session, SUBSCRIBERS).await?;
        let cpu = pids().map(process::cpu_ms).sum::<f64>() - before;
        if !is_warm_up {
            ours.add(sent, cpu, &reports)?;
        }
        if !node.is_empty() {
            let pids: Vec<u32> =
                node.iter().map(NodeExtension::pid).chain([std::process::id()]).collect();
            let before: f64 = pids.iter().copied().map(process::cpu_ms).sum();
            let (sent, reports) = stream_to_node(&mut node).await?;
            let cpu = pids.iter().copied().map(process::cpu_ms).sum::<f64>() - before;
            if !is_warm_up {
                theirs.add(sent, cpu, &reports)?;
            }
        }
    }
    session.end(EndReason::Complete).await;
    let mut figures = rest.finish().await;
    for (topic, pick) in
        [(LATE, (|taken| &taken.late) as fn(&Taken) -> &Samples), (CPU, |taken| &taken.cpu)]
    {
        if !node.is_empty() {
            figures.push(pick(&theirs).figure(topic, Side::Node, "ten node processes + SDK"));
        }
        figures.push(pick(&ours).figure(topic, Side::Tenon, TENON));
    }
    Ok(figures)
}

/// The same stream to node processes; how many events that were, and what each has seen.
async fn stream_to_node(node: &mut [NodeExtension]) -> Result<(u64, Vec<Value>), CliError> {
    let mut pacer = events::Pacer::new(RATE, LENGTH);
    let mut number = 0;
    while let Some(due) = pacer.next().await {
        while number < due {
            let data = events::tick(number, SystemTime::now(), false);
            for extension in node.iter_mut() {
                extension.event("bench.tick", data.clone()).await?;
            }
            number += 1;
        }
    }
    let mut reports = Vec::new();
    for (number, extension) in node.iter_mut().enumerate() {
        reports.push(report_of(extension, number).await?);
    }
    Ok((number, reports))
}

/// One subscriber on each side that has nothing else to do: an event comes, and long after that the next.
struct IdleSubscribers {
    session: Session,
    node: Option<NodeExtension>,
    ours: Samples,
    theirs: Samples,
    _folder: tempfile::TempDir,
}

impl IdleSubscribers {
    async fn start(tenon: &Tenon, host: Option<&NodeHost>) -> Result<Self, CliError> {
        let folder = tempfile::tempdir()?;
        let source = events::LISTENER.replace("NUMBER", "0");
        let node = match host {
            Some(host) => Some(host.start("listener-at-rest", &source).await?),
            None => None,
        };
        let sources = [("listener".to_owned(), source)];
        let session = measured::session_in(folder.path(), sources, tenon.isolates()).await?;
        let [ours, theirs] = [(); 2].map(|()| Samples::default());
        Ok(Self { session, node, ours, theirs, _folder: folder })
    }

    async fn round(&mut self, is_warm_up: bool) -> Result<(), CliError> {
        for number in 0..SINGLE {
            tokio::time::sleep(APART).await;
            let data = events::tick(number, SystemTime::now(), true);
            self.session.emit_ephemeral("bench.tick", data);
            if let Some(node) = &mut self.node {
                tokio::time::sleep(APART).await;
                let data = events::tick(number, SystemTime::now(), true);
                node.event("bench.tick", data).await?;
            }
        }
        let ours = events::reports(&self.session, 1).await?;
        let theirs = match &mut self.node {
            Some(node) => Some(report_of(node, 0).await?),
            None => None,
        };
        for (samples, report) in
            [(&mut self.ours, ours.first()), (&mut self.theirs, theirs.as_ref())]
        {
            let Some(report) = report else { continue };
            if report["count"].as_u64() != Some(SINGLE) {
                return Err(CliError::new(format!("of {SINGLE} events some are lost: {report}")));
            }
            if !is_warm_up {
                samples.add(report["p50"].as_f64().into_iter().collect());
            }
        }
        Ok(())
    }

    async fn finish(self) -> Vec<Figure> {
        self.session.end(EndReason::Complete).await;
        let node =
            self.node.is_some().then(|| self.theirs.figure(IDLE, Side::Node, "node process + SDK"));
        node.into_iter().chain([self.ours.figure(IDLE, Side::Tenon, TENON)]).collect()
    }
}

/// What a node process has heard.
async fn report_of(extension: &mut NodeExtension, number: usize) -> Result<Value, CliError> {
    let report = extension.call(&format!("report_{number}"), json!({})).await?;
    let text = report.as_str().map_or_else(|| report.to_string(), str::to_owned);
    Ok(serde_json::from_str(&text)?)
}
