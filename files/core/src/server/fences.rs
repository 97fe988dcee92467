//! Fencing: the changes of a client that returns too late are void (FSSERVE-15).

use super::access::Access;
use crate::store::{ClientId, Store};

/// Stores the nodes that the client of an ending session may have changed.
pub(super) fn abandon<S: Store>(access: &mut Access<S>, session: u64, client: ClientId) {
    let nodes = access.holdings.leases.exclusive(session);
    if !access.returns.abandoned.insert(client, nodes) {
        fence(access, client);
    }
}

/// Ends the return of a client: it has claimed all that it has.
pub(super) fn end_return<S: Store>(access: &mut Access<S>, session: u64) {
    let Some(session) = access.sessions.get_mut(session) else { return };
    (session.is_fenced, session.is_late) = (false, false);
    let client = session.client;
    access.returns.abandoned.forget(client);
    if access.store.is_fenced(client) {
        set_fenced(access, client, false);
    }
}

/// Declares the changes of a client void that it has not sent.
pub(super) fn fence<S: Store>(access: &mut Access<S>, client: ClientId) {
    access.returns.abandoned.forget(client);
    // The client may be returning at this moment.
    let session = access.sessions.of_client(client);
    if let Some(session) = session.and_then(|number| access.sessions.get_mut(number)) {
        session.is_fenced = true;
    }
    set_fenced(access, client, true);
}

fn set_fenced<S: Store>(access: &mut Access<S>, client: ClientId, is_fenced: bool) {
    if let Err(error) = access.store.set_fenced(client, is_fenced) {
        access.break_down(error);
    }
}
