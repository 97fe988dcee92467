//! Operations on attributes.

use crate::client::interface::operation::{AttributeChange, NewTime, Reply};
use crate::wire::{Errno, Ino, LeaseKind, NodeKind, Record, SetAttributes};

use super::entries::attributes_valid;
use super::lease::lease;
use super::turn::{Attempt, Turn};

pub(super) fn get_attributes(turn: &mut Turn<'_>, ino: Ino) -> Attempt<Reply> {
    // Also for a file without a name: other clients may have it open.
    lease(turn, &[(ino, LeaseKind::Shared)])?;
    let valid = attributes_valid(turn, ino);
    Ok(Reply::Attributes(ino, turn.cache.node(ino)?.attributes, valid))
}

pub(super) fn set_attributes(
    turn: &mut Turn<'_>,
    ino: Ino,
    change: &AttributeChange,
) -> Attempt<Reply> {
    turn.require_room(0)?;
    let is_removed_directory =
        turn.cache.node(ino)?.is_gone && turn.cache.node(ino)?.is_directory();
    if !is_removed_directory {
        lease(turn, &[(ino, LeaseKind::Exclusive)])?;
    }
    let node = turn.cache.node(ino)?;
    let kind = node.attributes.kind;
    if change.size.is_some() && kind != NodeKind::File {
        return Err((if kind == NodeKind::Directory { Errno::ISDIR } else { Errno::INVAL }).into());
    }
    let now = turn.clock.wall;
    let at = |time: Option<NewTime>| {
        time.map(|time| match time {
            NewTime::Now => now,
            NewTime::At(time) => time,
        })
    };
    let killed = change.kill_privileges.then(|| without_privileges(node.attributes.mode));
    let killed = killed.filter(|mode| *mode != node.attributes.mode);
    let mut set = SetAttributes {
        mode: change.mode.or(killed),
        uid: change.uid,
        gid: change.gid,
        size: change.size,
        atime: at(change.atime),
        mtime: at(change.mtime),
    };
    if set.size.is_some() && set.mtime.is_none() {
        set.mtime = Some(now);
    }
    apply_attributes(turn, ino, set)?;
    let valid = attributes_valid(turn, ino);
    Ok(Reply::Attributes(ino, turn.cache.node(ino)?.attributes, valid))
}

/// Sets attributes of a node whose exclusive lease the client has.
pub(super) fn apply_attributes(turn: &mut Turn<'_>, ino: Ino, set: SetAttributes) -> Attempt<()> {
    let number = turn.link.log.open_number();
    let node = turn.cache.node_mut(ino)?;
    let handle = node.handle;
    let attributes = &mut node.attributes;
    if let Some(size) = set.size {
        if size < attributes.size {
            node.contents.truncate(size);
            node.last_cut = number;
        } else {
            node.contents.extend(attributes.size);
        }
        attributes.size = size;
        attributes.blocks = attributes.blocks.min(size.div_ceil(512));
    }
    attributes.mode = set.mode.unwrap_or(attributes.mode);
    attributes.uid = set.uid.unwrap_or(attributes.uid);
    attributes.gid = set.gid.unwrap_or(attributes.gid);
    attributes.atime = set.atime.unwrap_or(attributes.atime);
    attributes.mtime = set.mtime.unwrap_or(attributes.mtime);
    if turn.cache.node(ino)?.is_gone {
        // Programs that have a removed directory open see the change until they close it.
        turn.cache.node_mut(ino)?.attributes.ctime = turn.clock.wall;
        return Ok(());
    }
    turn.record(&[ino], Record::SetAttributes { node: handle, set });
    Ok(())
}

/// Returns a mode without set-user-ID, and without set-group-ID unless that marks mandatory
/// locking.
pub(super) fn without_privileges(mode: u16) -> u16 {
    let setgid = if mode & 0o010 != 0 { 0o2000 } else { 0 };
    mode & !(0o4000 | setgid)
}
