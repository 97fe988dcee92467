//! Lookups, links and removals of names.

use crate::client::interface::operation::{Place, Reply};
use crate::client::nodes::cancellation::cancel_creation;
use crate::wire::{Errno, Ino, LeaseKind, NodeKind, Record};

use super::entries::{name_valid, node_entry};
use super::lease::{ask_node, lease};
use super::places::{
    change_directory, drop_link, free_place, lose_directory, require_empty, taken_place,
};
use super::resolve::resolve;
use super::turn::{Attempt, Turn};

/// Maximum number of links to a file. Source: ext4 has 65,000, others more; the server's file
/// system decides finally.
pub(super) const MOST_LINKS: u32 = 65_000;

pub(super) fn look_up(turn: &mut Turn<'_>, place: &Place) -> Attempt<Reply> {
    match resolve(turn, place.directory, &place.name)? {
        Some(ino) => Ok(Reply::Entry(node_entry(turn, Some(place.directory), ino)?)),
        None => Ok(Reply::Absent(name_valid(turn, place.directory))),
    }
}

pub(super) fn unlink(turn: &mut Turn<'_>, place: &Place) -> Attempt<Reply> {
    turn.require_room(0)?;
    let ino = taken_place(turn, place)?;
    if turn.cache.node(ino)?.is_directory() {
        return Err(Errno::ISDIR.into());
    }
    let (parent, node) = (turn.cache.handle(place.directory)?, turn.cache.handle(ino)?);
    if cancel_creation(&mut turn.link.log, turn.cache, place.directory, ino) {
        change_directory(turn, place.directory, |names| names.remove(&place.name));
        return Ok(Reply::Done);
    }
    let name = place.name.clone();
    turn.record(&[ino, place.directory], Record::Unlink { parent, name, node });
    change_directory(turn, place.directory, |names| names.remove(&place.name));
    drop_link(turn, ino);
    Ok(Reply::Done)
}

pub(super) fn remove_directory(turn: &mut Turn<'_>, place: &Place) -> Attempt<Reply> {
    turn.require_room(0)?;
    let ino = taken_place(turn, place)?;
    if !turn.cache.node(ino)?.is_directory() {
        return Err(Errno::NOTDIR.into());
    }
    require_empty(turn, ino)?;
    let (parent, node) = (turn.cache.handle(place.directory)?, turn.cache.handle(ino)?);
    let name = place.name.clone();
    let record = Record::RemoveDirectory { parent, name, node };
    turn.record(&[ino, place.directory], record);
    change_directory(turn, place.directory, |names| names.remove(&place.name));
    lose_directory(turn.cache, place.directory)?;
    turn.cache.node_mut(ino)?.become_removed();
    Ok(Reply::Done)
}

pub(super) fn link(turn: &mut Turn<'_>, ino: Ino, place: &Place) -> Attempt<Reply> {
    turn.require_room(0)?;
    if turn.cache.node(ino)?.is_gone {
        return Err(Errno::NOENT.into());
    }
    let node = turn.cache.node(ino)?;
    // A node that has lost its last name does not get another one.
    if node.attributes.links == 0 && !node.is_nameless && !node.is_directory() {
        return Err(Errno::NOENT.into());
    }
    free_place(turn, place)?;
    let wanted = [(place.directory, LeaseKind::Exclusive), (ino, LeaseKind::Exclusive)];
    lease(turn, &wanted)?;
    free_place(turn, place)?;
    let node = turn.cache.node(ino)?;
    if node.is_directory() {
        return Err(Errno::PERM.into());
    }
    // A node that has lost its last name cannot get one again, but one that was created without a
    // name can.
    if node.attributes.links == 0 && !node.is_nameless {
        return Err(Errno::NOENT.into());
    }
    if node.attributes.links >= MOST_LINKS {
        return Err(Errno::MLINK.into());
    }
    let (node, parent) = (node.handle, turn.cache.handle(place.directory)?);
    let record = Record::Link { node, parent, name: place.name.clone() };
    turn.record(&[ino, place.directory], record);
    change_directory(turn, place.directory, |names| names.put(place.name.clone(), ino));
    let node = turn.cache.node_mut(ino)?;
    node.attributes.links = node.attributes.links.saturating_add(1);
    (node.is_orphan, node.is_nameless) = (false, false);
    node.parent = Some(place.directory);
    Ok(Reply::Entry(node_entry(turn, Some(place.directory), ino)?))
}

pub(super) fn read_link(turn: &mut Turn<'_>, ino: Ino) -> Attempt<Reply> {
    let node = turn.cache.node(ino)?;
    if node.attributes.kind != NodeKind::Symlink {
        return Err(Errno::INVAL.into());
    }
    match &node.target {
        Some(target) => Ok(Reply::Data(vec![target.as_ref().clone()])),
        None => Err(ask_node(turn, ino)),
    }
}
