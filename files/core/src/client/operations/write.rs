//! Writing contents.

use crate::client::interface::effect::Invalidation;
use crate::client::interface::operation::Reply;
use crate::client::nodes::node::RecallStage;
use crate::wire::{Errno, Ino, LeaseKind, SetAttributes};
use bytes::Bytes;

use super::attributes::{apply_attributes, without_privileges};
use super::lease::lease;
use super::read::require_file;
use super::turn::{Attempt, Turn};

/// Largest position in a file. Source: Linux `loff_t` is signed.
pub(super) const MOST_SIZE: u64 = i64::MAX as u64;

/// Writes. `how`: at the end of the file; from the kernel's cache; clear set-user-ID.
pub(super) fn write(
    turn: &mut Turn<'_>,
    ino: Ino,
    offset: u64,
    data: &Bytes,
    how: (bool, bool, bool),
) -> Attempt<Reply> {
    let (append, from_cache, kill_privileges) = how;
    require_file(turn.cache, ino)?;
    let under_recall = from_cache
        && turn.cache.node(ino)?.recall == Some(RecallStage::Flush)
        && turn.cache.node(ino)?.lease == LeaseKind::Exclusive;
    if !under_recall {
        turn.require_room(data.len())?;
        lease(turn, &[(ino, LeaseKind::Exclusive)])?;
    }
    let node = turn.cache.node(ino)?;
    let (size, mode) = (node.attributes.size, node.attributes.mode);
    // The kernel's idea of the end may be out of date (FS-2).
    let at = if append { size } else { offset };
    let end = at.checked_add(data.len() as u64).filter(|end| *end <= MOST_SIZE);
    let end = end.ok_or(Errno::FBIG)?;
    if kill_privileges && without_privileges(mode) != mode {
        let mode = Some(without_privileges(mode));
        apply_attributes(turn, ino, SetAttributes { mode, ..SetAttributes::default() })?;
    }
    if append && offset != at {
        // The kernel has put the bytes elsewhere into its pages.
        let item = Invalidation::Node { node: ino, data: true };
        turn.link.output.invalidate(vec![item]);
    }
    let (number, now) = (turn.link.log.open_number(), turn.clock.wall);
    let node = turn.cache.node_mut(ino)?;
    let handle = node.handle;
    if end > size {
        node.contents.extend(size);
        node.attributes.size = end;
    }
    node.contents.write(at, data.clone(), number);
    (node.last_batch, node.has_own_times) = (number, true);
    node.kernel_data = true;
    (node.attributes.mtime, node.attributes.ctime) = (now, now);
    // An estimate until the server has applied the write: the written blocks, and at most those of
    // a file without holes.
    let most = node.attributes.size.div_ceil(4096) * 8;
    let written = (data.len() as u64).div_ceil(4096) * 8;
    let written = node.attributes.blocks.saturating_add(written);
    node.attributes.blocks = written.min(most).max(node.attributes.blocks);
    turn.link.log.add_write(turn.clock.now, handle, at, data.clone(), now);
    Ok(Reply::Written(data.len() as u32))
}
