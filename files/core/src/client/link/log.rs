//! The ordered log of changes that are not at the server yet.
//!
//! - **FSLOG-1** Changes are applied in the order of their operations (FS-9, FS-10); a write is
//!   merged only with the write right before it in the same batch.
//! - **FSLOG-2** A batch keeps its number and its records until the server has applied it, however
//!   often it is sent.

use std::collections::VecDeque;
use std::time::Duration;

use crate::wire::limits::MAX_NODES;
use crate::wire::{Batch, Data, Handle, Ino, NewNode, Record, Time};
use bytes::Bytes;

use crate::client::interface::effect::{ClientCall, OpToken};

/// A batch with this number of bytes is sent at once (FS-6).
const FULL_BYTES: usize = 1 << 20;
/// A batch with this number of records is sent at once.
const FULL_RECORDS: usize = 1_000;
/// A batch is sent when no change was added for this time.
const QUIET: Duration = Duration::from_millis(5);
/// A batch with a single empty file is sent when no change was added for this time. Rationale: it
/// is usually a lock file, and is removed when its owner has read the protected file (see
/// `cancellation.rs`). `git status` takes 4 ms on an idle machine.
const QUIET_WITH_EMPTY_FILE: Duration = Duration::from_millis(50);
/// A batch is sent at this age.
const OLDEST: Duration = Duration::from_secs(1);
/// Bytes of batches that are sent at once. Rationale: hides a round trip of 10 ms at 6 Gbit/s.
const WINDOW_BYTES: usize = 8 << 20;
/// Batches that are sent at once: fewer than the server holds if they arrive out of order.
const WINDOW_BATCHES: usize = 16;
/// Size of the log, in bytes, above which operations that write must wait.
const MOST_BYTES: usize = 64 << 20;

/// A change, as it is collected.
#[derive(Clone, Debug)]
enum Change {
    Record(Record),
    /// A write. Its bytes stay outside of the payload until the batch is sealed.
    Write {
        file: Handle,
        offset: u64,
        length: u64,
        pieces: Vec<Bytes>,
        time: Time,
    },
}

/// State of a directory before the open batch.
#[derive(Clone, Copy, Debug)]
pub(in crate::client) struct DirectoryBefore {
    pub(in crate::client) directory: Ino,
    /// The last batch that had changed it.
    pub(in crate::client) last_batch: u64,
    pub(in crate::client) mtime: Time,
    pub(in crate::client) ctime: Time,
}

/// The batch that receives the next changes.
#[derive(Clone, Debug, Default)]
struct OpenBatch {
    changes: Vec<Change>,
    returns: Vec<Handle>,
    bytes: usize,
    began: Duration,
    changed: Duration,
    /// The directory of the file that the first change creates.
    before: Option<DirectoryBefore>,
}

impl OpenBatch {
    /// Returns the time without a change after which it is sent.
    fn quiet(&self) -> Duration {
        match &self.changes[..] {
            [Change::Record(Record::Create { node: NewNode::File, parent: Some(_), .. })] => {
                QUIET_WITH_EMPTY_FILE
            }
            _ => QUIET,
        }
    }
}

/// A batch with its number.
#[derive(Clone, Debug)]
pub(in crate::client) struct SealedBatch {
    pub(in crate::client) batch: Batch,
    pub(in crate::client) payload: Vec<Bytes>,
    pub(in crate::client) bytes: usize,
    /// The call that carries it.
    pub(in crate::client) call: Option<ClientCall>,
    /// The operation whose only change this is, and which alone fails with it.
    pub(in crate::client) alone: Option<OpToken>,
}

/// The log.
#[derive(Clone, Debug, Default)]
pub(in crate::client) struct Log {
    /// Number of the last batch that the server has applied.
    applied: u64,
    sealed: VecDeque<SealedBatch>,
    open: OpenBatch,
}

impl Log {
    /// Returns the number of the batch that receives the next change.
    pub(in crate::client) fn open_number(&self) -> u64 {
        self.applied + self.sealed.len() as u64 + 1
    }

    /// Number of the last batch that has a change.
    pub(in crate::client) fn last_number(&self) -> u64 {
        self.open_number() - u64::from(self.open.changes.is_empty())
    }

    /// Number of the last batch that the server has applied.
    pub(in crate::client) fn applied(&self) -> u64 {
        self.applied
    }

    /// Returns the batches and bytes that are not applied.
    pub(in crate::client) fn waiting(&self) -> (usize, usize) {
        let open = usize::from(!self.open.changes.is_empty());
        let bytes: usize = self.sealed.iter().map(|batch| batch.bytes).sum();
        (self.sealed.len() + open, bytes + self.open.bytes)
    }

    /// Returns whether a change of `bytes` may be added now.
    pub(in crate::client) fn has_room(&self, bytes: usize) -> bool {
        let (batches, waiting) = self.waiting();
        waiting + bytes <= MOST_BYTES && batches <= 4_096
    }

    /// Adds a change.
    pub(in crate::client) fn add(&mut self, now: Duration, record: Record) {
        self.touch(now);
        self.open.changes.push(Change::Record(record));
        if self.open.changes.len() >= FULL_RECORDS {
            self.seal();
        }
    }

    /// Adds a write.
    pub(in crate::client) fn add_write(
        &mut self,
        now: Duration,
        file: Handle,
        at: u64,
        bytes: Bytes,
        when: Time,
    ) {
        self.touch(now);
        self.open.bytes += bytes.len();
        match self.open.changes.last_mut() {
            Some(Change::Write { file: last, offset, length, pieces, time })
                if last.ino == file.ino && *offset + *length == at =>
            {
                *length += bytes.len() as u64;
                *time = when;
                pieces.push(bytes);
            }
            _ => {
                let length = bytes.len() as u64;
                let pieces = vec![bytes];
                let write = Change::Write { file, offset: at, length, pieces, time: when };
                self.open.changes.push(write);
            }
        }
        if self.open.bytes >= FULL_BYTES || self.open.changes.len() >= FULL_RECORDS {
            self.seal();
        }
    }

    /// Returns whether the open batch has no change.
    pub(in crate::client) fn is_open_batch_empty(&self) -> bool {
        self.open.changes.is_empty()
    }

    /// Stores the state of a directory before the first change of the open batch created a file in
    /// it.
    pub(in crate::client) fn note_before(&mut self, before: DirectoryBefore) {
        self.open.before = Some(before);
    }

    /// Drops the open batch, if it creates a file in a directory and makes no other change. Returns
    /// the earlier state of the directory.
    pub(in crate::client) fn cancel_creation(
        &mut self,
        directory: Ino,
        file: Ino,
    ) -> Option<DirectoryBefore> {
        let before = self.open.before.filter(|before| before.directory == directory)?;
        let is_of_file = |change: &Change| match change {
            Change::Record(Record::Create { ino, node: NewNode::File, .. }) => *ino == file,
            Change::Record(Record::SetAttributes { node, .. }) => node.ino == file,
            Change::Record(_) => false,
            Change::Write { file: written, .. } => written.ino == file,
        };
        let is_cancelled = self.open.returns.is_empty() && self.open.changes.iter().all(is_of_file);
        is_cancelled.then(|| {
            self.open = OpenBatch::default();
            before
        })
    }

    fn touch(&mut self, now: Duration) {
        if self.open.changes.is_empty() {
            self.open.began = now;
        }
        self.open.changed = now;
    }

    /// Has the open batch return a lease, if it has the last change of the node; false if not.
    pub(in crate::client) fn give_back(&mut self, node: Handle, last_batch: u64) -> bool {
        let is_last = !self.open.changes.is_empty() && last_batch == self.open_number();
        if is_last && self.open.returns.len() < MAX_NODES {
            self.open.returns.push(node);
            return true;
        }
        false
    }

    /// Keeps all leases: the next session reclaims them, with the changes that need them.
    pub(in crate::client) fn keep_leases(&mut self) {
        self.open.returns.clear();
        self.sealed.iter_mut().for_each(|batch| batch.batch.returns.clear());
    }

    /// Closes the open batch, if it has a change: it leaves as soon as the window permits.
    pub(in crate::client) fn seal(&mut self) {
        if self.open.changes.is_empty() {
            return;
        }
        let number = self.open_number();
        let OpenBatch { changes, returns, bytes, .. } = std::mem::take(&mut self.open);
        let (mut payload, mut start) = (Vec::new(), 0);
        let records = changes.into_iter().map(|change| match change {
            Change::Record(record) => record,
            Change::Write { file, offset, length, pieces, time } => {
                let data = Data { start, length: length as u32 };
                start += data.length;
                payload.extend(pieces);
                Record::Write { file, offset, data, time }
            }
        });
        let batch = Batch { number, records: records.collect(), returns };
        self.sealed.push_back(SealedBatch { batch, payload, bytes, call: None, alone: None });
    }

    /// Seals the open batch, whose only change belongs to an operation.
    pub(in crate::client) fn seal_alone(&mut self, operation: OpToken) {
        self.seal();
        if let Some(batch) = self.sealed.back_mut() {
            batch.alone = Some(operation);
        }
    }

    /// Seals the open batch if its deadline has passed.
    pub(in crate::client) fn seal_if_due(&mut self, now: Duration) {
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            self.seal();
        }
    }

    /// Returns when the open batch is sent.
    pub(in crate::client) fn deadline(&self) -> Option<Duration> {
        let due = (self.open.changed + self.open.quiet()).min(self.open.began + OLDEST);
        (!self.open.changes.is_empty()).then_some(due)
    }

    /// Returns the next batch that is to be sent, if the window permits.
    pub(in crate::client) fn next_to_send(&mut self) -> Option<&mut SealedBatch> {
        let under_way = self.sealed.iter().take_while(|batch| batch.call.is_some());
        let (batches, bytes) =
            under_way.fold((0, 0), |(count, bytes), batch| (count + 1, bytes + batch.bytes));
        if batches >= WINDOW_BATCHES || bytes >= WINDOW_BYTES {
            return None;
        }
        self.sealed.get_mut(batches)
    }

    /// Returns all batches that are not applied, without the open one.
    pub(in crate::client) fn unsent(&self) -> impl Iterator<Item = &SealedBatch> {
        self.sealed.iter()
    }

    /// Returns a batch that is not applied.
    pub(in crate::client) fn sealed(&self, number: u64) -> Option<&SealedBatch> {
        let index = number.checked_sub(self.applied + 1)?;
        self.sealed.get(index as usize)
    }

    /// Marks all batches up to `number` as applied, and returns the nodes that they change.
    pub(in crate::client) fn set_applied(&mut self, number: u64) -> Vec<Ino> {
        let mut nodes = Vec::new();
        while self.applied < number {
            self.applied += 1;
            let Some(batch) = self.sealed.pop_front() else { continue };
            batch.batch.records.iter().for_each(|record| nodes.extend(subjects(record)));
        }
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Marks all batches as not sent: all that are not applied are sent again.
    pub(in crate::client) fn forget_calls(&mut self) {
        self.sealed.iter_mut().for_each(|batch| batch.call = None);
    }

    /// Drops everything that is not applied, and returns it.
    pub(in crate::client) fn drop_all(&mut self) -> Vec<SealedBatch> {
        self.seal();
        self.sealed.drain(..).collect()
    }
}

/// The nodes that a record changes.
pub(in crate::client) fn subjects(record: &Record) -> impl Iterator<Item = Ino> {
    let of = |handle: &Handle| Some(handle.ino);
    let nodes = match record {
        Record::Create { parent, ino, .. } => {
            [Some(*ino), parent.as_ref().map(|(parent, _)| parent.ino), None, None]
        }
        Record::Link { node, parent, .. }
        | Record::Unlink { node, parent, .. }
        | Record::RemoveDirectory { node, parent, .. } => [of(node), of(parent), None, None],
        Record::Rename { from, to, node, replaced, .. } => {
            [of(node), of(&from.0), of(&to.0), replaced.as_ref().map(|handle| handle.ino)]
        }
        Record::Write { file, .. } | Record::Allocate { file, .. } => [of(file), None, None, None],
        Record::CopyRange { to, .. } => [of(to), None, None, None],
        Record::SetAttributes { node, .. }
        | Record::SetXattr { node, .. }
        | Record::RemoveXattr { node, .. }
        | Record::Close { node } => [of(node), None, None, None],
    };
    nodes.into_iter().flatten()
}
