//! Losses: changes that can never reach the server (FS-8, FS-14). They are handed out, to be kept for the user.

use std::collections::{BTreeMap, HashMap};

use crate::wire::{Errno, Ino, Name, Record};
use bytes::Bytes;

use super::Client;
use super::effect::{ClientEffect, Clock, Invalidation, LostChange, LostChanges};
use super::log::{SealedBatch, subjects};
use crate::wire::LeaseKind;

/// Directories above a node that its path names at most. Only a server that lies makes more.
const MOST_ABOVE: usize = 256;

impl Client {
    /// Gives up all changes that are not applied, for they cannot be, and begins anew. The first `applied` changes of them are at the
    /// server all the same. Syncs of their nodes report the error (FS-8, FS-14), and all of the cache is fetched again.
    pub(super) fn lose_log(&mut self, clock: &Clock, error: Errno, why: &str, applied: usize) {
        self.give_up_log(error, why, applied);
        for (_, token) in std::mem::take(&mut self.for_batch) {
            if self.pending.remove(&token).is_some() {
                self.reply(token, Err(error));
            }
        }
        self.forget_everything();
        // In a new session: batches of this one that are still under way are refused, and their numbers are used again.
        self.session.number = None;
        self.greet_again(clock);
    }

    /// Takes all changes out of the log but the first `applied` ones, which are at the server, and hands them out.
    pub(super) fn give_up_log(&mut self, error: Errno, why: &str, applied: usize) {
        let lost = self.log.drop_all();
        for batch in &lost {
            for ino in batch.batch.records.iter().flat_map(subjects) {
                self.lost_changes.insert(ino, error);
            }
        }
        let changes = lost.iter().flat_map(changes_of).skip(applied);
        let changes: Vec<LostChange> = changes.collect();
        if changes.is_empty() {
            return;
        }
        let warning = format!("{} changes were lost: {why}", changes.len());
        self.effects.push_back(ClientEffect::Warn(warning));
        let mut paths = std::mem::take(&mut self.unsent_paths);
        paths.extend(self.paths(changes.iter().flat_map(|change| subjects(&change.record))));
        let why = why.to_owned();
        self.effects.push_back(ClientEffect::Lost(LostChanges { why, changes, paths }));
    }

    /// Notes the paths of nodes of which changes are not at the server.
    pub(super) fn note_unsent_paths(&mut self) {
        self.log.seal();
        let records = self.log.unsent().flat_map(|batch| batch.batch.records.iter());
        let paths = self.paths(records.flat_map(subjects));
        self.unsent_paths.extend(paths);
    }

    /// Returns the paths of nodes below the root, as far as they are known.
    fn paths(&self, wanted: impl Iterator<Item = Ino>) -> BTreeMap<Ino, Vec<Name>> {
        let directories = self.nodes.values().filter(|node| node.is_directory());
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
        wanted.filter_map(path).collect()
    }

    /// Drops the whole cache.
    fn forget_everything(&mut self) {
        let mut kernel = vec![Invalidation::Names];
        for node in self.nodes.values_mut() {
            kernel.push(Invalidation::Node { node: node.ino(), data: node.kernel_data });
            node.lease = LeaseKind::None;
            node.recall = None;
            (node.last_batch, node.barrier, node.last_cut, node.closed_in) = (0, 0, 0, 0);
            // If its creation was lost, the server says so when it is asked.
            node.created_in = 0;
            // What removed it may be among what is lost.
            node.is_gone = false;
            node.drop_cache();
        }
        // They go with the session.
        let locks = std::mem::take(&mut self.locks);
        self.counters.locks_lost += locks.values().map(Vec::len).sum::<usize>() as u64;
        self.drop_recalls();
        self.renames.drop_all();
        self.to_reclaim.clear();
        self.invalidate(kernel);
    }
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
