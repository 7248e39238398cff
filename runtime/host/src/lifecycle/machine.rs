//! One extension: its loads, and what is known of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::CheckedOffers;
use super::Epoch;
use super::Load;
use super::Record;
use super::Stage;
use crate::discovery::Found;
use crate::extension::ExtensionInfo;
use crate::extension::LoadError;
use crate::extension::Status;

/// One extension.
#[derive(Debug, Clone, PartialEq)]
pub struct Extension<L> {
    pub(super) info: ExtensionInfo,
    /// What lies on disk, as it was last seen.
    pub(super) found: Found,
    /// The load that serves.
    pub(super) current: Option<Load<L>>,
    /// The load that is to replace it, until it is ready.
    pub(super) next: Option<Load<L>>,
    /// Loads that were replaced and finish their calls.
    pub(super) draining: Vec<Load<L>>,
    /// The generation that is about to be started.
    pub(super) begun: Option<u32>,
    /// The files that the newest load was made from, with the hash of what was in them.
    pub(super) files: BTreeMap<PathBuf, String>,
    /// Those files outside of its folder that the newest load has read, packages included, with the hash of what was in them.
    pub(super) outside: BTreeMap<PathBuf, String>,
    /// Whether something else was on disk, when it was last looked at, than what the load that serves was
    /// made from.
    pub(super) changed: bool,
    /// The plan by which the load that serves makes room for the next, while that is waited for.
    pub(super) room: Option<u64>,
    /// The hash of the content that the person was last asked about.
    pub(super) asked: Option<String>,
    /// What is on disk and waits for the person's approval, while the load that serves goes on.
    pub(super) held: Option<String>,
    /// How it has fared.
    pub(super) record: Record,
    /// The tools it had when it last served, in case it comes back.
    pub(super) had: Vec<String>,
}

impl<L> Extension<L> {
    pub(super) fn new(info: ExtensionInfo, found: Found) -> Self {
        Self {
            info,
            found,
            current: None,
            next: None,
            draining: Vec::new(),
            begun: None,
            files: BTreeMap::new(),
            outside: BTreeMap::new(),
            changed: false,
            room: None,
            asked: None,
            held: None,
            record: Record::default(),
            had: Vec::new(),
        }
    }

    pub fn info(&self) -> &ExtensionInfo {
        &self.info
    }

    /// What lies on disk, as it was last seen.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// The load that serves.
    pub fn current(&self) -> Option<&Load<L>> {
        self.current.as_ref()
    }

    /// The files that the newest load was made from, with the hash of what was in them.
    pub fn files(&self) -> &BTreeMap<PathBuf, String> {
        &self.files
    }

    /// Those files outside of its folder that the newest load has read.
    pub fn outside(&self) -> &BTreeMap<PathBuf, String> {
        &self.outside
    }

    /// The hash of the content that the person was last asked about.
    pub fn asked(&self) -> Option<&String> {
        self.asked.as_ref()
    }

    /// What is on disk and waits for the person's approval.
    pub fn held(&self) -> Option<&String> {
        self.held.as_ref()
    }

    /// How it has fared.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Whether a load serves.
    pub fn is_loaded(&self) -> bool {
        self.current.is_some()
    }

    /// Whether it was taken away and finishes its calls.
    pub fn leaves(&self) -> bool {
        self.info.status == Status::Draining
    }

    /// Whether a load is on its way.
    pub fn is_starting(&self) -> bool {
        // A plan that was overtaken is not waited for.
        let makes_room = self.room == Some(self.record.plan());
        self.starts() || makes_room || self.record.returns_soon()
    }

    /// Whether it had a tool and is about to have it again.
    pub fn brings_back(&self, tool: &str) -> bool {
        let comes = self.record.returns() || self.starts();
        comes && self.had.iter().any(|had| had == tool)
    }

    fn starts(&self) -> bool {
        self.next.is_some() || self.info.status == Status::Starting
    }

    /// Every load there is.
    pub fn loads(&self) -> impl Iterator<Item = &Load<L>> {
        self.current.iter().chain(&self.next).chain(&self.draining)
    }

    pub(super) fn loads_mut(&mut self) -> impl Iterator<Item = &mut Load<L>> {
        self.current.iter_mut().chain(&mut self.next).chain(&mut self.draining)
    }

    /// The load that serves whoever began at the given epoch. One that was told to stop answers nothing more.
    pub(super) fn serving(&self, epoch: Epoch) -> Option<&Load<L>> {
        let current = self.current.as_ref();
        if current.is_some_and(|current| current.served(epoch)) {
            return current;
        }
        let serves = |load: &&Load<L>| load.served(epoch) && load.stage != Stage::Stopping;
        self.draining.iter().rev().find(serves).or(current)
    }

    /// It does not run, or what is on disk does not; what it had registered stays with the load that serves.
    pub(super) fn blame(&mut self, error: LoadError) {
        self.info.last_error = Some(error.clone());
        self.info.error = Some(error);
    }

    /// A load cannot be started: the one that serves, if there is one, goes on.
    pub(super) fn fail_load(&mut self, error: LoadError) {
        if self.is_loaded() { self.blame(error) } else { self.info.fail(Status::Failed, error) }
    }

    /// The load that served, or was to, was told to stop: if it was to, it never will.
    pub(super) fn fail_start(&mut self) {
        if self.info.status == Status::Starting {
            let error = LoadError::new("it was stopped before it had joined", None);
            self.info.fail(Status::Failed, error);
        }
    }

    /// What is on disk waits for an approval, or nothing does.
    pub(super) fn hold(&mut self, held: Option<String>) {
        self.info.waits_for_approval = held.is_some();
        self.held = held;
    }

    /// The load that serves offers this.
    pub(super) fn serve(&mut self, offers: &CheckedOffers) {
        let offers = offers.registration();
        self.info.register(offers);
        self.had = offers.tools.iter().map(|tool| tool.name.clone()).collect();
    }

    /// Another extension has taken tools over; the load that serves until the next one is ready does so
    /// without them.
    pub(super) fn give_up_tools(&mut self, names: &[String]) {
        self.info.tools.retain(|tool| !names.contains(&tool.name));
        if let Some(current) = &mut self.current {
            current.offers.give_up_tools(names);
        }
    }
}
