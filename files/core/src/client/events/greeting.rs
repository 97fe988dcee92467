//! The start of a session: Welcome, then leases are reclaimed, then locks (FS-13).

use std::collections::HashSet;
use std::time::Duration;

use crate::wire::limits::MAX_NODES;
use crate::wire::{
    Errno, Handle, Ino, InoRange, LeaseKind, SessionRequest, Version, Welcome, WireVersion,
};

use super::batches::{handle_applied, handle_failed, is_new};
use super::ending::{end_session, lose_log, refuse};
use crate::client::core::Core;
use crate::client::interface::effect::Clock;
use crate::client::link::Link;
use crate::client::link::calls::Purpose;
use crate::client::link::session::SessionState;
use crate::client::locks::relock::relock_next;
use crate::client::locks::restoring::restore_all;
use crate::client::nodes::cache::Cache;
use crate::client::nodes::install::install;
use crate::client::waiting::Event;

/// Returns the supported protocol versions as text.
pub(in crate::client) fn supported_versions() -> String {
    format!("{} to {}", WireVersion::OLDEST.0, WireVersion::CURRENT.0)
}

/// Handles the response to a Hello that was sent at `sent`.
pub(in crate::client) fn handle_welcome(
    core: &mut Core,
    clock: &Clock,
    sent: Duration,
    welcome: &Welcome,
    voided: &HashSet<Ino>,
) {
    if !(WireVersion::OLDEST..=WireVersion::CURRENT).contains(&welcome.version) {
        let (version, own) = (welcome.version.0, supported_versions());
        return refuse(
            core,
            &format!("the server speaks version {version}, and this client {own}"),
        );
    }
    if core.link.session.number.is_some() && !welcome.resumed {
        end_session(core, clock);
    }
    adopt_session(&mut core.link, sent, welcome);
    let log = &core.link.log;
    let failed = welcome.failed.filter(|failed| failed.number <= welcome.applied);
    if let Some(failed) = failed.filter(|failed| is_new(log, failed)) {
        return handle_failed(core, clock, &failed);
    }
    // A server that reports fewer applied batches than before has lost its log.
    if welcome.applied >= log.applied() && welcome.applied <= log.last_number() {
        handle_applied(&mut core.link, &mut core.cache, &mut core.waiting, welcome.applied);
    } else if welcome.applied != log.applied() {
        let (applied, confirmed) = (welcome.applied, log.applied());
        core.link.output.warn(format!(
            "the server has applied {applied} batches of this client, but had confirmed {confirmed}"
        ));
        return refuse(core, "the server has lost confirmed changes");
    }
    install(&core.link.log, &mut core.cache, &welcome.root, voided);
    core.link.session.state = SessionState::Reclaiming;
    reclaim_next(core, clock);
}

/// Adopts the session, its term and its range of inode numbers.
fn adopt_session(link: &mut Link, sent: Duration, welcome: &Welcome) {
    let session = &mut link.session;
    session.number = Some(welcome.session);
    session.is_server_read_only = welcome.read_only;
    session.term = Duration::from_millis(welcome.term_ms.clamp(100, 600_000).into());
    session.renew(sent);
    let (first, count) = (welcome.first_ino, welcome.inos);
    if count > 0 && first.checked_add(count).is_some_and(|end| end < 1 << 63) {
        session.add_range(InoRange { first, count, proof: welcome.inos_proof });
    }
}

/// Reclaims the next leases, then the next lock; the session is live when none is left.
pub(in crate::client) fn reclaim_next(core: &mut Core, clock: &Clock) {
    let Core { link, cache, waiting, locks, losses, .. } = core;
    let (nodes, leases) = next_claims(link, cache);
    if !nodes.is_empty() {
        let request = SessionRequest::Reclaim { leases };
        link.call(clock, Purpose::Reclaim(nodes), request);
        return;
    }
    if relock_next(link, cache, locks, clock) {
        return;
    }
    link.call(clock, Purpose::Farewell, SessionRequest::Reclaim { leases: Vec::new() });
    link.session.state = SessionState::Live;
    losses.forget_unsent_paths();
    restore_all(link, cache, locks, waiting, clock);
    waiting.wake_for(Event::Session);
}

/// Removes the leases of the next Reclaim from the list.
fn next_claims(
    link: &mut Link,
    cache: &mut Cache,
) -> (Vec<Ino>, Vec<(Handle, LeaseKind, Version)>) {
    let session = &mut link.session;
    let rest = session.to_reclaim.len().saturating_sub(MAX_NODES);
    let part = session.to_reclaim.split_off(rest);
    let applied = link.log.applied();
    let (mut nodes, mut leases) = (Vec::new(), Vec::new());
    for (ino, kind) in part {
        let Some(node) = cache.get_mut(ino) else { continue };
        if node.created_in > applied {
            // Unknown to the server: its creation grants the lease.
            node.lease = kind;
            continue;
        }
        // Another client may hold the lease of a client that was away: claim the leases that unsent
        // changes need, and report open nodes (FSSERVE-11).
        let kind = if link.session.was_away && !node.is_dirty(applied) {
            node.drop_cache();
            LeaseKind::None
        } else {
            kind
        };
        if kind == LeaseKind::None && node.openings == 0 {
            continue;
        }
        nodes.push(ino);
        leases.push((node.handle, kind, node.attributes.version));
    }
    (nodes, leases)
}

/// Handles the response to a Reclaim: granted leases, and whether the cached copies are valid.
pub(in crate::client) fn handle_reclaimed(
    core: &mut Core,
    clock: &Clock,
    nodes: &[Ino],
    leases: &[(LeaseKind, bool)],
    voided: &HashSet<Ino>,
) {
    let (applied, mut conflicts) = (core.link.log.applied(), false);
    for (index, ino) in nodes.iter().enumerate() {
        let (mut kind, valid) = leases.get(index).copied().unwrap_or((LeaseKind::None, false));
        let Some(node) = core.cache.get_mut(*ino) else { continue };
        // During an unanswered recall, the recalled lease is in force: the changes are sent under
        // it.
        if voided.contains(ino) && node.recall.is_none() {
            kind = LeaseKind::None;
        }
        let dirty = node.is_dirty(applied);
        // A client that was away for longer than its term may have lost the lease before the
        // restart.
        let certain = valid || !core.link.session.was_away;
        if dirty && (kind < LeaseKind::Exclusive || !certain) {
            conflicts = true;
        }
        if kind > LeaseKind::None && (valid || (dirty && certain)) {
            node.lease = kind;
            node.reduce_lease(kind);
        } else {
            // Attributes are read again before they are used.
            node.drop_cache();
        }
    }
    if conflicts {
        let why = "another client has changed the same files meanwhile";
        return lose_log(core, clock, Errno::IO, why, 0);
    }
    reclaim_next(core, clock);
}
