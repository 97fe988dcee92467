//! A client's kernel: caches names, attributes and pages for as long as permitted, and drops them
//! on notification.
//!
//! It behaves like Linux with FUSE's `AUTO_INVAL_DATA`, which a mount requests: names and
//! attributes are valid for the time given in a reply, or until they are invalidated. Pages are
//! used while attributes are valid, and dropped when attributes with another size or time of
//! modification arrive. Source: Linux `fuse_cache_read_iter`, `fuse_change_attributes`. The pages
//! of a node that is invalidated stay: the thread that drops them (`notifications` in `apus-fs`)
//! may be late.

use std::collections::BTreeMap;
use std::time::Duration;

use apus_fs_core::client::{Invalidation, NodeEntry, Reply};
use apus_fs_core::wire::{Attributes, Errno, Ino, Name};
use bytes::Bytes;

use super::intent::Intent;

/// Reads of more bytes have the whole file: files are shorter.
const WHOLE: u32 = 4096;

/// The caches of a kernel.
#[derive(Debug, Default)]
pub(super) struct Kernel {
    /// Nodes of names, including absent names, with the end of their validity.
    names: BTreeMap<(Ino, Name), (Option<NodeEntry>, Duration)>,
    /// Attributes of nodes, and until when they are valid.
    attributes: BTreeMap<Ino, (Attributes, Duration)>,
    pages: BTreeMap<Ino, Vec<u8>>,
}

impl Kernel {
    /// Returns the result of an operation, if the caches have it.
    pub(super) fn serve(&self, intent: &Intent, now: Duration) -> Option<Reply> {
        Some(match intent {
            Intent::LookUp(at) => {
                let (entry, until) = self.names.get(at).filter(|(_, until)| *until > now)?;
                match entry {
                    Some(entry) => Reply::Entry(*entry),
                    None => Reply::Absent(*until - now),
                }
            }
            Intent::Size(node) => {
                let (attributes, until) =
                    self.attributes.get(node).filter(|(_, until)| *until > now)?;
                Reply::Attributes(*node, *attributes, *until - now)
            }
            Intent::Read { file, offset, length } => {
                let bytes = self.pages.get(file)?;
                self.attributes.get(file).filter(|(attributes, until)| {
                    *until > now && attributes.size == bytes.len() as u64
                })?;
                let start = bytes.len().min(*offset as usize);
                let end = bytes.len().min(start.saturating_add(*length as usize));
                Reply::Data(vec![Bytes::copy_from_slice(&bytes[start..end])])
            }
            _ => return None,
        })
    }

    /// Updates the caches from a reply of the client.
    pub(super) fn learn(&mut self, intent: &Intent, result: &Result<Reply, Errno>, now: Duration) {
        let Ok(reply) = result else {
            // Source: Linux drops the entry of a name after a failed operation on it.
            self.forget_names(intent);
            return;
        };
        self.forget_names(intent);
        match (intent, reply) {
            (
                Intent::LookUp(at) | Intent::Create { at, .. } | Intent::Link { at, .. },
                Reply::Entry(entry) | Reply::Created(entry),
            ) => {
                self.names.insert(at.clone(), (Some(*entry), now + entry.name_valid));
                self.change(entry.node, entry.attributes, now + entry.attributes_valid);
            }
            (Intent::LookUp(at), Reply::Absent(valid)) => {
                self.names.insert(at.clone(), (None, now + *valid));
            }
            (
                Intent::Size(node) | Intent::Truncate { file: node, .. },
                Reply::Attributes(_, attributes, valid),
            ) => self.change(*node, *attributes, now + *valid),
            (Intent::Read { file, offset: 0, length }, Reply::Data(pieces)) if *length >= WHOLE => {
                self.pages.insert(*file, pieces.concat());
            }
            // A file that is open for writing bypasses the cache, which drops the written range.
            (Intent::Write { file, .. } | Intent::Append { file, .. }, _) => {
                self.expire(*file);
                self.pages.remove(file);
            }
            (Intent::Open(file), Reply::Opened { keep_cache: false, .. }) => {
                self.pages.remove(file);
            }
            // The number of links has changed.
            (Intent::Remove { .. } | Intent::Rename { .. }, _) => {
                self.attributes.values_mut().for_each(|(_, until)| *until = Duration::ZERO);
            }
            _ => {}
        }
    }

    /// Stores attributes, and drops the pages if the attributes indicate other contents.
    fn change(&mut self, node: Ino, attributes: Attributes, until: Duration) {
        let before = self.attributes.insert(node, (attributes, until));
        let contents = |attributes: &Attributes| (attributes.size, attributes.mtime);
        if before.is_none_or(|(before, _)| contents(&before) != contents(&attributes)) {
            self.pages.remove(&node);
        }
    }

    /// Expires the attributes of a node, so they are requested before their next use.
    fn expire(&mut self, node: Ino) {
        if let Some((_, until)) = self.attributes.get_mut(&node) {
            *until = Duration::ZERO;
        }
    }

    /// Drops the names that an operation may have changed.
    fn forget_names(&mut self, intent: &Intent) {
        match intent {
            Intent::LookUp(at)
            | Intent::Create { at, .. }
            | Intent::Link { at, .. }
            | Intent::Remove { at, .. } => drop(self.names.remove(at)),
            Intent::Rename { from, to, .. } => {
                self.names.remove(from);
                self.names.remove(to);
            }
            _ => {}
        }
    }

    /// Drops the items that the client invalidates.
    pub(super) fn invalidate(&mut self, items: &[Invalidation]) {
        for item in items {
            match item {
                Invalidation::Names => self.names.clear(),
                Invalidation::Node { node, .. } => self.expire(*node),
            }
        }
    }
}
