//! Losses: changes that can never reach the server (FS-8, FS-14). They are reported as an effect,
//! to be kept for the user.

use std::collections::{BTreeMap, HashMap};

use crate::wire::{Errno, Ino, Name, Record};
use bytes::Bytes;

use super::interface::effect::{ClientEffect, LostChange, LostChanges};
use super::link::Link;
use super::link::log::{Log, SealedBatch, subjects};
use super::nodes::cache::Cache;

/// Maximum depth of a path. Only a forged directory is deeper.
const MOST_ABOVE: usize = 256;

/// Lost changes that were not reported to programs yet, and the paths that a report would name.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Errors of lost changes by node, until a sync or close reports them.
    errors: HashMap<Ino, Errno>,
    /// Paths of nodes with unsent changes when the session ended: the names are dropped before it
    /// is known whether these changes are lost.
    unsent_paths: BTreeMap<Ino, Vec<Name>>,
}

impl Losses {
    /// Removes and returns the error of a node's lost changes.
    pub(super) fn take_error(&mut self, ino: Ino) -> Option<Errno> {
        self.errors.remove(&ino)
    }

    /// Records the paths of nodes with changes that are not at the server.
    pub(super) fn note_unsent_paths(&mut self, log: &mut Log, cache: &Cache) {
        log.seal();
        let records = log.unsent().flat_map(|batch| batch.batch.records.iter());
        self.unsent_paths.extend(paths(cache, records.flat_map(subjects)));
    }

    /// Forgets the paths of unsent changes: a session accepts them again.
    pub(super) fn forget_unsent_paths(&mut self) {
        self.unsent_paths.clear();
    }
}

/// Removes all changes from the log and reports them as lost, but for the first `applied` ones,
/// which are at the server.
pub(super) fn give_up_log(
    link: &mut Link,
    cache: &Cache,
    losses: &mut Losses,
    error: Errno,
    why: &str,
    applied: usize,
) {
    let lost = link.log.drop_all();
    for batch in &lost {
        for ino in batch.batch.records.iter().flat_map(subjects) {
            losses.errors.insert(ino, error);
        }
    }
    let changes = lost.iter().flat_map(changes_of).skip(applied);
    let changes: Vec<LostChange> = changes.collect();
    if changes.is_empty() {
        return;
    }
    link.output.warn(format!("{} changes were lost: {why}", changes.len()));
    let mut lost_paths = std::mem::take(&mut losses.unsent_paths);
    lost_paths.extend(paths(cache, changes.iter().flat_map(|change| subjects(&change.record))));
    let why = why.to_owned();
    link.output.push(ClientEffect::Lost(LostChanges { why, changes, paths: lost_paths }));
}

/// Returns the paths of nodes below the root, where the cache has their names.
fn paths(cache: &Cache, nodes: impl Iterator<Item = Ino>) -> BTreeMap<Ino, Vec<Name>> {
    let directories = cache.iter().filter(|node| node.is_directory());
    let names = directories.flat_map(|node| {
        node.names().known.iter().map(move |(name, child)| (*child, (node.ino(), name)))
    });
    let above: HashMap<Ino, (Ino, &Name)> = names.collect();
    let path = |ino: Ino| {
        let (mut at, mut path) = (ino, Vec::new());
        while at != Ino::ROOT {
            let (parent, name) = above.get(&at).filter(|_| path.len() < MOST_ABOVE)?;
            path.push((*name).clone());
            at = *parent;
        }
        path.reverse();
        Some((ino, path))
    };
    nodes.filter_map(path).collect()
}

/// Returns the changes of a batch with their bytes.
fn changes_of(batch: &SealedBatch) -> impl Iterator<Item = LostChange> {
    batch.batch.records.iter().map(|record| {
        let data = match record {
            Record::Write { data, .. } => cut(&batch.payload, data.start, data.length),
            _ => Vec::new(),
        };
        LostChange { record: record.clone(), data }
    })
}

/// Returns a range of bytes that are in pieces.
fn cut(pieces: &[Bytes], start: u32, length: u32) -> Vec<Bytes> {
    let (mut skipped, mut wanted) = (start as usize, length as usize);
    let mut range = Vec::new();
    for piece in pieces {
        let from = skipped.min(piece.len());
        let to = piece.len().min(from.saturating_add(wanted));
        skipped -= from;
        wanted -= to - from;
        if to > from {
            range.push(piece.slice(from..to));
        }
    }
    range
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_out_of_pieces() {
        let pieces = ["abc", "", "defg", "h"].map(Bytes::from);
        let text = |start, length| String::from_utf8(cut(&pieces, start, length).concat()).unwrap();
        assert_eq!(text(0, 8), "abcdefgh");
        assert_eq!(text(2, 3), "cde");
        assert_eq!(text(7, 9), "h");
        assert_eq!(text(3, 0), "");
    }
}
