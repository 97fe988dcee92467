//! Searches for nodes that are unknown to the store, but that a client has a handle to.
//!
//! A node that was found is logged soon after a client has its handle, but not before, so a crash
//! may lose it. Its number depends only on its backing file, so it can be found again.

use apus_fs_core::wire::{Handle, Ino, Name, NodeKind, Record};

use super::DirectoryStore;
use super::identity::is_found;
use super::listing;
use super::names::is_hidden;

impl DirectoryStore {
    /// Searches the whole export for an unknown node; once only, because nodes observed later are
    /// kept in the table.
    pub(crate) fn search_for(&mut self, ino: Ino) {
        if self.is_searched || !is_found(ino) || self.knowledge.table.node(ino).is_some() {
            return;
        }
        self.is_searched = true;
        let mut directories = vec![Ino::ROOT];
        while let Some(parent) = directories.pop() {
            let Ok(directory) = self.files.directory(&self.knowledge.table, parent) else {
                continue;
            };
            for name in listing::names(&directory).unwrap_or_default() {
                let Ok(name) = Name::new(name) else { continue };
                if is_hidden(parent, &name) {
                    continue;
                }
                if let Ok(Some((ino, status))) = self.observe(parent, &name)
                    && status.attributes.kind == NodeKind::Directory
                {
                    directories.push(ino);
                }
            }
        }
    }

    /// Searches for the nodes that a record names.
    pub(crate) fn search_for_nodes_of(&mut self, record: &Record) {
        let mut search = |handle: &Handle| self.search_for(handle.ino);
        match record {
            Record::Create { parent, .. } => parent.iter().for_each(|(parent, _)| search(parent)),
            Record::Link { node, parent, .. }
            | Record::Unlink { node, parent, .. }
            | Record::RemoveDirectory { node, parent, .. } => {
                [parent, node].into_iter().for_each(search);
            }
            Record::Rename { from, to, node, replaced, .. } => {
                [&from.0, &to.0, node].into_iter().chain(replaced).for_each(search);
            }
            Record::CopyRange { from, to, .. } => [from, to].into_iter().for_each(search),
            Record::Write { file: node, .. }
            | Record::Allocate { file: node, .. }
            | Record::SetAttributes { node, .. }
            | Record::SetXattr { node, .. }
            | Record::RemoveXattr { node, .. }
            | Record::Close { node } => search(node),
        }
    }
}
