//! Managing extensions while the session runs: switching them on and off, trying them out, measuring them.

use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;
use serde_json::json;
use tenon_protocol::message::CallKind;
use tenon_protocol::message::LogLevel;

use super::Session;
use super::SessionOptions;
use super::ending::EndReason;
use crate::discovery;
use crate::discovery::Scope;
use crate::extension::ExtensionInfo;
use crate::extension::LoadError;
use crate::extension::Status;
use crate::extensions::CallFailure;
use crate::extensions::Key;
use crate::extensions::Peer;
use crate::isolates;
use crate::lifecycle::Stays;
use crate::manage::CheckReport;
use crate::manage::ExtensionUsage;
use crate::manage::ManageError;
use crate::store::StoreError;
use crate::switches::Switches;

/// How often it is looked whether the log files can be written.
const LOG_CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl Session {
    /// Calls into an extension, counted among its calls. A deadline, if there is one, cancels it.
    pub(super) async fn call(
        &self,
        peer: &Peer,
        kind: CallKind,
        deadline: Option<Duration>,
        payload: String,
    ) -> Result<Value, CallFailure> {
        let called = Instant::now();
        let extensions = &self.0.extensions;
        let reply = match deadline {
            Some(deadline) => extensions.call_within(peer, kind, deadline, payload).await,
            None => extensions.call(peer, kind, payload).await,
        };
        extensions.count(&peer.key, called.elapsed(), reply.is_err());
        reply
    }

    /// Switches an extension on again, for this session and all later ones, and starts it.
    pub async fn enable(&self, name_or_id: &str) -> Result<ExtensionInfo, ManageError> {
        let (key, _) = self.only_one(name_or_id)?;
        self.switch(&key, |switches, folder| switches.switch_on(folder).map(drop)).await?;
        self.0.extensions.update(|table| {
            table.forgive(&key);
            table.forget_failures(&key);
        });
        self.refresh().await;
        self.now(&key)
    }

    /// Switches an extension off, for this session and all later ones. The calls it has are finished.
    pub async fn disable(&self, name_or_id: &str, why: &str) -> Result<ExtensionInfo, ManageError> {
        // Nobody starts it while it is switched off.
        let _alone = self.0.lifecycle.lock().await;
        let (key, info) = self.only_one(name_or_id)?;
        let reason = why.to_owned();
        self.switch(&key, move |switches, folder| switches.switch_off(folder, &reason)).await?;
        let hint = format!("`tenon ext enable {}` lets it run again", info.name);
        self.retire(&key, Stays::Listed(Status::Disabled, LoadError::new(why, hint)));
        self.now(&key)
    }

    /// Remembers whether an extension is switched on.
    async fn switch(
        &self,
        key: &Key,
        change: impl FnOnce(&Switches, &Path) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<(), ManageError> {
        let folder = key.2.clone();
        let written =
            self.on_disk(move |session| change(&Switches::of(&session.0.options.home), &folder));
        let unknown = || ManageError::NotHere {
            id: crate::extensions::id_of(key),
            why: "it could not be remembered".to_owned(),
        };
        Ok(written.await.ok_or_else(unknown)??)
    }

    fn now(&self, key: &Key) -> Result<ExtensionInfo, ManageError> {
        let table = self.0.extensions.lock();
        let gone = || ManageError::NotHere {
            id: crate::extensions::id_of(key),
            why: "it is gone".to_owned(),
        };
        table.get(key).map(|extension| extension.info().clone()).ok_or_else(gone)
    }

    /// The one extension of that name or id.
    fn only_one(&self, name_or_id: &str) -> Result<(Key, ExtensionInfo), ManageError> {
        let table = self.0.extensions.lock();
        let mut matching = table.iter().filter(|(_, extension)| {
            extension.info().name == name_or_id || extension.info().id == name_or_id
        });
        match (matching.next(), matching.next()) {
            (Some((key, extension)), None) => Ok((key.clone(), extension.info().clone())),
            (None, _) => Err(ManageError::Unknown {
                name: name_or_id.to_owned(),
                available: table.values().map(|it| it.info().id.clone()).collect(),
            }),
            (Some(first), Some(second)) => {
                let ids = [first, second].into_iter().chain(matching);
                Err(ManageError::Ambiguous {
                    name: name_or_id.to_owned(),
                    ids: ids.map(|(_, extension)| extension.info().id.clone()).collect(),
                })
            }
        }
    }

    /// Says it when the logs of extensions cannot be written; they are in memory still.
    pub(super) fn watch_log_files(&self) {
        let Some(files) = self.0.log_files.clone() else { return };
        let session = self.downgrade();
        self.0.runtime.spawn(async move {
            loop {
                tokio::time::sleep(LOG_CHECK_INTERVAL).await;
                let Some(session) = session.upgrade() else { return };
                if let Some(problem) = files.problem() {
                    let message = format!("the logs of extensions are not written: {problem}");
                    let data = json!({ "warningType": "logs_not_written", "message": message });
                    session.emit("session.warning", data);
                }
            }
        });
    }

    /// What each extension uses, and how it fares.
    pub async fn usage(&self) -> Vec<ExtensionUsage> {
        let (mut all, measured): (Vec<_>, Vec<_>) = {
            let table = self.0.extensions.lock();
            let describe = |extension: &crate::extensions::Extension| {
                let (info, record) = (extension.info(), extension.record());
                let usage = ExtensionUsage {
                    id: info.id.clone(),
                    status: info.status,
                    generation: info.generation,
                    pid: info.pid,
                    cpu_us: 0,
                    heap_bytes: 0,
                    buffer_bytes: 0,
                    calls: record.calls(),
                    errors: record.errors(),
                    last_latency_us: record.last_latency().map(|took| took.as_micros() as u64),
                    restarts: record.restarts(),
                };
                (usage, extension.current().map(|load| load.payload().isolate.gauge()))
            };
            table.values().map(describe).unzip()
        };
        let gauges: Vec<(usize, _)> = measured
            .into_iter()
            .enumerate()
            .filter_map(|(index, gauge)| Some((index, gauge?)))
            .collect();
        let (places, gauges): (Vec<usize>, Vec<_>) = gauges.into_iter().unzip();
        for (index, usage) in places.into_iter().zip(isolates::measure(gauges).await) {
            all[index].cpu_us = usage.cpu_us;
            all[index].heap_bytes = usage.heap_bytes;
            all[index].buffer_bytes = usage.buffer_bytes;
        }
        all
    }

    /// Loads an extension once, apart from everything else, and says what came of it. What it does while it
    /// loads is done; the load that serves is not touched.
    pub async fn check(&self, folder: &Path) -> CheckReport {
        let refuse = |message: String| CheckReport {
            error: Some(LoadError::new(message, None)),
            ..CheckReport::default()
        };
        let path = folder.to_owned();
        let looked = self.on_disk(move |session| {
            // One of ours is tried as what it is, with what is configured for it.
            let known = session.find_all().into_iter().find(|it| is_same(&it.folder, &path));
            let found = known.or_else(|| discovery::find_one(Scope::Folder, &path))?;
            let status = session.obstacle_status(&found);
            Some((found, status))
        });
        let Some((found, status)) = looked.await.flatten() else {
            let names = discovery::ENTRY_FILES.join(", ");
            return refuse(format!("{} has no entry file ({names})", folder.display()));
        };
        if status == Some(Status::Untrusted) {
            return refuse(format!("{} is not trusted", found.id()));
        }
        let options = SessionOptions {
            isolates: self.0.isolates.clone(),
            manage_tools: false,
            ..SessionOptions::new(self.cwd().to_owned(), self.0.options.home.clone())
        };
        let trial = match Self::new(options) {
            Ok(trial) => trial,
            Err(error) => return refuse(error.to_string()),
        };
        trial.add_for_trial(found).await;
        let mut report = CheckReport::default();
        if let Some(info) = trial.list().pop() {
            report.warnings = trial
                .log(&info)
                .into_iter()
                .filter(|line| line.level == LogLevel::Warning)
                .map(|line| line.text)
                .collect();
            report.ok = info.status == Status::Running;
            report.error = info.error;
            report.tools = info.tools;
            report.hooks = info.hooks;
            report.commands = info.commands;
            report.ready = info.ready;
        }
        trial.end(EndReason::Complete).await;
        report
    }
}

/// Whether two paths lead to one folder.
fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}
