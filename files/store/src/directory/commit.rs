//! Group commit: all batches that were appended are written to the log, made durable together, and
//! applied in order.

use std::mem;

use apus_fs_core::store::{AppliedBatch, ClientBatch, ClientId, StoreError};
use apus_fs_core::wire::{Errno, FailedBatch, Ino, NodeKind, Record};
use bytes::Bytes;

use super::DirectoryStore;
use super::copy::Copy;
use super::frame::{FrameEntry, Observation, Part, Position, Progress};
use super::log::WriteError;
use super::names::{Fate, NameChange, Removal, kind_of_new};

/// A batch that is being committed.
struct Running {
    batch: ClientBatch,
    /// End of the part that is already logged.
    position: Position,
    is_finished: bool,
    failed: Option<(u32, Errno)>,
    touched: Vec<Ino>,
    nameless: Vec<Ino>,
}

/// The part of a batch that is logged next.
struct Logged {
    /// Index of the batch.
    batch: usize,
    part: Part,
    payload: Bytes,
    /// Start of the part within its batch.
    position: Position,
    /// Whether all records result from resolving one record of the batch.
    is_resolved: bool,
}

impl DirectoryStore {
    /// Commits the appended batches.
    pub(crate) fn commit_appended(&mut self) -> Result<Vec<AppliedBatch>, StoreError> {
        self.check_works()?;
        let mut running = Vec::new();
        for batch in mem::take(&mut self.appended) {
            let progress = self.progress(batch.client);
            let is_next = running.iter().all(|other: &Running| {
                (other.batch.client, other.batch.number) != (batch.client, batch.number)
            });
            if batch.number > progress.applied && is_next {
                let resumed = batch.number == progress.applied + 1;
                let position = if resumed { progress.position } else { Position::default() };
                running.push(Running {
                    batch,
                    position,
                    is_finished: false,
                    failed: None,
                    touched: Vec::new(),
                    nameless: Vec::new(),
                });
            }
        }
        if running.is_empty() {
            self.write_observations()?;
            if self.log.length() > self.checkpoint_bytes {
                self.checkpoint()?;
            }
            return Ok(Vec::new());
        }
        self.counters.commits += 1;
        let mut group = Vec::new();
        for index in 0..running.len() {
            while !running[index].is_finished {
                let at = running[index].position;
                let record = running[index].batch.records.get(at.record as usize);
                if record.is_some_and(Copy::must_be_resolved) && !group.is_empty() {
                    self.flush(&mut running, &mut group)?;
                    continue;
                }
                let logged = self.next_part(&mut running[index], index);
                running[index].position = logged.part.next.unwrap_or_default();
                let is_last = logged.part.next.is_none();
                group.push(logged);
                if is_last {
                    break;
                }
            }
        }
        self.flush(&mut running, &mut group)?;
        Ok(running.into_iter().map(|running| self.report(running)).collect())
    }

    /// Splits off the records that can be logged before the effects of earlier parts are known.
    fn next_part(&mut self, running: &mut Running, batch: usize) -> Logged {
        let position = running.position;
        let (client, number) = (running.batch.client.0, running.batch.number);
        let first = position.record as usize;
        let records = &mut running.batch.records;
        let end = records.len();
        if let Some(record) = records.get(first).filter(|record| Copy::must_be_resolved(record)) {
            let (records, payload, next) = match self.resolve(record, position.copied) {
                Ok(piece) => {
                    let after = Position { record: position.record + 1, copied: 0 };
                    let next = match piece.copied {
                        Some(copied) => Some(Position { record: position.record, copied }),
                        None => (first + 1 < end).then_some(after),
                    };
                    (piece.records, piece.payload, next)
                }
                Err(errno) => {
                    running.failed = Some((position.record, errno));
                    (Vec::new(), Bytes::new(), None)
                }
            };
            let part = Part { client, number, records, next };
            return Logged { batch, part, payload, position, is_resolved: true };
        }
        let until = (first..end).find(|index| Copy::must_be_resolved(&records[*index]));
        let records = match (first, until) {
            (0, None) => mem::take(records),
            (first, until) => records.get(first..until.unwrap_or(end)).unwrap_or_default().to_vec(),
        };
        let next = until.map(|record| Position { record: record as u32, copied: 0 });
        let part = Part { client, number, records, next };
        let payload = running.batch.payload.clone();
        Logged { batch, part, payload, position, is_resolved: false }
    }

    /// Logs and applies a group.
    fn flush(
        &mut self,
        running: &mut [Running],
        group: &mut Vec<Logged>,
    ) -> Result<(), StoreError> {
        for logged in &*group {
            for record in &logged.part.records {
                self.search_for_nodes_of(record);
                self.observe_names_of(record);
            }
        }
        let mut entries = Vec::with_capacity(group.len() + 1);
        if !self.pending.is_empty() {
            entries.push((FrameEntry::Observed(mem::take(&mut self.pending)), Bytes::new()));
        }
        let first = entries.len() as u64;
        for logged in &mut *group {
            let records = mem::take(&mut logged.part.records);
            let part = Part { records, ..logged.part };
            entries.push((FrameEntry::Part(part), logged.payload.clone()));
        }
        let is_logged = self.write_entries(&entries)?;
        let sequence = self.log.next() - entries.len() as u64 + first;
        let mut entries = entries.into_iter();
        if first == 1 {
            let observed = entries.next();
            if let (false, Some((FrameEntry::Observed(pending), _))) = (is_logged, observed) {
                self.pending = pending;
            }
        }
        for ((logged, (entry, _)), sequence) in group.drain(..).zip(entries).zip(sequence..) {
            let FrameEntry::Part(part) = entry else { continue };
            let run = &mut running[logged.batch];
            let client = ClientId(part.client);
            if is_logged {
                let stopped = self.apply_part(run, &part, &logged.payload, sequence)?;
                if let Some((record, errno)) = stopped {
                    let offset = if logged.is_resolved { 0 } else { record };
                    run.failed = Some((logged.position.record + offset, errno));
                }
            } else {
                run.failed = Some((logged.position.record, Errno::NOSPC));
                self.pending
                    .push(Observation::Refused { client: part.client, number: part.number });
            }
            if let Some((record, error)) = run.failed {
                let failed = FailedBatch { number: part.number, record, error };
                self.knowledge.failures.insert(client, failed);
                self.pending.push(Observation::Failed { client: part.client, failed });
            }
            run.is_finished = run.failed.is_some() || part.next.is_none();
            let progress = self.knowledge.clients.entry(client).or_default();
            progress.advance(part.number, part.next.filter(|_| !run.is_finished));
        }
        // If this process ends now, the next process replays none of these frames, and finds the
        // new files in the log.
        if let (true, Some(mount)) = (is_logged, self.mount) {
            self.pending.push(Observation::Applied { mount });
            self.write_observations()?;
        }
        if self.log.length() > self.checkpoint_bytes {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Writes frames durably. Returns false if there is no space for them.
    pub(crate) fn write_entries(
        &mut self,
        entries: &[(FrameEntry, Bytes)],
    ) -> Result<bool, StoreError> {
        self.counters.log_syncs += 1;
        let mut result = self.log.write(entries, true);
        // A checkpoint frees the space of the log so far. If there is no space even for that, the
        // log is as it was.
        if matches!(result, Err(WriteError::Full))
            && self.log.length() > 0
            && self.checkpoint().is_ok()
        {
            self.counters.log_syncs += 1;
            result = self.log.write(entries, true);
        }
        match result {
            Ok(()) => Ok(true),
            Err(WriteError::Full) => Ok(false),
            Err(WriteError::Broken(error)) => {
                self.is_broken = true;
                Err(error)
            }
        }
    }

    /// Records durably that a record failed, before any response reports it. No checkpoint can make
    /// room for this frame: later parts are in the log and not yet applied.
    fn write_stopped(
        &mut self,
        sequence: u64,
        record: u32,
        failed: Observation,
    ) -> Result<(), StoreError> {
        let stopped = FrameEntry::Stopped { sequence, record, in_replay: false };
        let failed = FrameEntry::Observed(vec![failed]);
        self.counters.log_syncs += 1;
        let result = self.log.write(&[(stopped, Bytes::new()), (failed, Bytes::new())], true);
        self.is_broken = result.is_err();
        match result {
            Ok(()) => Ok(()),
            Err(WriteError::Broken(error)) => Err(error),
            Err(WriteError::Full) => self.check_works(),
        }
    }

    /// Logs the observations of the directory, so that the next process finds the nodes again. They
    /// need not be durable.
    fn write_observations(&mut self) -> Result<(), StoreError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let entries = [(FrameEntry::Observed(mem::take(&mut self.pending)), Bytes::new())];
        match self.log.write(&entries, false) {
            Ok(()) => {}
            Err(WriteError::Full) => {
                let [(FrameEntry::Observed(pending), _)] = entries else { return Ok(()) };
                self.pending = pending;
            }
            Err(WriteError::Broken(error)) => {
                self.is_broken = true;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Applies the records of a logged part. Returns the record that failed, if any.
    fn apply_part(
        &mut self,
        run: &mut Running,
        part: &Part,
        payload: &Bytes,
        sequence: u64,
    ) -> Result<Option<(u32, Errno)>, StoreError> {
        for (index, record) in (0_u32..).zip(&part.records) {
            let step = match self.knowledge.table.check(record) {
                Ok(step) => step,
                // A replay gets the same result.
                Err(errno) => return Ok(Some((index, errno))),
            };
            if let Err(errno) = self.apply_record(&step, record, payload) {
                let failed = FailedBatch {
                    number: part.number,
                    record: run.position.record + index,
                    error: errno,
                };
                self.write_stopped(
                    sequence,
                    index,
                    Observation::Failed { client: part.client, failed },
                )?;
                return Ok(Some((index, errno)));
            }
            touched_by(record, &mut run.touched);
            match &step {
                NameChange::Remove(Removal { ino, fate: Fate::Orphaned, .. })
                | NameChange::Move {
                    replaced: Some(Removal { ino, fate: Fate::Orphaned, .. }),
                    ..
                } => {
                    run.nameless.push(*ino);
                }
                NameChange::Create { ino, place } if place.0 == super::table::ORPHANS => {
                    run.nameless.push(*ino);
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn apply_record(
        &mut self,
        step: &NameChange,
        record: &Record,
        payload: &Bytes,
    ) -> Result<(), Errno> {
        let table = &mut self.knowledge.table;
        let identity = self.files.perform(table, step, record)?;
        let kind = match record {
            Record::Create { node, .. } => kind_of_new(node)?,
            _ => NodeKind::File,
        };
        table.apply(step, kind);
        if let (NameChange::Create { ino, .. }, Some(identity)) = (step, identity) {
            table.identify(*ino, identity);
            self.pending.push(Observation::Created { ino: *ino, identity });
        }
        self.files.perform_data(table, record, payload)
    }

    fn report(&mut self, mut run: Running) -> AppliedBatch {
        run.touched.sort_unstable();
        run.touched.dedup();
        let mut changed = Vec::with_capacity(run.touched.len());
        for ino in run.touched {
            if let Ok(attributes) = self.changed_attributes(ino) {
                changed.push((ino, attributes));
            }
        }
        run.nameless.retain(|ino| self.knowledge.table.is_orphan(*ino));
        run.nameless.sort_unstable();
        run.nameless.dedup();
        let ClientBatch { client, number, .. } = run.batch;
        AppliedBatch { client, number, failed: run.failed, changed, orphaned: run.nameless }
    }
}

impl Progress {
    /// Notes that a part was applied, which ends before `next`, or ends the batch.
    pub(crate) fn advance(&mut self, number: u64, next: Option<Position>) {
        match next {
            Some(position) => *self = Self { applied: number - 1, position },
            None => *self = Self { applied: number, position: Position::default() },
        }
    }
}

/// Adds the nodes that a record changes.
fn touched_by(record: &Record, touched: &mut Vec<Ino>) {
    match record {
        Record::Create { parent, ino, .. } => {
            touched.push(*ino);
            touched.extend(parent.iter().map(|(parent, _)| parent.ino));
        }
        Record::Link { node, parent, .. }
        | Record::Unlink { parent, node, .. }
        | Record::RemoveDirectory { parent, node, .. } => touched.extend([parent.ino, node.ino]),
        Record::Rename { from, to, node, replaced, .. } => {
            touched.extend([from.0.ino, to.0.ino, node.ino]);
            touched.extend(replaced.iter().map(|replaced| replaced.ino));
        }
        Record::Write { file, .. } | Record::Allocate { file, .. } => touched.push(file.ino),
        Record::CopyRange { to, .. } => touched.push(to.ino),
        Record::SetAttributes { node, .. }
        | Record::SetXattr { node, .. }
        | Record::RemoveXattr { node, .. } => touched.push(node.ino),
        Record::Close { .. } => {}
    }
}
