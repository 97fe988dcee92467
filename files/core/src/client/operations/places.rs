//! Places of names, and changes of directories.

use crate::client::cache::Cache;
use crate::client::effect::Invalidation;
use crate::client::node::Names;
use crate::client::operation::Place;
use crate::wire::{Errno, Ino, LeaseKind, Record};

use super::lease::lease;
use super::resolve::{ask_names, resolve};
use super::turn::{Attempt, Turn};

/// Requires that a name does not exist, in a directory that may be changed.
pub(super) fn free_place(turn: &mut Turn<'_>, place: &Place) -> Attempt<()> {
    if resolve(turn, place.directory, &place.name)?.is_some() {
        return Err(Errno::EXIST.into());
    }
    lease(turn, &[(place.directory, LeaseKind::Exclusive)])?;
    if turn.cache.node(place.directory)?.attributes.links == 0 {
        return Err(Errno::NOENT.into());
    }
    // The lease may have been granted after another client has changed the directory.
    match resolve(turn, place.directory, &place.name)? {
        Some(_) => Err(Errno::EXIST.into()),
        None => Ok(()),
    }
}

/// Requires exclusive leases of a directory and of what one of its names leads to.
pub(super) fn taken_place(turn: &mut Turn<'_>, place: &Place) -> Attempt<Ino> {
    let Some(ino) = resolve(turn, place.directory, &place.name)? else {
        return Err(Errno::NOENT.into());
    };
    lease(turn, &[(place.directory, LeaseKind::Exclusive), (ino, LeaseKind::Exclusive)])?;
    match resolve(turn, place.directory, &place.name)? {
        Some(now) if now == ino => Ok(ino),
        Some(_) => taken_place(turn, place),
        None => Err(Errno::NOENT.into()),
    }
}

/// Requires that all names of a directory are known, and that there are none.
pub(super) fn require_empty(turn: &mut Turn<'_>, ino: Ino) -> Attempt<()> {
    let names = turn.cache.node(ino)?.names();
    if !names.known.is_empty() {
        return Err(Errno::NOTEMPTY.into());
    }
    if names.complete { Ok(()) } else { Err(ask_names(turn, ino, 1)) }
}

/// Changes names of a directory, and its times.
///
/// The kernel drops the directory's attributes by itself then, but takes a reply with attributes for newer if a thread gets round
/// to it later (`fuse_dir_changed` counts no version, as notifications do).
pub(super) fn change_directory(
    turn: &mut Turn<'_>,
    directory: Ino,
    change: impl FnOnce(&mut Names),
) {
    if let Some(node) = turn.cache.get_mut(directory) {
        change(node.names_mut());
        node.attributes.mtime = turn.clock.wall;
        if std::mem::take(&mut node.kernel_attributes) {
            turn.link.output.invalidate(vec![Invalidation::Node { node: directory, data: false }]);
        }
    }
}

/// A directory has one directory less. What the server says of the number of links is not relied on.
pub(super) fn lose_directory(cache: &mut Cache, parent: Ino) -> Result<(), Errno> {
    let attributes = &mut cache.node_mut(parent)?.attributes;
    attributes.links = attributes.links.saturating_sub(1);
    Ok(())
}

/// A directory has one directory more.
pub(super) fn gain_directory(cache: &mut Cache, parent: Ino) -> Result<(), Errno> {
    let attributes = &mut cache.node_mut(parent)?.attributes;
    attributes.links = attributes.links.saturating_add(1);
    Ok(())
}

/// A node that is no directory has lost a name.
pub(super) fn drop_link(turn: &mut Turn<'_>, ino: Ino) {
    let Some(node) = turn.cache.get_mut(ino) else { return };
    node.attributes.links = node.attributes.links.saturating_sub(1);
    if node.attributes.links == 0 {
        node.is_orphan = true;
        if node.openings == 0 {
            close_orphan(turn, ino);
        }
    }
}

/// Tells the server that it need not keep a node without a name for this client any more.
pub(super) fn close_orphan(turn: &mut Turn<'_>, ino: Ino) {
    let Ok(node) = turn.cache.handle(ino) else { return };
    // No change of the node: it may be gone at the server before this is there.
    turn.record(&[], Record::Close { node });
    let number = turn.link.log.last_number();
    if let Some(node) = turn.cache.get_mut(ino) {
        node.is_orphan = false;
        node.closed_in = number;
    }
}
