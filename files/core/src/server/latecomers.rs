//! Latecomers: clients that held leases before the server was restarted, and claimed nothing in the grace period.
//!
//! The server does not remember what they held. It remembers what other clients have learned since the grace period ended: a client
//! that claims such a node to change it has changes which the others have not seen, though its applications were answered before.
//!
//! The next life of the server does not remember that either. So the store keeps the first number of this life's ranges, from
//! the moment at which something is learned: a client whose newest range is older was away for a whole life, and is fenced (ADR 66).

use crate::store::{ClientId, Store};
use crate::wire::{Hello, Ino};

use super::access::Access;
use super::fences::fence;

/// Notes that a session begins, whose first range begins at `first`. Its client is a latecomer if all ranges that it had before are of
/// lives before.
pub(super) fn note_return<S: Store>(
    access: &mut Access<S>,
    session: u64,
    first: u64,
    hello: &Hello,
) {
    let life = *access.returns.life_starts.get_or_insert(first);
    let client = ClientId(hello.client);
    let proven = hello
        .ranges
        .iter()
        .filter(|range| access.proofs.range(client, range.first, range.count) == **range);
    let newest = proven.map(|range| range.first).max();
    if newest.is_some_and(|newest| newest < access.returns.returns_from) {
        fence(access, client);
    }
    if let Some(session) = access.sessions.get_mut(session) {
        session.is_late = newest.is_some_and(|newest| newest < life);
    }
}

/// Notes that a client learns of a node as it is in the store.
pub(super) fn note_learned<S: Store>(access: &mut Access<S>, client: ClientId, ino: Ino) {
    if access.is_grace() {
        return;
    }
    access.returns.learned.insert(ino, client);
    if let Some(first) =
        access.returns.life_starts.filter(|first| *first > access.store.returns_from())
        && let Err(error) = access.store.set_returns_from(first)
    {
        access.break_down(error);
    }
}

/// Fences a latecomer that claims a node to change it, if another client has learned of the node.
pub(super) fn check_late_claim<S: Store>(access: &mut Access<S>, session: u64, ino: Ino) {
    let Some(session) = access.sessions.get(session).filter(|session| session.is_late) else {
        return;
    };
    if access.returns.learned.by_another(ino, session.client) {
        fence(access, session.client);
    }
}

/// Notes that a session learns of a node as it is in the store.
pub(super) fn reveal<S: Store>(access: &mut Access<S>, session: u64, ino: Ino) {
    let client = access.sessions.get(session).map(|session| session.client);
    if let Some(client) = client {
        note_learned(access, client, ino);
    }
    let Some(owner) = access.returns.abandoned.owner(ino) else { return };
    if client != Some(owner) {
        fence(access, owner);
    }
}
