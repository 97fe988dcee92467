//! Leases that an operation needs.

use std::time::Duration;

use crate::client::link::calls::Purpose;
use crate::client::nodes::node::RecallStage;
use crate::client::waiting::Event;
use crate::wire::limits::MAX_NODES;
use crate::wire::{Errno, Ino, LeaseKind, ListTree, LookUp, SessionRequest, WantedLease};

use super::turn::{Attempt, Stop, Turn};

/// Files up to this length are returned with their attributes.
pub(super) const INLINE_FILE: u32 = 4_096;
/// Maximum number of entries in one listing.
pub(super) const LISTED: u32 = 4_096;
/// Number of directory levels in one listing.
pub(super) const DEPTH: u16 = 16;
/// Minimum interval between two requests for the leases of all nodes in one directory.
const LEASE_AHEAD_EVERY: Duration = Duration::from_secs(1);

/// Requires that a node is not being recalled.
pub(super) fn not_recalled(turn: &mut Turn<'_>, ino: Ino) -> Attempt<()> {
    if turn.cache.node(ino)?.recall == Some(RecallStage::Flush) {
        turn.waiting.wait(Event::Recall, turn.token);
        return Err(Stop::Wait);
    }
    not_closed(turn, ino)
}

/// Requires that the server has closed an orphan that is used again: the close ends its lease
/// there.
pub(super) fn not_closed(turn: &mut Turn<'_>, ino: Ino) -> Attempt<()> {
    let number = turn.cache.node(ino)?.closed_in;
    if number > turn.link.log.applied() {
        return Err(turn.wait_for_batch(number));
    }
    if number > 0 {
        turn.link.calls.void(ino);
        let node = turn.cache.node_mut(ino)?;
        (node.lease, node.closed_in) = (LeaseKind::None, 0);
        node.drop_cache();
    }
    Ok(())
}

/// Requires leases of nodes, all at once.
pub(super) fn lease(turn: &mut Turn<'_>, wanted: &[(Ino, LeaseKind)]) -> Attempt<()> {
    for (ino, _) in wanted {
        not_recalled(turn, *ino)?;
    }
    for (ino, kind) in wanted {
        if *kind == LeaseKind::Exclusive
            && let Some(number) = turn.cache.renames.batch_of(*ino)
        {
            return Err(turn.wait_for_batch(number));
        }
        let node = turn.cache.node(*ino)?;
        if node.is_gone && *kind == LeaseKind::Exclusive {
            let error = if node.is_directory() { Errno::NOENT } else { Errno::STALE };
            return Err(error.into());
        }
    }
    let missing = wanted.iter().find(|(ino, kind)| !turn.cache.permits(*ino, *kind)).copied();
    let Some((ino, kind)) = missing else { return Ok(()) };
    if kind == LeaseKind::Shared && wanted.len() == 1 {
        return Err(ask_node(turn, ino));
    }
    if let Some(stop) = lease_ahead(turn, ino) {
        return Err(stop);
    }
    let mut nodes = wanted.to_vec();
    nodes.sort_unstable();
    nodes.dedup_by_key(|(ino, _)| *ino);
    // Unsent new nodes belong to the client, and the server does not have them.
    let applied = turn.link.log.applied();
    nodes.retain(|(ino, _)| turn.cache.get(*ino).is_some_and(|node| node.created_in <= applied));
    let handles = turn.cache.handles(&nodes)?;
    debug_assert!(handles.len() <= MAX_NODES);
    Err(turn.wait_for(Purpose::Lease(nodes), || {
        let wanted = handles.into_iter().map(|(node, kind)| WantedLease { node, kind });
        SessionRequest::Lease { wanted: wanted.collect() }
    }))
}

/// Requests exclusive leases of all nodes in a directory, from the second request for one on.
pub(super) fn lease_ahead(turn: &mut Turn<'_>, ino: Ino) -> Option<Stop> {
    let parent = turn.cache.get(ino)?.parent?;
    let now = turn.clock.now;
    let directory = turn.cache.get_mut(parent)?;
    let handle = directory.handle;
    let names = directory.names_mut();
    names.exclusive_misses += 1;
    let due = names.leased_at.is_none_or(|at| now.saturating_sub(at) > LEASE_AHEAD_EVERY);
    if names.exclusive_misses < 2 || !due {
        return None;
    }
    names.leased_at = Some(now);
    let list = ListTree {
        directory: handle,
        after: None,
        depth: DEPTH,
        entries: LISTED,
        inline: 0,
        inline_total: 0,
        lease: LeaseKind::Exclusive,
    };
    let purpose = Purpose::List(parent);
    Some(turn.wait_for(purpose, || SessionRequest::ListTree(list)))
}

/// Requests a node's attributes, with a shared lease.
pub(super) fn ask_node(turn: &mut Turn<'_>, ino: Ino) -> Stop {
    let Ok(start) = turn.cache.handle(ino) else { return Stop::Fail(Errno::STALE) };
    turn.wait_for(Purpose::LookUp(ino, None), || {
        let lease = LeaseKind::Shared;
        SessionRequest::LookUp(LookUp { start, path: Vec::new(), lease, inline: INLINE_FILE })
    })
}
