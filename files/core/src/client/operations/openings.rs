//! Opening, closing and making durable.

use crate::wire::{Errno, Ino, LeaseKind, LockOwner, Response, SetAttributes};

use super::Turn;
use super::attributes::without_privileges;
use crate::client::calls::Purpose;
use crate::client::install::KEPT_FILE;
use crate::client::operation::Reply;
use crate::client::{Attempt, Client, Stop};

impl Client {
    pub(super) fn open(
        &mut self,
        turn: &Turn,
        ino: Ino,
        truncate: bool,
        writable: bool,
        kill_privileges: bool,
    ) -> Attempt<Reply> {
        let kind = if truncate { LeaseKind::Exclusive } else { LeaseKind::Shared };
        if writable && self.session.is_read_only() {
            return Err(Errno::ROFS.into());
        }
        if truncate {
            self.room(turn, 0)?;
        }
        if self.node(ino)?.is_gone && !self.node(ino)?.is_directory() {
            // Another client may have it open still.
            self.not_closed(turn, ino)?;
            self.node_mut(ino)?.is_gone = false;
        }
        self.lease(turn, &[(ino, kind)])?;
        let (attributes, openings) = (self.node(ino)?.attributes, self.node(ino)?.openings);
        if attributes.links == 0 && openings == 0 {
            // It lost its last name after the kernel had found it. The server keeps it for clients that had it open then, and does not
            // know of this one.
            return Err(Errno::STALE.into());
        }
        let mut keep_cache = true;
        if truncate && attributes.size > 0 {
            let mode = kill_privileges.then(|| without_privileges(attributes.mode));
            let mode = mode.filter(|mode| *mode != attributes.mode);
            let mtime = Some(turn.clock.wall);
            let set = SetAttributes { mode, size: Some(0), mtime, ..SetAttributes::default() };
            self.apply_attributes(turn, ino, set)?;
            keep_cache = false;
        }
        self.add_opening(ino, writable)?;
        Ok(Reply::Opened { handle: 0, keep_cache })
    }

    /// Counts an opening.
    pub(super) fn add_opening(&mut self, ino: Ino, writable: bool) -> Result<(), Errno> {
        let node = self.node_mut(ino)?;
        node.openings += 1;
        node.writers += u32::from(writable);
        Ok(())
    }

    pub(super) fn flush_opening(
        &mut self,
        turn: &Turn,
        ino: Ino,
        owner: u64,
        response: Option<&Response>,
    ) -> Attempt<Reply> {
        let owner = LockOwner { owner, is_flock: false };
        if response.is_none() && self.node(ino)?.lock_owners.contains(&owner) {
            let unlock = self.unlock(ino, owner)?;
            return Err(self.ask(turn, unlock));
        }
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.lock_owners.remove(&owner);
        }
        match self.lost_changes.remove(&ino) {
            Some(error) => Err(error.into()),
            None => Ok(Reply::Done),
        }
    }

    pub(super) fn release(
        &mut self,
        turn: &Turn,
        ino: Ino,
        writable: bool,
        flock_owner: Option<u64>,
    ) -> Attempt<Reply> {
        let flock = flock_owner.map(|owner| LockOwner { owner, is_flock: true });
        if let Some(owner) =
            flock.filter(|owner| self.node(ino).is_ok_and(|node| node.lock_owners.contains(owner)))
        {
            let unlock = self.unlock(ino, owner)?;
            self.call(&turn.clock, Purpose::Farewell, unlock);
            self.node_mut(ino)?.lock_owners.remove(&owner);
        }
        let node = self.node_mut(ino)?;
        node.openings = node.openings.saturating_sub(1);
        node.writers = node.writers.saturating_sub(u32::from(writable));
        if node.openings == 0 && node.attributes.size > KEPT_FILE {
            node.contents.forget_read();
            self.read_ahead.forget(ino);
        }
        let node = self.node(ino)?;
        // Until then the server has kept it (FS-4).
        if node.openings == 0 && node.is_orphan {
            self.close_orphan(turn, ino);
        }
        Ok(Reply::Done)
    }

    /// Waits for the last batch that has a change: its response says that it is durable, and all before it (FS-7).
    pub(super) fn sync(&mut self, turn: &Turn, ino: Ino) -> Attempt<Reply> {
        if let Some(error) = self.lost_changes.remove(&ino) {
            return Err(error.into());
        }
        // What other operations add from now on need not be waited for.
        let number = match self.syncing.get(&turn.token) {
            Some(number) => *number,
            None => self.log.last_number(),
        };
        if number <= self.log.applied() {
            self.syncing.remove(&turn.token);
            return Ok(Reply::Done);
        }
        self.syncing.insert(turn.token, number);
        let stop = self.wait_for_batch(turn, number);
        debug_assert!(matches!(stop, Stop::Wait));
        Err(stop)
    }
}
