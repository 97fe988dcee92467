//! Extended attributes.

use crate::wire::{Errno, Ino, LeaseKind, Record, Response, SessionRequest};
use bytes::Bytes;

use super::{Turn, unexpected};
use crate::client::calls::Purpose;
use crate::client::operation::Reply;
use crate::client::{Attempt, Client};

impl Client {
    /// Returns an attribute as far as it is known without asking: `None` if it is not known.
    fn known_xattr(&self, ino: Ino, name: &Bytes) -> Result<Option<Option<Bytes>>, Errno> {
        let node = self.node(ino)?;
        Ok(match &node.xattrs {
            Some(all) => Some(all.get(name).cloned()),
            None if !node.attributes.has_xattrs => Some(None),
            None => None,
        })
    }

    pub(super) fn get_xattr(
        &mut self,
        turn: &Turn,
        ino: Ino,
        name: &Bytes,
        response: Option<Response>,
    ) -> Attempt<Reply> {
        match response {
            Some(Response::Xattr(value)) => return Ok(Reply::Data(vec![value])),
            Some(other) => return Err(unexpected(&other)),
            None => {}
        }
        self.lease(turn, &[(ino, LeaseKind::Shared)])?;
        match self.known_xattr(ino, name)? {
            Some(Some(value)) => Ok(Reply::Data(vec![value])),
            Some(None) => Err(Errno::NODATA.into()),
            None => {
                self.clean(turn, ino)?;
                let (node, name) = (self.handle(ino)?, name.clone());
                Err(self.ask(turn, SessionRequest::GetXattr { node, name }))
            }
        }
    }

    pub(super) fn list_xattrs(
        &mut self,
        turn: &Turn,
        ino: Ino,
        response: Option<Response>,
    ) -> Attempt<Reply> {
        match response {
            Some(Response::Xattrs(names)) => return Ok(Reply::Names(names)),
            Some(other) => return Err(unexpected(&other)),
            None => {}
        }
        self.lease(turn, &[(ino, LeaseKind::Shared)])?;
        let node = self.node(ino)?;
        match &node.xattrs {
            Some(all) => Ok(Reply::Names(all.keys().cloned().collect())),
            None if !node.attributes.has_xattrs => Ok(Reply::Names(Vec::new())),
            None => {
                let node = node.handle;
                self.clean(turn, ino)?;
                Err(self.wait_for(&turn.clock, turn.token, Purpose::Xattrs(ino), |_| {
                    SessionRequest::ListXattr { node }
                }))
            }
        }
    }

    /// Sets an attribute. `flags` is: it must not exist; it must exist.
    pub(super) fn set_xattr(
        &mut self,
        turn: &Turn,
        ino: Ino,
        (name, value): (&Bytes, &Bytes),
        (create, replace): (bool, bool),
        response: Option<Response>,
    ) -> Attempt<Reply> {
        if self.was_applied_alone(turn)? {
            return Ok(self.changed_at_server(ino));
        }
        self.room(turn, value.len())?;
        self.lease(turn, &[(ino, LeaseKind::Exclusive)])?;
        if !name.starts_with(b"user.") {
            return Err(Errno::OPNOTSUPP.into());
        }
        if create || replace {
            let exists = self.has_xattr(turn, ino, name, response)?;
            match (exists, create) {
                (true, true) => return Err(Errno::EXIST.into()),
                (false, false) => return Err(Errno::NODATA.into()),
                _ => {}
            }
        }
        let handle = self.handle(ino)?;
        let record = Record::SetXattr { node: handle, name: name.clone(), value: value.clone() };
        Err(self.apply_alone(turn, &[ino], record))
    }

    pub(super) fn remove_xattr(
        &mut self,
        turn: &Turn,
        ino: Ino,
        name: &Bytes,
        response: Option<Response>,
    ) -> Attempt<Reply> {
        if self.was_applied_alone(turn)? {
            return Ok(self.changed_at_server(ino));
        }
        self.room(turn, 0)?;
        self.lease(turn, &[(ino, LeaseKind::Exclusive)])?;
        if !self.has_xattr(turn, ino, name, response)? {
            return Err(Errno::NODATA.into());
        }
        let handle = self.handle(ino)?;
        let record = Record::RemoveXattr { node: handle, name: name.clone() };
        Err(self.apply_alone(turn, &[ino], record))
    }

    /// The server has changed attributes: they are asked for again.
    fn changed_at_server(&mut self, ino: Ino) -> Reply {
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.xattrs = None;
        }
        Reply::Done
    }

    fn has_xattr(
        &mut self,
        turn: &Turn,
        ino: Ino,
        name: &Bytes,
        response: Option<Response>,
    ) -> Attempt<bool> {
        if let Some(known) = self.known_xattr(ino, name)? {
            return Ok(known.is_some());
        }
        match response {
            Some(Response::Xattr(_)) => Ok(true),
            Some(Response::Failed(crate::wire::Failure::Errno(Errno::NODATA))) => Ok(false),
            Some(other) => Err(unexpected(&other)),
            None => {
                self.clean(turn, ino)?;
                let (node, name) = (self.handle(ino)?, name.clone());
                Err(self.ask(turn, SessionRequest::GetXattr { node, name }))
            }
        }
    }
}
