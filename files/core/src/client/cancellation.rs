//! Cancellation: a file that is created and removed again before it has left the client never leaves it.
//!
//! Programs make such files as locks: `git status` creates and removes `index.lock`, and makes no call with this. Only a batch with nothing
//! else in it is cancelled. Then the server's state with and without the batch is the same but for times of the directory, and
//! no operation waits for the batch, because the one that waits for a batch seals it.

use crate::wire::{Ino, LeaseKind, Time};

use super::Client;

/// A directory as it was before the open batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirectoryBefore {
    directory: Ino,
    /// The last batch that had changed it.
    last_batch: u64,
    mtime: Time,
    ctime: Time,
}

impl Client {
    /// Returns what a directory is like before a file is created in it, if the open batch has nothing yet.
    pub(super) fn before_creation(&self, directory: Ino) -> Option<DirectoryBefore> {
        let node = self.nodes.get(&directory).filter(|_| self.log.is_open_batch_empty())?;
        let (mtime, ctime) = (node.attributes.mtime, node.attributes.ctime);
        Some(DirectoryBefore { directory, last_batch: node.last_batch, mtime, ctime })
    }

    /// Drops the open batch instead of removing a file from a directory, if the batch creates the file there and does nothing else. Returns
    /// whether it has.
    pub(super) fn cancel_creation(&mut self, directory: Ino, ino: Ino) -> bool {
        let Some(node) = self.nodes.get_mut(&ino) else { return false };
        let is_unused =
            node.openings == 0 && node.lock_owners.is_empty() && node.attributes.links == 1;
        if !is_unused {
            return false;
        }
        let Some(before) = self.log.cancel_creation(directory, ino) else { return false };
        node.attributes.links = 0;
        (node.is_gone, node.lease) = (true, LeaseKind::None);
        (node.created_in, node.last_batch, node.barrier, node.last_cut) = (0, 0, 0, 0);
        node.drop_cache();
        if let Some(node) = self.nodes.get_mut(&directory) {
            node.last_batch = before.last_batch;
            // The server's times are as they were. Programs here have seen others, which are shown until another client looks.
            if node.last_batch <= self.log.applied() && node.server_times.is_none() {
                node.server_times = Some(Box::new((before.mtime, before.ctime)));
            }
        }
        true
    }
}

impl DirectoryBefore {
    pub(super) fn is_of(&self, directory: Ino) -> bool {
        self.directory == directory
    }
}
