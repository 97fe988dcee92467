//! A client's kernel: caches names, attributes and pages for as long as it may, and drops them when it is asked to.
//!
//! It does what Linux does with FUSE's `EXPLICIT_INVAL_DATA`: names and attributes are valid for the time that a reply says, pages
//! until they are invalidated. What its own operations change, it changes in its caches.

use std::collections::BTreeMap;
use std::time::Duration;

use apus_fs_core::client::{Invalidation, NodeEntry, Reply};
use apus_fs_wire::{Attributes, Errno, Ino, Name};
use bytes::Bytes;

use super::intent::Intent;

/// Reads of more bytes have the whole file: files are shorter.
const WHOLE: u32 = 4096;

/// The caches of a kernel.
#[derive(Debug, Default)]
pub(super) struct Kernel {
    /// Nodes of names, absent ones included, and until when they are valid.
    names: BTreeMap<(Ino, Name), (Option<NodeEntry>, Duration)>,
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
                // Beyond the end, the size must be valid. Source: Linux `fuse_cache_read_iter`.
                let end = offset + u64::from(*length);
                let is_current = |(attributes, until): &&(Attributes, Duration)| {
                    *until > now && attributes.size == bytes.len() as u64
                };
                if end > bytes.len() as u64 {
                    self.attributes.get(file).filter(is_current)?;
                }
                let start = bytes.len().min(*offset as usize);
                let end = bytes.len().min(start.saturating_add(*length as usize));
                Reply::Data(vec![Bytes::copy_from_slice(&bytes[start..end])])
            }
            _ => return None,
        })
    }

    /// Learns from a reply of the client.
    pub(super) fn learn(&mut self, intent: &Intent, result: &Result<Reply, Errno>, now: Duration) {
        let Ok(reply) = result else {
            // Source: Linux drops the entry of a name for which an operation failed.
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
                let until = now + entry.attributes_valid;
                self.attributes.insert(entry.node, (entry.attributes, until));
            }
            (Intent::LookUp(at), Reply::Absent(valid)) => {
                self.names.insert(at.clone(), (None, now + *valid));
            }
            (Intent::Size(node), Reply::Attributes(_, attributes, valid)) => {
                self.attributes.insert(*node, (*attributes, now + *valid));
            }
            (Intent::Truncate { file, size }, Reply::Attributes(_, attributes, valid)) => {
                self.attributes.insert(*file, (*attributes, now + *valid));
                if let Some(pages) = self.pages.get_mut(file) {
                    pages.resize(*size as usize, 0);
                }
            }
            (Intent::Read { file, offset: 0, length }, Reply::Data(pieces)) if *length >= WHOLE => {
                self.pages.insert(*file, pieces.concat());
            }
            (Intent::Write { file, offset, data }, Reply::Written(_)) => {
                self.attributes.remove(file);
                if let Some(pages) = self.pages.get_mut(file) {
                    let (start, end) = (*offset as usize, *offset as usize + data.len());
                    pages.resize(pages.len().max(end), 0);
                    pages[start..end].copy_from_slice(data);
                }
            }
            (Intent::Append { file, .. }, _) => {
                self.attributes.remove(file);
                self.pages.remove(file);
            }
            (Intent::Open(file), Reply::Opened { keep_cache: false, .. }) => {
                self.pages.remove(file);
            }
            // The number of links has changed.
            (Intent::Remove { .. } | Intent::Rename { .. }, _) => self.attributes.clear(),
            _ => {}
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

    /// Drops what the client asks it to drop.
    pub(super) fn invalidate(&mut self, items: &[Invalidation]) {
        for item in items {
            match item {
                Invalidation::Names => self.names.clear(),
                Invalidation::Node { node, data } => {
                    self.attributes.remove(node);
                    if *data {
                        self.pages.remove(node);
                    }
                }
            }
        }
    }
}
