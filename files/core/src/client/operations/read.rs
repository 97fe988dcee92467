//! Reading contents.

use crate::client::interface::operation::Reply;
use crate::client::link::calls::Purpose;
use crate::client::nodes::cache::Cache;
use crate::client::nodes::install::KEPT_FILE;
use crate::client::nodes::prefetch::{note_read, prefetch};
use crate::wire::{Errno, Ino, LeaseKind, NodeKind, NodeRange, SessionRequest};

use super::lease::lease;
use super::turn::{Attempt, Stop, Turn};

/// Maximum length of one read at the server. Rationale: the kernel's read-ahead is no longer.
const MOST_READ: u64 = 1 << 20;

/// Requires a regular file.
pub(super) fn require_file(cache: &Cache, ino: Ino) -> Result<(), Errno> {
    match cache.node(ino)?.attributes.kind {
        NodeKind::File => Ok(()),
        NodeKind::Directory => Err(Errno::ISDIR),
        _ => Err(Errno::INVAL),
    }
}

pub(super) fn read(turn: &mut Turn<'_>, ino: Ino, offset: u64, size: u64) -> Attempt<Reply> {
    require_file(turn.cache, ino)?;
    lease(turn, &[(ino, LeaseKind::Shared)])?;
    let applied = turn.link.log.applied();
    let node = turn.cache.node_mut(ino)?;
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
                note_read(turn.cache, ino, offset, end, false);
                let kept = turn.cache.read_ahead.kept(ino);
                turn.cache.node_mut(ino)?.contents.forget_read_outside(kept);
                prefetch(turn.link, turn.cache, &turn.clock, ino);
            }
            Ok(Reply::Data(pieces))
        }
        Err((at, length)) => {
            if node.barrier > applied {
                let barrier = node.barrier;
                return Err(turn.wait_for_batch(barrier));
            }
            let unread = turn.link.calls.unread(ino, at, length.min(MOST_READ));
            if is_long {
                note_read(turn.cache, ino, offset, end, unread.is_some());
            }
            let stop = read_at_server(turn, ino, at, unread);
            if is_long {
                prefetch(turn.link, turn.cache, &turn.clock, ino);
            }
            Err(stop)
        }
    }
}

/// Waits for the read that returns the byte at `at`: an outstanding one, or a new one of `unread`
/// bytes.
fn read_at_server(turn: &mut Turn<'_>, ino: Ino, at: u64, unread: Option<u32>) -> Stop {
    let Ok(file) = turn.cache.handle(ino) else { return Stop::Fail(Errno::STALE) };
    let call = match (turn.link.calls.reading(ino, at), unread) {
        (Some(call), _) => call,
        (None, length) => {
            let length = length.unwrap_or(MOST_READ as u32);
            let range = NodeRange { file, offset: at, length };
            let purpose = Purpose::Read(ino, at, length);
            turn.link.call(&turn.clock, purpose, SessionRequest::Read { ranges: vec![range] })
        }
    };
    if let Some(outstanding) = turn.link.calls.get_mut(call) {
        outstanding.waiters.push(turn.token);
    }
    Stop::Wait
}
