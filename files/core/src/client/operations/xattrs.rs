//! Extended attributes.

use crate::client::interface::operation::Reply;
use crate::client::link::calls::Purpose;
use crate::client::nodes::cache::Cache;
use crate::wire::{Errno, Ino, LeaseKind, Record, Response, SessionRequest};
use bytes::Bytes;

use super::lease::lease;
use super::turn::{Attempt, Turn, unexpected};

/// Returns a cached attribute; `None` if the server must be asked.
fn known_xattr(cache: &Cache, ino: Ino, name: &Bytes) -> Result<Option<Option<Bytes>>, Errno> {
    let node = cache.node(ino)?;
    Ok(match &node.xattrs {
        Some(all) => Some(all.get(name).cloned()),
        None if !node.attributes.has_xattrs => Some(None),
        None => None,
    })
}

pub(super) fn get_xattr(
    turn: &mut Turn<'_>,
    ino: Ino,
    name: &Bytes,
    response: Option<Response>,
) -> Attempt<Reply> {
    match response {
        Some(Response::Xattr(value)) => return Ok(Reply::Data(vec![value])),
        Some(other) => return Err(unexpected(&other)),
        None => {}
    }
    lease(turn, &[(ino, LeaseKind::Shared)])?;
    match known_xattr(turn.cache, ino, name)? {
        Some(Some(value)) => Ok(Reply::Data(vec![value])),
        Some(None) => Err(Errno::NODATA.into()),
        None => {
            turn.require_clean(ino)?;
            let (node, name) = (turn.cache.handle(ino)?, name.clone());
            Err(turn.request(SessionRequest::GetXattr { node, name }))
        }
    }
}

pub(super) fn list_xattrs(
    turn: &mut Turn<'_>,
    ino: Ino,
    response: Option<Response>,
) -> Attempt<Reply> {
    match response {
        Some(Response::Xattrs(names)) => return Ok(Reply::Names(names)),
        Some(other) => return Err(unexpected(&other)),
        None => {}
    }
    lease(turn, &[(ino, LeaseKind::Shared)])?;
    let node = turn.cache.node(ino)?;
    match &node.xattrs {
        Some(all) => Ok(Reply::Names(all.keys().cloned().collect())),
        None if !node.attributes.has_xattrs => Ok(Reply::Names(Vec::new())),
        None => {
            let node = node.handle;
            turn.require_clean(ino)?;
            Err(turn.wait_for(Purpose::Xattrs(ino), || SessionRequest::ListXattr { node }))
        }
    }
}

/// Sets an attribute. `flags` is: it must not exist; it must exist.
pub(super) fn set_xattr(
    turn: &mut Turn<'_>,
    ino: Ino,
    (name, value): (&Bytes, &Bytes),
    (create, replace): (bool, bool),
    response: Option<Response>,
) -> Attempt<Reply> {
    if turn.was_applied_alone()? {
        return Ok(forget_xattrs(turn.cache, ino));
    }
    turn.require_room(value.len())?;
    lease(turn, &[(ino, LeaseKind::Exclusive)])?;
    if !name.starts_with(b"user.") {
        return Err(Errno::OPNOTSUPP.into());
    }
    if create || replace {
        let exists = has_xattr(turn, ino, name, response)?;
        match (exists, create) {
            (true, true) => return Err(Errno::EXIST.into()),
            (false, false) => return Err(Errno::NODATA.into()),
            _ => {}
        }
    }
    let handle = turn.cache.handle(ino)?;
    let record = Record::SetXattr { node: handle, name: name.clone(), value: value.clone() };
    Err(turn.apply_alone(&[ino], record))
}

pub(super) fn remove_xattr(
    turn: &mut Turn<'_>,
    ino: Ino,
    name: &Bytes,
    response: Option<Response>,
) -> Attempt<Reply> {
    if turn.was_applied_alone()? {
        return Ok(forget_xattrs(turn.cache, ino));
    }
    turn.require_room(0)?;
    lease(turn, &[(ino, LeaseKind::Exclusive)])?;
    if !has_xattr(turn, ino, name, response)? {
        return Err(Errno::NODATA.into());
    }
    let handle = turn.cache.handle(ino)?;
    let record = Record::RemoveXattr { node: handle, name: name.clone() };
    Err(turn.apply_alone(&[ino], record))
}

/// Drops the cached attributes, which the server has changed.
fn forget_xattrs(cache: &mut Cache, ino: Ino) -> Reply {
    if let Some(node) = cache.get_mut(ino) {
        node.xattrs = None;
    }
    Reply::Done
}

fn has_xattr(
    turn: &mut Turn<'_>,
    ino: Ino,
    name: &Bytes,
    response: Option<Response>,
) -> Attempt<bool> {
    if let Some(known) = known_xattr(turn.cache, ino, name)? {
        return Ok(known.is_some());
    }
    match response {
        Some(Response::Xattr(_)) => Ok(true),
        Some(Response::Failed(crate::wire::Failure::Errno(Errno::NODATA))) => Ok(false),
        Some(other) => Err(unexpected(&other)),
        None => {
            turn.require_clean(ino)?;
            let (node, name) = (turn.cache.handle(ino)?, name.clone());
            Err(turn.request(SessionRequest::GetXattr { node, name }))
        }
    }
}
