//! Reads names from the directory into the table, and records new nodes for the log.

use apus_fs_core::wire::{Errno, Ino, Name, NodeKind, Record};

use super::DirectoryStore;
use super::frame::Observation;
use super::identity::Status;
use super::listing;
use super::names::is_hidden;
use super::table::is_public;

/// Entries that are read of a directory which a record removes. Chosen by us: as many as a batch
/// can remove, twice.
const MAX_READ_AHEAD: usize = 2 * apus_fs_core::wire::limits::MAX_RECORDS;

impl DirectoryStore {
    /// Reads the node behind a name.
    pub(crate) fn observe(
        &mut self,
        parent: Ino,
        name: &Name,
    ) -> Result<Option<(Ino, Status)>, Errno> {
        let table = &mut self.knowledge.table;
        let directory = self.files.directory(table, parent)?;
        let status = match self.files.status_at(&directory, name) {
            Ok(status) => status,
            Err(Errno::NOENT) => {
                if table.at(parent, name).is_some() {
                    table.forget_place(&(parent, name.clone()));
                    self.pending.push(Observation::Absent { parent, name: name.clone() });
                }
                return Ok(None);
            }
            Err(other) => return Err(other),
        };
        let ino = table.number(status.identity);
        if table.at(parent, name) != Some(ino) {
            let (kind, identity) = (status.attributes.kind, status.identity);
            let place = (parent, name.clone());
            table.forget_place(&place);
            table.insert(ino, kind, Some(identity));
            table.add_place(ino, &place);
            let name = name.clone();
            self.pending.push(Observation::Present { ino, kind, identity, parent, name });
        }
        Ok(Some((ino, status)))
    }

    /// Reads the names that decide whether a record applies, so that a replay decides in the same
    /// way. Applying the record reports any errors.
    pub(crate) fn observe_names_of(&mut self, record: &Record) {
        match record {
            Record::Create { parent: Some((parent, name)), .. } => {
                self.observe_one(parent.ino, name);
            }
            Record::Link { parent, name, .. } | Record::Unlink { parent, name, .. } => {
                self.observe_one(parent.ino, name);
            }
            Record::RemoveDirectory { parent, name, node } => {
                self.observe_one(parent.ino, name);
                self.observe_names_in(node.ino);
            }
            Record::Rename { from, to, replaced, .. } => {
                self.observe_one(from.0.ino, &from.1);
                self.observe_one(to.0.ino, &to.1);
                if let Some(replaced) = replaced {
                    self.observe_names_in(replaced.ino);
                }
            }
            _ => {}
        }
    }

    fn observe_one(&mut self, parent: Ino, name: &Name) {
        let known = self.knowledge.table.node(parent);
        let readable = known.is_some_and(|node| node.kind == NodeKind::Directory);
        if readable && is_public(parent) && !is_hidden(parent, name) {
            let _ = self.observe(parent, name);
        }
    }

    /// Reads the names in a directory that is to be removed.
    fn observe_names_in(&mut self, ino: Ino) {
        let table = &self.knowledge.table;
        if !is_public(ino) || table.node(ino).is_none_or(|node| node.kind != NodeKind::Directory) {
            return;
        }
        let Ok(directory) = self.files.directory(table, ino) else { return };
        let Ok(names) = listing::names(&directory) else { return };
        let names: Vec<_> = names.into_iter().filter_map(|name| Name::new(name).ok()).collect();
        let known: Vec<Name> = table.names(ino).map(|(name, _)| name.clone()).collect();
        for name in known.into_iter().chain(names).take(MAX_READ_AHEAD) {
            self.observe_one(ino, &name);
        }
    }
}
