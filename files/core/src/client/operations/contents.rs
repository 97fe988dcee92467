//! Allocation, search and server-side copies of contents.

use crate::client::interface::operation::Reply;
use crate::wire::{
    AllocateMode, Errno, Ino, LeaseKind, Record, Response, SeekTarget, SessionRequest,
};

use super::lease::lease;
use super::read::require_file;
use super::turn::{Attempt, Turn, unexpected};
use super::write::MOST_SIZE;

/// Maximum length of one copy: the caller continues longer ones.
const MOST_COPY: u64 = 16 << 20;

pub(super) fn allocate(
    turn: &mut Turn<'_>,
    ino: Ino,
    mode: AllocateMode,
    offset: u64,
    length: u64,
) -> Attempt<Reply> {
    let extends = matches!(mode, AllocateMode::Extend | AllocateMode::Zero);
    if turn.was_applied_alone()? {
        if let Some(node) = turn.cache.get_mut(ino) {
            let end = offset.saturating_add(length);
            if extends && node.lease == LeaseKind::Exclusive && end > node.attributes.size {
                node.contents.extend(node.attributes.size);
                node.attributes.size = end;
            }
        }
        return Ok(Reply::Done);
    }
    require_file(turn.cache, ino)?;
    turn.require_room(0)?;
    let end = offset.checked_add(length).filter(|end| *end <= MOST_SIZE && length > 0);
    end.ok_or(if length == 0 { Errno::INVAL } else { Errno::FBIG })?;
    lease(turn, &[(ino, LeaseKind::Exclusive)])?;
    let file = turn.cache.handle(ino)?;
    if !matches!(mode, AllocateMode::Extend | AllocateMode::KeepSize) {
        // Once the server has applied the batch, the range is read there. Reads wait for this
        // batch: if the log never received it, they would wait forever.
        turn.link.log.seal();
        let number = turn.link.log.open_number();
        turn.link.calls.void_reads(ino);
        let node = turn.cache.node_mut(ino)?;
        node.contents.forget(offset, length);
        node.contents.extend_to_server(node.attributes.size);
        node.barrier = number;
    }
    let record = Record::Allocate { file, mode, offset, length };
    Err(turn.apply_alone(&[ino], record))
}

pub(super) fn seek(
    turn: &mut Turn<'_>,
    ino: Ino,
    offset: u64,
    target: SeekTarget,
    response: Option<Response>,
) -> Attempt<Reply> {
    require_file(turn.cache, ino)?;
    match response {
        Some(Response::Position(position)) => Ok(Reply::Position(position)),
        Some(other) => Err(unexpected(&other)),
        None => {
            lease(turn, &[(ino, LeaseKind::Shared)])?;
            if offset >= turn.cache.node(ino)?.attributes.size {
                return Err(Errno::NXIO.into());
            }
            turn.require_clean(ino)?;
            let file = turn.cache.handle(ino)?;
            Err(turn.request(SessionRequest::Seek { file, offset, target }))
        }
    }
}

pub(super) fn copy_range(
    turn: &mut Turn<'_>,
    (from, from_offset): (Ino, u64),
    (to, to_offset): (Ino, u64),
    length: u64,
) -> Attempt<Reply> {
    require_file(turn.cache, from)?;
    require_file(turn.cache, to)?;
    turn.require_room(0)?;
    lease(turn, &[(from, LeaseKind::Shared), (to, LeaseKind::Exclusive)])?;
    let available = turn.cache.node(from)?.attributes.size.saturating_sub(from_offset);
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
    let number = turn.link.log.open_number();
    let source = turn.cache.handle(from)?;
    turn.link.calls.void_reads(to);
    let node = turn.cache.node_mut(to)?;
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
    turn.record(&[to], record);
    Ok(Reply::Copied(length))
}
