//! Reading: path walks, attributes and contents.

use crate::rights::access::{EXECUTE, READ};
use crate::wire::frame::encode;
use crate::wire::{
    Attributes, Errno, FoundNode, Handle, Ino, LeaseKind, LookUp, NodeKind, NodeRange, PathStep,
    Response,
};
use bytes::Bytes;

use super::access::Access;
use super::attempt::Attempt;
use super::grants::{is_readable, offer};
use super::latecomers::reveal;
use super::queue::Needs;
use super::settings::MAX_INLINE;
use crate::store::Store;

/// Walks a path.
pub(super) fn look_up<S: Store>(
    access: &mut Access<S>,
    ticket: u64,
    session: u64,
    look_up: &LookUp,
) -> Attempt {
    if !access.is_valid(session, look_up.start) {
        return Attempt::failed(Errno::STALE);
    }
    let start = look_up.start.ino;
    let mut needs = Needs::from([(start, LeaseKind::Shared)]);
    if !is_readable(access, ticket, session, start) {
        return Attempt::Blocked(needs);
    }
    let attributes = match access.store.attributes(start) {
        Ok(attributes) => attributes,
        Err(errno) => return Attempt::failed(errno),
    };
    let mut found = vec![(start, attributes)];
    let mut end = None;
    for name in &look_up.path {
        let (directory, attributes) = found[found.len() - 1];
        if attributes.kind != NodeKind::Directory {
            end = Some(PathStep::Failed(Errno::NOTDIR));
            break;
        }
        if let Err(errno) = access.may(session, directory, EXECUTE) {
            end = Some(PathStep::Failed(errno));
            break;
        }
        match access.store.look_up(directory, name) {
            Ok(Some((ino, attributes))) => {
                needs.insert(ino, LeaseKind::Shared);
                if !is_readable(access, ticket, session, ino) {
                    return Attempt::Blocked(needs);
                }
                found.push((ino, attributes));
            }
            Ok(None) => {
                end = Some(PathStep::Absent);
                break;
            }
            Err(errno) => {
                end = Some(PathStep::Failed(errno));
                break;
            }
        }
    }
    let last = found.len() - 1;
    let entries = found.into_iter().enumerate().map(|(at, (ino, attributes))| {
        let is_target = at == last && end.is_none();
        let wanted = if is_target { look_up.lease } else { look_up.lease.min(LeaseKind::Shared) };
        let contents = if at == last {
            contents(access, session, ino, &attributes, look_up.inline.min(MAX_INLINE))
        } else {
            None
        };
        entry(access, ticket, session, ino, attributes, wanted, contents)
    });
    let mut entries = entries.collect::<Vec<_>>().into_iter();
    let Some(start) = entries.next() else { return Attempt::failed(Errno::STALE) };
    let steps = entries.map(PathStep::Found).chain(end).collect();
    Response::Found { start, steps }.into()
}

/// Makes an entry of a node that is readable, and grants a lease on it.
pub(super) fn entry<S: Store>(
    access: &mut Access<S>,
    ticket: u64,
    session: u64,
    ino: Ino,
    attributes: Attributes,
    wanted: LeaseKind,
    contents: Option<Bytes>,
) -> FoundNode {
    let wanted = access.permitted(session, &attributes, wanted);
    let lease = offer(access, ticket, session, ino, wanted);
    entry_with(access, session, ino, attributes, lease, contents)
}

/// Makes an entry with a lease that the session has.
pub(super) fn entry_with<S: Store>(
    access: &mut Access<S>,
    session: u64,
    ino: Ino,
    attributes: Attributes,
    lease: LeaseKind,
    contents: Option<Bytes>,
) -> FoundNode {
    reveal(access, session, ino);
    if let Some(session) = access.sessions.get_mut(session) {
        session.note(ino);
    }
    FoundNode { handle: access.proofs.handle(ino), attributes, lease, contents }
}

/// Returns the target of a link, or the contents of a file of at most `inline` bytes that the
/// session may read.
pub(super) fn contents<S: Store>(
    access: &mut Access<S>,
    session: u64,
    ino: Ino,
    attributes: &Attributes,
    inline: u32,
) -> Option<Bytes> {
    match attributes.kind {
        NodeKind::Symlink => access.store.target(ino).ok(),
        NodeKind::File if inline > 0 && attributes.size <= u64::from(inline) => {
            access.may_use(session, ino, READ).ok()?;
            let contents = access.store.read(ino, 0, inline).ok()?;
            // A file that grew since its attributes were read is left out.
            (contents.len() as u64 == attributes.size).then_some(contents)
        }
        _ => None,
    }
}

/// Reads ranges of files.
pub(super) fn read<S: Store>(
    access: &mut Access<S>,
    ticket: u64,
    session: u64,
    ranges: &[NodeRange],
) -> Attempt {
    if !ranges.iter().all(|range| access.is_valid(session, range.file)) {
        return Attempt::failed(Errno::STALE);
    }
    if !ranges.iter().all(|range| is_readable(access, ticket, session, range.file.ino)) {
        let needs = ranges.iter().map(|range| (range.file.ino, LeaseKind::Shared));
        return Attempt::Blocked(needs.collect());
    }
    let mut lengths = Vec::with_capacity(ranges.len());
    let mut payload = Vec::with_capacity(ranges.len());
    for range in ranges {
        let ino = range.file.ino;
        if let Err(errno) = access.may_use(session, ino, READ) {
            return Attempt::failed(errno);
        }
        reveal(access, session, ino);
        let read = access.store.read(ino, range.offset, range.length);
        let read = read.and_then(|bytes| Ok((bytes, access.store.attributes(ino)?.version)));
        match read {
            Ok((mut bytes, version)) => {
                bytes.truncate(range.length as usize);
                lengths.push((bytes.len() as u32, version));
                payload.push(bytes);
            }
            Err(errno) => return Attempt::failed(errno),
        }
    }
    Attempt::Done(encode(&Response::ReadDone(lengths)), payload)
}

/// Serves a request that reads one node, whose contents the session must be able to read.
pub(super) fn read_node<S: Store>(
    access: &mut Access<S>,
    ticket: u64,
    session: u64,
    node: Handle,
    read: impl FnOnce(&mut S, Ino) -> Result<Response, Errno>,
) -> Attempt {
    if !access.is_valid(session, node) {
        return Attempt::failed(Errno::STALE);
    }
    if !is_readable(access, ticket, session, node.ino) {
        return Attempt::Blocked(Needs::from([(node.ino, LeaseKind::Shared)]));
    }
    if let Err(errno) = access.may_use(session, node.ino, READ) {
        return Attempt::failed(errno);
    }
    reveal(access, session, node.ino);
    match read(&mut access.store, node.ino) {
        Ok(response) => response.into(),
        Err(errno) => Attempt::failed(errno),
    }
}
