//! Resolves copies between files into writes before they are logged, so that a replay does not depend on what the source
//! contains then.

use std::time::{SystemTime, UNIX_EPOCH};

use apus_fs_wire::{AllocateMode, Data, Errno, Handle, Record, SeekTarget, SetAttributes, Time};
use bytes::Bytes;

use super::DirectoryStore;
use super::names::EINVAL;

/// Bytes that are copied with one frame of the log. Chosen by us: a fraction of what a batch may carry.
const MAX_COPY: u64 = 8 << 20;

const ENXIO: Errno = Errno(6);

/// A `CopyRange` record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) from: Handle,
    pub(crate) from_offset: u64,
    pub(crate) to: Handle,
    pub(crate) to_offset: u64,
    pub(crate) length: u64,
}

/// A piece of a copy.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) records: Vec<Record>,
    pub(crate) payload: Bytes,
    /// Bytes that are copied with this piece and those before it; `None` if it is the last one.
    pub(crate) copied: Option<u64>,
}

impl Copy {
    /// Returns what a record copies, if it does.
    pub(crate) const fn of(record: &Record) -> Option<Self> {
        match record {
            Record::CopyRange { from, from_offset, to, to_offset, length } => Some(Self {
                from: *from,
                from_offset: *from_offset,
                to: *to,
                to_offset: *to_offset,
                length: *length,
            }),
            _ => None,
        }
    }

    fn overlaps(&self) -> bool {
        self.from.ino == self.to.ino && self.from_offset.abs_diff(self.to_offset) < self.length
    }
}

impl DirectoryStore {
    /// Reads the next piece of a copy of which `copied` bytes are done.
    pub(crate) fn piece(&mut self, copy: Copy, copied: u64) -> Result<Piece, Errno> {
        let table = &self.knowledge.table;
        let nothing = Data { start: 0, length: 0 };
        for file in [copy.from, copy.to] {
            let probe = Record::Write { file, offset: 0, data: nothing, time: Time::default() };
            table.check(&probe)?;
        }
        if copy.overlaps() {
            return Err(EINVAL);
        }
        let source = self.files.status(table, copy.from.ino)?.attributes.size;
        let target = self.files.status(table, copy.to.ino)?.attributes.size;
        let total = copy.length.min(source.saturating_sub(copy.from_offset));
        let from = copy.from_offset.checked_add(copied).ok_or(EINVAL)?;
        let to = copy.to_offset.checked_add(copied).ok_or(EINVAL)?;
        let rest = total.saturating_sub(copied);
        to.checked_add(rest).filter(|end| i64::try_from(*end).is_ok()).ok_or(EINVAL)?;
        if rest == 0 {
            return Ok(Piece { records: Vec::new(), payload: Bytes::new(), copied: None });
        }
        let hole = match self.files.seek(table, copy.from.ino, from, SeekTarget::Data) {
            Ok(data) => (data - from).min(rest),
            Err(ENXIO) => rest,
            Err(_) => 0,
        };
        let (records, payload, length) = if hole > 0 {
            (zero(copy.to, to, hole, target), Bytes::new(), hole)
        } else {
            let bytes = self.files.read(table, copy.from.ino, from, rest.min(MAX_COPY))?;
            let data = Data { start: 0, length: bytes.len() as u32 };
            let write = Record::Write { file: copy.to, offset: to, data, time: now() };
            let length = bytes.len() as u64;
            (vec![write], bytes, length)
        };
        let is_last = length == 0 || length == rest;
        Ok(Piece { records, payload, copied: (!is_last).then_some(copied + length) })
    }
}

/// Returns records that make a range of a file of `size` bytes a hole.
fn zero(file: Handle, offset: u64, length: u64, size: u64) -> Vec<Record> {
    let mut records = Vec::new();
    if offset < size {
        let mode = AllocateMode::PunchHole;
        records.push(Record::Allocate { file, mode, offset, length });
    }
    if offset + length > size {
        let set = SetAttributes { size: Some(offset + length), ..SetAttributes::default() };
        records.push(Record::SetAttributes { node: file, set });
    }
    records
}

/// Copies do not say when they were made.
fn now() -> Time {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time { seconds: now.as_secs() as i64, nanoseconds: now.subsec_nanos() }
}
