//! Operations on contents.

use crate::wire::{
    AllocateMode, Errno, Ino, LeaseKind, NodeKind, NodeRange, Record, Response, SeekTarget,
    SessionRequest, SetAttributes,
};
use bytes::Bytes;

use super::attributes::without_privileges;
use super::{Turn, unexpected};
use crate::client::calls::Purpose;
use crate::client::install::KEPT_FILE;
use crate::client::node::RecallStage;
use crate::client::operation::Reply;
use crate::client::{Attempt, Client, Stop};

/// Largest position in a file. Source: Linux `loff_t` is signed.
const MOST_SIZE: u64 = i64::MAX as u64;
/// Bytes of one read at the server. Rationale: a read-ahead of the kernel is no longer.
const MOST_READ: u64 = 1 << 20;
/// Bytes that one copy copies: longer ones are continued by the caller.
const MOST_COPY: u64 = 16 << 20;

impl Client {
    fn file(&self, ino: Ino) -> Result<(), Errno> {
        match self.node(ino)?.attributes.kind {
            NodeKind::File => Ok(()),
            NodeKind::Directory => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }

    pub(super) fn read(&mut self, turn: &Turn, ino: Ino, offset: u64, size: u64) -> Attempt<Reply> {
        self.file(ino)?;
        self.lease(turn, &[(ino, LeaseKind::Shared)])?;
        let applied = self.log.applied();
        let node = self.node_mut(ino)?;
        let end = offset.saturating_add(size).min(node.attributes.size);
        if offset >= end {
            // Where the file ends now, the kernel caches zeros.
            node.kernel_data = true;
            node.read_in_recall |= node.recall.is_some();
            return Ok(Reply::Data(Vec::new()));
        }
        let is_long = node.attributes.size > KEPT_FILE;
        match node.contents.read(offset, end - offset) {
            Ok(pieces) => {
                node.kernel_data = true;
                node.read_in_recall |= node.recall.is_some();
                if is_long {
                    self.note_read(ino, offset, end, false);
                    let kept = self.read_ahead.kept(ino);
                    self.node_mut(ino)?.contents.forget_read_outside(kept);
                    self.read_on(&turn.clock, ino);
                }
                Ok(Reply::Data(pieces))
            }
            Err((at, length)) => {
                if node.barrier > applied {
                    let barrier = node.barrier;
                    return Err(self.wait_for_batch(turn, barrier));
                }
                let unread = self.calls.unread(ino, at, length.min(MOST_READ));
                if is_long {
                    self.note_read(ino, offset, end, unread.is_some());
                }
                let stop = self.read_at_server(turn, ino, at, unread);
                if is_long {
                    self.read_on(&turn.clock, ino);
                }
                Err(stop)
            }
        }
    }

    /// Waits for the read that brings the byte at `at`: one that is under way, or a new one of `unread` bytes.
    fn read_at_server(&mut self, turn: &Turn, ino: Ino, at: u64, unread: Option<u32>) -> Stop {
        let Ok(file) = self.handle(ino) else { return Stop::Fail(Errno::STALE) };
        let call = match (self.calls.reading(ino, at), unread) {
            (Some(call), _) => call,
            (None, length) => {
                let length = length.unwrap_or(MOST_READ as u32);
                let range = NodeRange { file, offset: at, length };
                let purpose = Purpose::Read(ino, at, length);
                self.call(&turn.clock, purpose, SessionRequest::Read { ranges: vec![range] })
            }
        };
        if let Some(outstanding) = self.calls.get_mut(call) {
            outstanding.waiters.push(turn.token);
        }
        Stop::Wait
    }

    /// Writes. `how` is: at the end of the file; from the kernel's cache; set-user-ID goes.
    pub(super) fn write(
        &mut self,
        turn: &Turn,
        ino: Ino,
        offset: u64,
        data: &Bytes,
        how: (bool, bool, bool),
    ) -> Attempt<Reply> {
        let (append, from_cache, kill_privileges) = how;
        self.file(ino)?;
        let under_recall = from_cache
            && self.node(ino)?.recall == Some(RecallStage::Flush)
            && self.node(ino)?.lease == LeaseKind::Exclusive;
        if !under_recall {
            self.room(turn, data.len())?;
            self.lease(turn, &[(ino, LeaseKind::Exclusive)])?;
        }
        let node = self.node(ino)?;
        let (size, mode) = (node.attributes.size, node.attributes.mode);
        // The kernel's idea of the end may be out of date (FS-2).
        let at = if append { size } else { offset };
        let end = at.checked_add(data.len() as u64).filter(|end| *end <= MOST_SIZE);
        let end = end.ok_or(Errno::FBIG)?;
        if kill_privileges && without_privileges(mode) != mode {
            let mode = Some(without_privileges(mode));
            self.apply_attributes(turn, ino, SetAttributes { mode, ..SetAttributes::default() })?;
        }
        if append && offset != at {
            // The kernel has put the bytes elsewhere into its pages.
            let item = crate::client::Invalidation::Node { node: ino, data: true };
            self.invalidate(vec![item]);
        }
        let (number, now) = (self.log.open_number(), turn.clock.wall);
        let node = self.node_mut(ino)?;
        let handle = node.handle;
        if end > size {
            node.contents.extend(size);
            node.attributes.size = end;
        }
        node.contents.write(at, data.clone(), number);
        (node.last_batch, node.has_own_times) = (number, true);
        node.kernel_data = true;
        (node.attributes.mtime, node.attributes.ctime) = (now, now);
        // An estimate until the server has applied it: what is written anew, and no more than a file without holes has.
        let most = node.attributes.size.div_ceil(4096) * 8;
        let written = (data.len() as u64).div_ceil(4096) * 8;
        let written = node.attributes.blocks.saturating_add(written);
        node.attributes.blocks = written.min(most).max(node.attributes.blocks);
        self.log.add_write(turn.clock.now, handle, at, data.clone(), now);
        Ok(Reply::Written(data.len() as u32))
    }

    pub(super) fn allocate(
        &mut self,
        turn: &Turn,
        ino: Ino,
        mode: AllocateMode,
        offset: u64,
        length: u64,
    ) -> Attempt<Reply> {
        let extends = matches!(mode, AllocateMode::Extend | AllocateMode::Zero);
        if self.was_applied_alone(turn)? {
            if let Some(node) = self.nodes.get_mut(&ino) {
                let end = offset.saturating_add(length);
                if extends && node.lease == LeaseKind::Exclusive && end > node.attributes.size {
                    node.contents.extend(node.attributes.size);
                    node.attributes.size = end;
                }
            }
            return Ok(Reply::Done);
        }
        self.file(ino)?;
        self.room(turn, 0)?;
        let end = offset.checked_add(length).filter(|end| *end <= MOST_SIZE && length > 0);
        end.ok_or(if length == 0 { Errno::INVAL } else { Errno::FBIG })?;
        self.lease(turn, &[(ino, LeaseKind::Exclusive)])?;
        let file = self.handle(ino)?;
        if !matches!(mode, AllocateMode::Extend | AllocateMode::KeepSize) {
            // The range is read at the server from then on, when the server has done it.
            // Reads wait for this batch: one that the log never gets would have them wait forever.
            self.log.seal();
            let number = self.log.open_number();
            self.calls.void_reads(ino);
            let node = self.node_mut(ino)?;
            node.contents.forget(offset, length);
            node.contents.extend_to_server(node.attributes.size);
            node.barrier = number;
        }
        let record = Record::Allocate { file, mode, offset, length };
        Err(self.apply_alone(turn, &[ino], record))
    }

    pub(super) fn seek(
        &mut self,
        turn: &Turn,
        ino: Ino,
        offset: u64,
        target: SeekTarget,
        response: Option<Response>,
    ) -> Attempt<Reply> {
        self.file(ino)?;
        match response {
            Some(Response::Position(position)) => Ok(Reply::Position(position)),
            Some(other) => Err(unexpected(&other)),
            None => {
                self.lease(turn, &[(ino, LeaseKind::Shared)])?;
                if offset >= self.node(ino)?.attributes.size {
                    return Err(Errno::NXIO.into());
                }
                self.clean(turn, ino)?;
                let file = self.handle(ino)?;
                Err(self.ask(turn, SessionRequest::Seek { file, offset, target }))
            }
        }
    }

    pub(super) fn copy_range(
        &mut self,
        turn: &Turn,
        (from, from_offset): (Ino, u64),
        (to, to_offset): (Ino, u64),
        length: u64,
    ) -> Attempt<Reply> {
        self.file(from)?;
        self.file(to)?;
        self.room(turn, 0)?;
        self.lease(turn, &[(from, LeaseKind::Shared), (to, LeaseKind::Exclusive)])?;
        let available = self.node(from)?.attributes.size.saturating_sub(from_offset);
        let length = length.min(available).min(MOST_COPY);
        let overlap = from_offset < to_offset.saturating_add(length)
            && to_offset < from_offset.saturating_add(length);
        if from == to && overlap {
            return Err(Errno::INVAL.into());
        }
        if length == 0 {
            return Ok(Reply::Copied(0));
        }
        let end = to_offset.checked_add(length).filter(|end| *end <= MOST_SIZE);
        let end = end.ok_or(Errno::FBIG)?;
        let number = self.log.open_number();
        let source = self.handle(from)?;
        self.calls.void_reads(to);
        let node = self.node_mut(to)?;
        let target = node.handle;
        node.contents.forget(to_offset, length);
        if end > node.attributes.size {
            node.contents.extend(node.attributes.size);
            node.attributes.size = end;
        }
        node.contents.extend_to_server(end);
        node.barrier = number;
        node.attributes.mtime = turn.clock.wall;
        let record = Record::CopyRange { from: source, from_offset, to: target, to_offset, length };
        self.record(turn, &[to], record);
        Ok(Reply::Copied(length))
    }
}
