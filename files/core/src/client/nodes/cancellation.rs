//! Cancellation: a file that is created and removed before its batch is sent never reaches the
//! server.
//!
//! Programs use such files as locks: `git status` creates and removes `index.lock`, without a
//! single call. Only a batch with no other change is cancelled. The server's state with and without
//! that batch differs only in times of the directory, and no operation waits for the batch, because
//! waiting seals it.

use crate::wire::{Ino, LeaseKind};

use super::cache::Cache;
use crate::client::link::log::{DirectoryBefore, Log};

/// Returns a directory's state before a file is created in it, if the open batch is still empty.
pub(in crate::client) fn before_creation(
    log: &Log,
    cache: &Cache,
    directory: Ino,
) -> Option<DirectoryBefore> {
    let node = cache.get(directory).filter(|_| log.is_open_batch_empty())?;
    let (mtime, ctime) = (node.attributes.mtime, node.attributes.ctime);
    Some(DirectoryBefore { directory, last_batch: node.last_batch, mtime, ctime })
}

/// Drops the open batch in place of removing a file from a directory, if the batch only creates
/// that file there. Returns whether it was dropped.
pub(in crate::client) fn cancel_creation(
    log: &mut Log,
    cache: &mut Cache,
    directory: Ino,
    ino: Ino,
) -> bool {
    let Some(node) = cache.get_mut(ino) else { return false };
    let is_unused = node.openings == 0 && node.lock_owners.is_empty() && node.attributes.links == 1;
    if !is_unused {
        return false;
    }
    let Some(before) = log.cancel_creation(directory, ino) else { return false };
    node.attributes.links = 0;
    (node.is_gone, node.lease) = (true, LeaseKind::None);
    (node.created_in, node.last_batch, node.barrier, node.last_cut) = (0, 0, 0, 0);
    node.drop_cache();
    if let Some(node) = cache.get_mut(directory) {
        node.last_batch = before.last_batch;
        // The server's times are unchanged. Local programs have seen later ones, which stay visible
        // until another client reads the directory.
        if node.last_batch <= log.applied() && node.server_times.is_none() {
            node.server_times = Some(Box::new((before.mtime, before.ctime)));
        }
    }
    true
}
