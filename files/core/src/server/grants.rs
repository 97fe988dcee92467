//! Granting of leases.

use crate::store::Store;
use crate::wire::{Attributes, Errno, Handle, Ino, LeaseKind, Response, WantedLease};

use super::access::Access;
use super::attempt::Attempt;
use super::latecomers::reveal;
use super::queue::{LAST, Needs};
use super::settings::MAX_LEASES;

/// Returns whether a session may receive the stored state of a node (FSSERVE-3), in the order of
/// arrival (FSSERVE-7).
pub(super) fn is_readable<S: Store>(
    access: &Access<S>,
    ticket: u64,
    session: u64,
    ino: Ino,
) -> bool {
    access.holdings.leases.held(session, ino) != LeaseKind::None
        || !access.is_grace()
            && !access.holdings.leases.is_taken(session, ino, LeaseKind::Shared)
            && !access.holdings.queue.is_ahead(ticket, session, ino, LeaseKind::Shared)
}

/// Returns the lease that a session has and will keep (FSSERVE-5).
fn kept<S: Store>(access: &Access<S>, session: u64, ino: Ino) -> LeaseKind {
    let held = access.holdings.leases.held(session, ino);
    access.holdings.recalls.keep(session, ino).map_or(held, |keep| held.min(keep))
}

/// Whether a session may have a lease.
fn is_grantable<S: Store>(
    access: &Access<S>,
    ticket: u64,
    session: u64,
    ino: Ino,
    kind: LeaseKind,
) -> bool {
    kept(access, session, ino) >= kind
        || !access.is_grace()
            && access.holdings.recalls.keep(session, ino).is_none_or(|keep| keep >= kind)
            && !access.holdings.leases.is_taken(session, ino, kind)
            && !access.holdings.queue.is_ahead(ticket, session, ino, kind)
}

/// Grants as much of a lease as is possible at once, and returns the session's lease afterwards.
pub(super) fn offer<S: Store>(
    access: &mut Access<S>,
    ticket: u64,
    session: u64,
    ino: Ino,
    wanted: LeaseKind,
) -> LeaseKind {
    let before = kept(access, session, ino);
    if wanted <= before || access.holdings.leases.count(session) >= MAX_LEASES {
        return before;
    }
    // An unrequested exclusive lease yields to all waiting requests.
    let kind = if wanted == LeaseKind::Exclusive
        && !access.holdings.contention.is_contended(ino, access.now)
        && is_grantable(access, LAST, session, ino, LeaseKind::Exclusive)
    {
        LeaseKind::Exclusive
    } else if is_grantable(access, ticket, session, ino, LeaseKind::Shared) {
        LeaseKind::Shared
    } else {
        return before;
    };
    grant(access, session, ino, kind);
    kept(access, session, ino)
}

/// Like [`offer`], for a lease of the client's previous session: the only grant in the grace
/// period.
pub(super) fn offer_reclaimed<S: Store>(
    access: &mut Access<S>,
    session: u64,
    ino: Ino,
    wanted: LeaseKind,
) {
    if !access.is_grace() {
        offer(access, LAST, session, ino, wanted);
        return;
    }
    let has_room = access.holdings.leases.count(session) < MAX_LEASES;
    let kinds = [LeaseKind::Exclusive, LeaseKind::Shared];
    let mut kinds = kinds.into_iter().filter(|kind| has_room && *kind <= wanted);
    if let Some(kind) = kinds.find(|kind| !access.holdings.leases.is_taken(session, ino, *kind)) {
        grant(access, session, ino, kind);
        // A request of the same session may wait for it.
        access.holdings.queue.touch(ino);
    }
}

/// Raises a session's lease to at least `kind`.
pub(super) fn grant<S: Store>(access: &mut Access<S>, session: u64, ino: Ino, kind: LeaseKind) {
    if kind > access.holdings.leases.held(session, ino) {
        access.holdings.leases.set(session, ino, kind);
    }
    reveal(access, session, ino);
    if let Some(session) = access.sessions.get_mut(session) {
        session.note(ino);
    }
}

/// Grants all leases of a list, or none.
pub(super) fn lease<S: Store>(
    access: &mut Access<S>,
    ticket: u64,
    session: u64,
    wanted: &[WantedLease],
) -> Attempt {
    let mut needs = Needs::new();
    for lease in wanted.iter().filter(|lease| lease.kind != LeaseKind::None) {
        // A missing node does not prevent the other leases: clients request thousands at a time.
        if access.is_valid(session, lease.node)
            && let Ok(attributes) = access.store.attributes(lease.node.ino)
        {
            if access.permitted(session, &attributes, lease.kind) < lease.kind {
                return Attempt::failed(Errno::ACCES);
            }
            let need = needs.entry(lease.node.ino).or_default();
            *need = lease.kind.max(*need);
        }
    }
    if !needs.iter().all(|(ino, kind)| is_grantable(access, ticket, session, *ino, *kind)) {
        return Attempt::Blocked(needs);
    }
    if access.holdings.leases.count(session) + needs.len() > MAX_LEASES {
        return Attempt::failed(Errno::NFILE);
    }
    let mut lent = Vec::new();
    for (ino, kind) in &needs {
        grant(access, session, *ino, *kind);
        let is_exclusive = *kind == LeaseKind::Exclusive;
        if is_exclusive && access.holdings.contention.lend(*ino, session, access.now) {
            lent.push(*ino);
        }
    }
    let leases: Vec<(LeaseKind, Option<Attributes>)> =
        wanted.iter().map(|lease| leased(access, session, lease.node)).collect();
    Response::Leased { leases, lent }.into()
}

fn leased<S: Store>(
    access: &mut Access<S>,
    session: u64,
    node: Handle,
) -> (LeaseKind, Option<Attributes>) {
    let kind = kept(access, session, node.ino);
    if kind == LeaseKind::None || !access.is_valid(session, node) {
        return (LeaseKind::None, None);
    }
    match access.store.attributes(node.ino) {
        Ok(attributes) => (kind, Some(attributes)),
        Err(_) => (LeaseKind::None, None),
    }
}
