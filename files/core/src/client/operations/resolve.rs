//! Names that an operation needs.

use crate::client::link::calls::Purpose;
use crate::wire::{Errno, Ino, LeaseKind, ListTree, LookUp, Name, SessionRequest};

use super::lease::{INLINE_FILE, LISTED, lease, not_recalled};
use super::turn::{Attempt, Stop, Turn};

/// Maximum number of content bytes in one listing.
const INLINE_TOTAL: u32 = 1 << 20;

/// Requests the next part of a directory's names, and the tree below it.
pub(super) fn ask_names(turn: &mut Turn<'_>, directory: Ino, depth: u16) -> Stop {
    let Ok(node) = turn.cache.node(directory) else { return Stop::Fail(Errno::STALE) };
    let list = ListTree {
        directory: node.handle,
        after: node.names().listed_up_to.clone(),
        depth,
        entries: LISTED,
        inline: INLINE_FILE,
        inline_total: INLINE_TOTAL,
        lease: LeaseKind::Shared,
    };
    let purpose = Purpose::List(directory);
    turn.wait_for(purpose, || SessionRequest::ListTree(list))
}

/// Requires a directory whose lease permits its use.
pub(super) fn require_directory(turn: &mut Turn<'_>, ino: Ino) -> Attempt<()> {
    lease(turn, &[(ino, LeaseKind::Shared)])?;
    if turn.cache.node(ino)?.is_directory() { Ok(()) } else { Err(Errno::NOTDIR.into()) }
}

/// Requires the node with a name, usable under its lease; `None` if the name certainly does not
/// exist.
pub(super) fn resolve(turn: &mut Turn<'_>, directory: Ino, name: &Name) -> Attempt<Option<Ino>> {
    not_recalled(turn, directory)?;
    let node = turn.cache.node(directory)?;
    if !node.is_directory() {
        return Err(Errno::NOTDIR.into());
    }
    if node.permits(LeaseKind::Shared) {
        match node.names().get(name) {
            Some(None) => return Ok(None),
            Some(Some(child)) => {
                if turn.cache.get(child).is_some() {
                    not_recalled(turn, child)?;
                    if turn.cache.permits(child, LeaseKind::Shared) {
                        return Ok(Some(child));
                    }
                }
            }
            None => {
                let node = turn.cache.node_mut(directory)?;
                node.names_mut().misses += 1;
                if node.names().misses >= 2 && node.names().listed_up_to.is_none() {
                    return Err(ask_names(turn, directory, 1));
                }
            }
        }
    }
    let start = turn.cache.handle(directory)?;
    let purpose = Purpose::LookUp(directory, Some(name.clone()));
    Err(turn.wait_for(purpose, || {
        let (path, lease) = (vec![name.clone()], LeaseKind::Shared);
        SessionRequest::LookUp(LookUp { start, path, lease, inline: INLINE_FILE })
    }))
}
