//! The end of a session: its leases and locks are reclaimed in the next one (FS-13), or its changes
//! are lost.

use crate::wire::{Errno, LeaseKind};

use crate::client::core::Core;
use crate::client::interface::effect::{Clock, Invalidation};
use crate::client::link::Link;
use crate::client::link::session::SessionState;
use crate::client::loss::give_up_log;
use crate::client::nodes::cache::Cache;
use crate::client::recalls::recall::drop_recalls;
use crate::client::waiting::{Event, Waiting};

/// Ends the session and starts the next one, which reclaims its leases and locks.
pub(in crate::client) fn end_session(core: &mut Core, clock: &Clock) {
    let Core { link, cache, waiting, recalls, locks, losses } = core;
    if link.session.state == SessionState::Refused {
        return;
    }
    link.session.number = None;
    losses.note_unsent_paths(&mut link.log, cache);
    link.log.keep_leases();
    // A session that ends before its leases are reclaimed renews none of the earlier leases.
    let was_away = link.session.was_away && link.session.state != SessionState::Live;
    link.session.was_away = was_away || clock.now >= link.session.valid_until;
    greet_again(link, waiting, clock);
    locks.schedule_relock();
    let mut items = schedule_reclaim(link, cache);
    items.push(Invalidation::Names);
    drop_recalls(link, recalls, waiting);
    link.output.invalidate(items);
}

/// Schedules all leases to be reclaimed. Returns the nodes whose pages the kernel must drop.
fn schedule_reclaim(link: &mut Link, cache: &mut Cache) -> Vec<Invalidation> {
    let to_reclaim = &mut link.session.to_reclaim;
    let mut pages = Vec::new();
    for node in cache.iter_mut() {
        // The only way for a restarted server to learn that the node is open here (FSSERVE-10).
        if node.lease > LeaseKind::None || node.openings > 0 {
            to_reclaim.push((node.ino(), node.lease));
            node.lease = LeaseKind::None;
        }
        if node.kernel_data {
            pages.push(Invalidation::Node { node: node.ino(), data: true });
        }
        node.recall = None;
    }
    // A fixed order keeps two runs of a simulation equal. The root, which a Welcome leases, is
    // reclaimed first: no recall of it can have been answered by then.
    to_reclaim.sort_unstable_by(|one, other| other.cmp(one));
    to_reclaim.dedup_by_key(|(ino, _)| *ino);
    pages
}

/// Greets the server, with the present session or without one. Operations that waited for calls
/// wait for the session.
pub(in crate::client) fn greet_again(link: &mut Link, waiting: &mut Waiting, clock: &Clock) {
    let dropped = link.start_greeting(clock);
    waiting.wait_all(Event::Session, dropped);
}

/// Gives up all changes that are not applied, because they cannot be, and starts a new session with
/// an empty cache. The first `applied` of these changes are at the server nevertheless. Syncs of
/// their nodes report the error (FS-8, FS-14).
pub(in crate::client) fn lose_log(
    core: &mut Core,
    clock: &Clock,
    error: Errno,
    why: &str,
    applied: usize,
) {
    give_up_log(&mut core.link, &core.cache, &mut core.losses, error, why, applied);
    for token in core.waiting.take_for_batches() {
        if core.waiting.remove(token).is_some() {
            core.link.output.reply(token, Err(error));
        }
    }
    drop_everything(core);
    // Batches of the old session that are still in flight are refused, and their numbers are
    // reused.
    core.link.session.number = None;
    greet_again(&mut core.link, &mut core.waiting, clock);
}

/// Drops the whole cache.
fn drop_everything(core: &mut Core) {
    let Core { link, cache, waiting, recalls, locks, .. } = core;
    let mut items = vec![Invalidation::Names];
    for node in cache.iter_mut() {
        items.push(Invalidation::Node { node: node.ino(), data: node.kernel_data });
        node.lease = LeaseKind::None;
        node.recall = None;
        (node.last_batch, node.barrier, node.last_cut, node.closed_in) = (0, 0, 0, 0);
        // If its creation was lost, the server reports that on the next request.
        node.created_in = 0;
        // Its removal may be among the lost changes.
        node.is_gone = false;
        node.drop_cache();
    }
    // Locks end with the session.
    link.output.counters.locks_lost += locks.forget_all();
    drop_recalls(link, recalls, waiting);
    cache.renames.drop_all();
    link.session.to_reclaim.clear();
    link.output.invalidate(items);
}

/// Stops for good: the server refuses the client.
pub(in crate::client) fn refuse(core: &mut Core, why: &str) {
    let Core { link, cache, waiting, losses, .. } = core;
    link.session.state = SessionState::Refused;
    link.output.warn(why.to_owned());
    give_up_log(link, cache, losses, Errno::IO, why, 0);
    for token in waiting.remove_all() {
        link.output.reply(token, Err(Errno::IO));
    }
}
