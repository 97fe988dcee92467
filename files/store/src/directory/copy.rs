//! Resolves records whose effect depends on the state before them, so that it can be replayed: a
//! copy between files becomes writes, and the removal of an attribute is logged only if there is
//! the attribute.

use std::time::{SystemTime, UNIX_EPOCH};

use apus_fs_core::wire::{
    AllocateMode, Data, Errno, Handle, Record, SeekTarget, SetAttributes, Time,
};
use bytes::Bytes;

use super::DirectoryStore;

/// Maximum bytes copied per frame of the log. Chosen by us: a fraction of the largest batch.
const MAX_COPY: u64 = 8 << 20;

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
    /// Bytes copied up to the end of this piece; `None` if it is the last piece.
    pub(crate) copied: Option<u64>,
}

impl Copy {
    /// Returns the copy that a record requests, if any.
    const fn of(record: &Record) -> Option<Self> {
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

    /// Returns whether a record must be resolved when everything before it is applied.
    pub(crate) const fn must_be_resolved(record: &Record) -> bool {
        matches!(record, Record::CopyRange { .. } | Record::RemoveXattr { .. })
    }

    fn overlaps(&self) -> bool {
        self.from.ino == self.to.ino && self.from_offset.abs_diff(self.to_offset) < self.length
    }
}

impl DirectoryStore {
    /// Resolves the rest of a record after its first `copied` bytes.
    pub(crate) fn resolve(&mut self, record: &Record, copied: u64) -> Result<Piece, Errno> {
        if let Some(copy) = Copy::of(record) {
            return self.piece(copy, copied);
        }
        if let Record::RemoveXattr { node, name } = record {
            self.search_for(node.ino);
            self.knowledge.table.check(record)?;
            self.files.xattr(&self.knowledge.table, node.ino, name)?;
        }
        Ok(Piece { records: vec![record.clone()], payload: Bytes::new(), copied: None })
    }

    /// Reads the next piece of a copy after its first `copied` bytes.
    fn piece(&mut self, copy: Copy, copied: u64) -> Result<Piece, Errno> {
        self.search_for(copy.from.ino);
        self.search_for(copy.to.ino);
        let table = &self.knowledge.table;
        let nothing = Data { start: 0, length: 0 };
        for file in [copy.from, copy.to] {
            let probe = Record::Write { file, offset: 0, data: nothing, time: Time::default() };
            table.check(&probe)?;
        }
        if copy.overlaps() {
            return Err(Errno::INVAL);
        }
        let source = self.files.status(table, copy.from.ino)?.attributes.size;
        let target = self.files.status(table, copy.to.ino)?.attributes.size;
        let total = copy.length.min(source.saturating_sub(copy.from_offset));
        let from = copy.from_offset.checked_add(copied).ok_or(Errno::INVAL)?;
        let to = copy.to_offset.checked_add(copied).ok_or(Errno::INVAL)?;
        let rest = total.saturating_sub(copied);
        to.checked_add(rest).filter(|end| i64::try_from(*end).is_ok()).ok_or(Errno::INVAL)?;
        if rest == 0 {
            return Ok(Piece { records: Vec::new(), payload: Bytes::new(), copied: None });
        }
        let hole = match self.files.seek(table, copy.from.ino, from, SeekTarget::Data) {
            Ok(data) => (data - from).min(rest),
            Err(Errno::NXIO) => rest,
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

/// Copies carry no time, so the current one is used.
fn now() -> Time {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time { seconds: now.as_secs() as i64, nanoseconds: now.subsec_nanos() }
}
