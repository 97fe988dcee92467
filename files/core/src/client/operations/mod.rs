//! Operations: each is a function over one attempt ([`Turn`](turn::Turn)) and the further groups of
//! state that it may change.
//!
//! An attempt starts from the beginning each time. It changes nothing before all that it needs is
//! available.

mod attributes;
mod contents;
mod create;
mod directories;
mod entries;
mod lease;
mod locks;
mod names;
mod openings;
mod places;
mod read;
mod rename;
mod resolve;
mod turn;
mod write;
mod xattrs;

use crate::wire::{LockOwner, Response, SessionRequest};

use super::core::Core;
use super::interface::effect::{Clock, OpToken};
use super::interface::operation::{Operation, Reply};
use super::link::Link;
use super::locks::restoring::withdraw_lock;
use super::locks::table::{Locks, locked_range};
use super::nodes::cache::Cache;
use super::nodes::directories::Directories;
use super::waiting::{Event, Pending, Waiting};
use attributes::{get_attributes, set_attributes};
use contents::{allocate, copy_range, seek};
use create::{create, create_temporary};
use directories::{open_directory, read_directory};
use locks::{lock, test_lock};
use names::{link, look_up, read_link, remove_directory, unlink};
use openings::{flush, open, release, sync};
use read::read;
use rename::rename;
use turn::{Turn, unexpected};
use write::write;
use xattrs::{get_xattr, list_xattrs, remove_xattr, set_xattr};

pub(super) use turn::{Attempt, Stop};

/// Returns whether an operation needs no server: it closes a file without locks. A process that
/// executes another program closes its files first, and that program may be the server.
fn is_local(cache: &Cache, operation: &Operation) -> bool {
    match operation {
        Operation::Flush { node, owner } => {
            let owner = LockOwner { owner: *owner, is_flock: false };
            cache.get(*node).is_none_or(|node| !node.lock_owners.contains(&owner))
        }
        Operation::ReleaseDirectory { .. } => true,
        _ => false,
    }
}

/// Attempts an operation from its beginning.
pub(super) fn attempt(
    core: &mut Core,
    directories: &mut Directories,
    clock: &Clock,
    token: OpToken,
    pending: &mut Pending,
) -> Attempt<Reply> {
    let Core { link: server, cache, waiting, locks, losses, .. } = core;
    if !server.session.is_live(clock.now) && !is_local(cache, &pending.operation) {
        waiting.wait(Event::Session, token);
        return Err(Stop::Wait);
    }
    let response = pending.response.take();
    let caller = pending.caller;
    let turn = &mut Turn { clock: *clock, token, caller, link: server, cache, waiting };
    match &pending.operation {
        Operation::LookUp(place) => look_up(turn, place),
        Operation::Forget { .. } => Ok(Reply::Done),
        Operation::GetAttributes { node } => get_attributes(turn, *node),
        Operation::SetAttributes { node, change } => set_attributes(turn, *node, change),
        Operation::ReadLink { node } => read_link(turn, *node),
        Operation::Create { place, node, mode, open } => create(turn, place, node, *mode, *open),
        Operation::CreateTemporary { directory, mode } => create_temporary(turn, *directory, *mode),
        Operation::Unlink(place) => unlink(turn, place),
        Operation::RemoveDirectory(place) => remove_directory(turn, place),
        Operation::Rename { from, to, exchange, no_replace } => {
            rename(turn, from, to, *exchange, *no_replace)
        }
        Operation::Link { node, place } => link(turn, *node, place),
        Operation::Open { node, truncate, writable, kill_privileges } => {
            open(turn, *node, *truncate, *writable, *kill_privileges)
        }
        Operation::Read { node, offset, size } => read(turn, *node, *offset, u64::from(*size)),
        Operation::Write { node, offset, data, append, from_cache, kill_privileges } => {
            write(turn, *node, *offset, data, (*append, *from_cache, *kill_privileges))
        }
        Operation::Flush { node, owner } => {
            flush(turn, locks, losses, *node, *owner, response.as_ref())
        }
        Operation::Release { node, writable, flock_owner } => {
            release(turn, locks, *node, *writable, *flock_owner)
        }
        Operation::Sync { node } => sync(turn, losses, *node),
        Operation::OpenDirectory { node } => open_directory(turn.cache, directories, *node),
        Operation::ReadDirectory { node, handle, offset, most, with_attributes } => {
            let part = (*offset, *most, *with_attributes);
            read_directory(turn, directories, *node, *handle, part)
        }
        Operation::ReleaseDirectory { handle } => {
            directories.close(*handle);
            Ok(Reply::Done)
        }
        Operation::SetXattr { node, name, value, create, replace } => {
            set_xattr(turn, *node, (name, value), (*create, *replace), response)
        }
        Operation::GetXattr { node, name } => get_xattr(turn, *node, name, response),
        Operation::ListXattr { node } => list_xattrs(turn, *node, response),
        Operation::RemoveXattr { node, name } => remove_xattr(turn, *node, name, response),
        Operation::GetSpace => match response {
            Some(Response::Space(space)) => Ok(Reply::Space(space)),
            Some(other) => Err(unexpected(&other)),
            None => Err(turn.request(SessionRequest::StatFs)),
        },
        Operation::Lock { node, owner, kind, range, wait } => {
            lock(turn, locks, *node, (*owner, *kind, *range, *wait), response)
        }
        Operation::TestLock { node, owner, kind, range } => {
            test_lock(turn, *node, (*owner, *kind, *range), response)
        }
        Operation::Allocate { node, mode, offset, length } => {
            allocate(turn, *node, *mode, *offset, *length)
        }
        Operation::Seek { node, offset, target } => seek(turn, *node, *offset, *target, response),
        Operation::CopyRange { from, from_offset, to, to_offset, length } => {
            copy_range(turn, (*from, *from_offset), (*to, *to_offset), *length)
        }
    }
}

/// Withdraws the requests that an interrupted operation has sent.
pub(super) fn withdraw(
    link: &mut Link,
    cache: &Cache,
    locks: &mut Locks,
    waiting: &Waiting,
    clock: &Clock,
    (token, operation): (OpToken, &Operation),
) {
    if let Operation::Lock { node, owner, range, wait, .. } = operation {
        let lock = (*node, *owner, locked_range(*owner, *range));
        withdraw_lock(link, cache, locks, waiting, clock, (token, *wait), lock);
    }
}
