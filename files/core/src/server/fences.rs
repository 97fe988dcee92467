//! Fencing: a client that comes back too late does not bring its changes (FSSERVE-15).

use crate::wire::Ino;

use super::Server;
use crate::store::{ClientId, Store};

impl<S: Store> Server<S> {
    /// Remembers what the client of a session that ends may have changed.
    pub(super) fn abandon(&mut self, session: u64, client: ClientId) {
        let nodes = self.leases.exclusive(session);
        if !self.abandoned.insert(client, nodes) {
            self.fence(client);
        }
    }

    /// Notes that a session learns of a node as it is in the store.
    pub(super) fn reveal(&mut self, session: u64, ino: Ino) {
        let client = self.sessions.get(session).map(|session| session.client);
        if let Some(client) = client {
            self.note_learned(client, ino);
        }
        let Some(owner) = self.abandoned.owner(ino) else { return };
        if client != Some(owner) {
            self.fence(owner);
        }
    }

    /// Ends the return of a client: it has claimed all that it has.
    pub(super) fn end_return(&mut self, session: u64) {
        let Some(session) = self.sessions.get_mut(session) else { return };
        (session.is_fenced, session.is_late) = (false, false);
        let client = session.client;
        self.abandoned.forget(client);
        if self.store.is_fenced(client) {
            self.set_fenced(client, false);
        }
    }

    /// Declares the changes of a client void that it has not sent.
    pub(super) fn fence(&mut self, client: ClientId) {
        self.abandoned.forget(client);
        // It may be on its way back.
        let session = self.sessions.of_client(client);
        if let Some(session) = session.and_then(|number| self.sessions.get_mut(number)) {
            session.is_fenced = true;
        }
        self.set_fenced(client, true);
    }

    fn set_fenced(&mut self, client: ClientId, is_fenced: bool) {
        if let Err(error) = self.store.set_fenced(client, is_fenced) {
            self.is_broken = true;
            self.store_error = Some(error);
        }
    }
}
