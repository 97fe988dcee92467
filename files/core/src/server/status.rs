//! Status for `apus fs status`.

use crate::wire::limits::MAX_STATUS_LINES;
use crate::wire::{FileSystemStatus, Ino, LeaseKind};

use super::access::Access;
use super::leases::is_conflict;
use crate::store::Store;

/// Returns the clients, and which client waits for which other one.
pub(super) fn status<S: Store>(access: &Access<S>) -> FileSystemStatus {
    let clients = access.sessions.iter().take(MAX_STATUS_LINES).map(|(number, session)| {
        let (shared, exclusive) = access.holdings.leases.counts(number);
        (session.name.clone(), shared, exclusive, session.applied)
    });
    let name = |number| {
        access.sessions.get(number).map(|session| session.name.clone()).unwrap_or_default()
    };
    let waiting = access.holdings.queue.iter().flat_map(|waiting| {
        let is_taken = move |(ino, kind): &(&Ino, &LeaseKind)| {
            access.holdings.leases.is_taken(waiting.session, **ino, **kind)
        };
        waiting.needs.iter().take(MAX_STATUS_LINES).filter(is_taken).flat_map(move |(ino, kind)| {
            let holders = access.holdings.leases.holders(*ino).iter();
            holders
                .filter(|(holder, held)| *holder != waiting.session && is_conflict(*held, *kind))
                .map(|(holder, _)| (*ino, waiting.session, *holder))
        })
    });
    let waiting = waiting
        .take(MAX_STATUS_LINES)
        .map(|(ino, waiter, holder)| (access.proofs.handle(ino), name(waiter), name(holder)));
    FileSystemStatus { clients: clients.collect(), waiting: waiting.collect() }
}
