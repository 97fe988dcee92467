//! Opening, closing and making durable.

use crate::client::interface::operation::Reply;
use crate::client::link::calls::Purpose;
use crate::client::locks::table::Locks;
use crate::client::loss::Losses;
use crate::client::nodes::cache::Cache;
use crate::client::nodes::install::KEPT_FILE;
use crate::wire::{Errno, Ino, LeaseKind, LockOwner, Response, SetAttributes};

use super::attributes::{apply_attributes, without_privileges};
use super::lease::{lease, not_closed};
use super::locks::unlock_all;
use super::places::close_orphan;
use super::turn::{Attempt, Stop, Turn};

pub(super) fn open(
    turn: &mut Turn<'_>,
    ino: Ino,
    truncate: bool,
    writable: bool,
    kill_privileges: bool,
) -> Attempt<Reply> {
    let kind = if truncate { LeaseKind::Exclusive } else { LeaseKind::Shared };
    if writable && turn.link.session.is_read_only() {
        return Err(Errno::ROFS.into());
    }
    if truncate {
        turn.require_room(0)?;
    }
    if turn.cache.node(ino)?.is_gone && !turn.cache.node(ino)?.is_directory() {
        // It may still be open at another client.
        not_closed(turn, ino)?;
        turn.cache.node_mut(ino)?.is_gone = false;
    }
    lease(turn, &[(ino, kind)])?;
    let (attributes, openings) = (turn.cache.node(ino)?.attributes, turn.cache.node(ino)?.openings);
    if attributes.links == 0 && openings == 0 {
        // It lost its last name after the kernel's lookup. The server keeps it for clients that had
        // it open at that time, and has no record of this client.
        return Err(Errno::STALE.into());
    }
    let mut keep_cache = true;
    if truncate && attributes.size > 0 {
        let mode = kill_privileges.then(|| without_privileges(attributes.mode));
        let mode = mode.filter(|mode| *mode != attributes.mode);
        let mtime = Some(turn.clock.wall);
        let set = SetAttributes { mode, size: Some(0), mtime, ..SetAttributes::default() };
        apply_attributes(turn, ino, set)?;
        keep_cache = false;
    }
    add_opening(turn.cache, ino, writable)?;
    Ok(Reply::Opened { handle: 0, keep_cache })
}

/// Counts an opening.
pub(super) fn add_opening(cache: &mut Cache, ino: Ino, writable: bool) -> Result<(), Errno> {
    let node = cache.node_mut(ino)?;
    node.openings += 1;
    node.writers += u32::from(writable);
    Ok(())
}

pub(super) fn flush(
    turn: &mut Turn<'_>,
    locks: &mut Locks,
    losses: &mut Losses,
    ino: Ino,
    owner: u64,
    response: Option<&Response>,
) -> Attempt<Reply> {
    let owner = LockOwner { owner, is_flock: false };
    if response.is_none() && turn.cache.node(ino)?.lock_owners.contains(&owner) {
        let unlock = unlock_all(turn.cache, locks, ino, owner)?;
        return Err(turn.request(unlock));
    }
    if let Some(node) = turn.cache.get_mut(ino) {
        node.lock_owners.remove(&owner);
    }
    match losses.take_error(ino) {
        Some(error) => Err(error.into()),
        None => Ok(Reply::Done),
    }
}

pub(super) fn release(
    turn: &mut Turn<'_>,
    locks: &mut Locks,
    ino: Ino,
    writable: bool,
    flock_owner: Option<u64>,
) -> Attempt<Reply> {
    let flock = flock_owner.map(|owner| LockOwner { owner, is_flock: true });
    if let Some(owner) = flock
        .filter(|owner| turn.cache.node(ino).is_ok_and(|node| node.lock_owners.contains(owner)))
    {
        let unlock = unlock_all(turn.cache, locks, ino, owner)?;
        turn.link.call(&turn.clock, Purpose::Farewell, unlock);
        turn.cache.node_mut(ino)?.lock_owners.remove(&owner);
    }
    let node = turn.cache.node_mut(ino)?;
    node.openings = node.openings.saturating_sub(1);
    node.writers = node.writers.saturating_sub(u32::from(writable));
    if node.openings == 0 && node.attributes.size > KEPT_FILE {
        node.contents.forget_read();
        turn.cache.read_ahead.forget(ino);
    }
    let node = turn.cache.node(ino)?;
    // Until then the server has kept it (FS-4).
    if node.openings == 0 && node.is_orphan {
        close_orphan(turn, ino);
    }
    Ok(Reply::Done)
}

/// Waits for the last batch with a change: its response confirms that it is durable, with all
/// earlier batches (FS-7).
pub(super) fn sync(turn: &mut Turn<'_>, losses: &mut Losses, ino: Ino) -> Attempt<Reply> {
    if let Some(error) = losses.take_error(ino) {
        return Err(error.into());
    }
    // Later changes of other operations are not waited for.
    let number = match turn.waiting.own_batch(turn.token) {
        Some(number) => number,
        None => turn.link.log.last_number(),
    };
    if number <= turn.link.log.applied() {
        turn.waiting.clear_own_batch(turn.token);
        return Ok(Reply::Done);
    }
    turn.waiting.set_own_batch(turn.token, number);
    let stop = turn.wait_for_batch(number);
    debug_assert!(matches!(stop, Stop::Wait));
    Err(stop)
}
