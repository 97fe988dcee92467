//! The verdict: the final contents of the store, and the results of the checkers.

use std::collections::BTreeSet;

use apus_fs_core::Store;
use apus_fs_core::wire::{Ino, Name, NodeKind};
use apus_fs_store::memory::MemoryStore;

use super::World;
use super::application::Application;
use crate::Violation;
use crate::checker::prefix::Snapshot;
use crate::checker::{append, ending, file, lock, names, prefix};
use crate::history::{FileAction, MountId, NameAction};

/// The mount that reads everything at the end.
const OBSERVER: MountId = MountId(u32::MAX);

impl World {
    /// Checks all promises.
    pub(super) fn verify(&mut self) -> Result<(), Violation> {
        let mut waiting = Vec::new();
        for host in self.hosts.iter().filter(|host| host.client.is_some()) {
            let current = host.applications.iter().filter_map(|one| one.current.as_ref());
            waiting.extend(current.map(|current| (host.mount, format!("{:?}", current.intent))));
            if !host.is_done() && waiting.is_empty() {
                waiting.push((host.mount, "its changes to reach the server".to_owned()));
            }
        }
        ending::check(&waiting)?;
        let Some(server) = &self.server else { return Ok(()) };
        let mut store = server.store().clone();
        self.observe(&mut store);
        self.check_prefixes(&mut store)?;
        let contents = store.read(self.planted.log, 0, u32::MAX).unwrap_or_default();
        append::check(&contents, &self.recorder.owed_appends())?;
        lock::check(&self.recorder.holds)?;
        let directories: Vec<Ino> = self.recorder.directories.iter().copied().collect();
        let history = self.recorder.history(&self.recorder.names);
        let is_decided = names::check(&history, &directories)?;
        self.totals.undecided += u64::from(!is_decided);
        for (ino, events) in &self.recorder.files {
            let is_decided = file::check(&format!("file {ino}"), &self.recorder.history(events))?;
            self.totals.undecided += u64::from(!is_decided);
        }
        Ok(())
    }

    /// Reads all shared names and files from the store, as a final mount would.
    fn observe(&mut self, store: &mut MemoryStore) {
        let (mut open, mut seen) = (vec![Ino::ROOT], BTreeSet::new());
        while let Some(directory) = open.pop() {
            let Ok(part) = store.list(directory, None, usize::MAX) else { continue };
            let names: Vec<(Name, Ino)> =
                part.entries.iter().map(|(name, ino, _)| (name.clone(), *ino)).collect();
            let (invoked, returned) = (self.recorder.moment(), self.recorder.moment());
            let action = NameAction::List { directory, result: Some(Ok(names)) };
            self.recorder.name(OBSERVER, invoked, Some(returned), action);
            for (name, ino, attributes) in part.entries {
                match attributes.kind {
                    NodeKind::Directory if !name.as_bytes().starts_with(b"own-") => {
                        self.recorder.directories.insert(ino);
                        open.push(ino);
                    }
                    NodeKind::Directory => drop(self.recorder.directories.insert(ino)),
                    NodeKind::File if seen.insert(ino) => {
                        let result = store.read(ino, 0, u32::MAX).ok();
                        let length = u64::from(u32::MAX);
                        let (invoked, returned) = (self.recorder.moment(), self.recorder.moment());
                        let action = FileAction::Read { offset: 0, length, result };
                        self.recorder.file(ino, OBSERVER, invoked, Some(returned), action);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Checks the directories that only one mount used.
    fn check_prefixes(&self, store: &mut MemoryStore) -> Result<(), Violation> {
        for (mount, private) in &self.recorder.privates {
            // After it has lost its session, a mount continues from the remaining state.
            if self.fenced.contains(mount) {
                continue;
            }
            let own = Application::own_name(*mount);
            let mut found = Snapshot::new();
            if let Ok(Some((directory, _))) = store.look_up(Ino::ROOT, &own)
                && let Ok(part) = store.list(directory, None, usize::MAX)
            {
                for (name, ino, _) in part.entries {
                    let bytes = store.read(ino, 0, u32::MAX).unwrap_or_default();
                    found.insert(name.to_string(), bytes.to_vec());
                }
            }
            let is_alive = !self.recorder.has_lost(*mount);
            let synced = if is_alive { private.actions.len() } else { private.synced };
            prefix::check(&Snapshot::new(), &private.actions, synced, &found)
                .map_err(|error| Violation { what: format!("{mount}: {}", error.what), ..error })?;
        }
        Ok(())
    }
}
