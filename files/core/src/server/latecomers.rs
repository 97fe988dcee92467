//! Latecomers: clients that held leases before a restart of the server, and claimed none in the
//! grace period.
//!
//! The server does not store the leases of its previous life. It stores which nodes other clients
//! have learned of since the grace period ended: a client that claims such a node to change it has
//! unsent changes that the others have not seen, although its applications have received their
//! replies.
//!
//! The next life of the server does not have this table either. So once a client has learned of a
//! node, the store keeps the first number of this life's ranges: a client whose newest range is
//! older was away for a whole life, and is fenced.
//!
//! NFSv4 keeps a list of clients in stable storage instead (RFC 8881, section 8.4.3): a write per
//! session, and a list that grows. Leases in stable storage would be exact, at a write per lease;
//! voiding all late changes would cost every client its changes when a switch starts later than the
//! server. At most 65,536 nodes are remembered; beyond that all count.

use crate::store::{ClientId, Store};
use crate::wire::{Hello, Ino};

use super::access::Access;
use super::fences::fence;

/// Handles the start of a session whose first range starts at `first`. Its client is a latecomer if
/// all its earlier ranges are from previous lives.
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

/// Records that a client learns of a node in its stored state.
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

/// Records that a session learns of a node in its stored state.
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
