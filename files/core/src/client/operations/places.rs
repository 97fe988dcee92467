//! Places of names, and changes of directories.

use crate::client::interface::effect::Invalidation;
use crate::client::interface::operation::Place;
use crate::client::nodes::cache::Cache;
use crate::client::nodes::node::Names;
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

/// Requires exclusive leases of a directory and of the node with one of its names.
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

/// Requires that a directory is empty, and that all its names are cached.
pub(super) fn require_empty(turn: &mut Turn<'_>, ino: Ino) -> Attempt<()> {
    let names = turn.cache.node(ino)?.names();
    if !names.known.is_empty() {
        return Err(Errno::NOTEMPTY.into());
    }
    if names.complete { Ok(()) } else { Err(ask_names(turn, ino, 1)) }
}

/// Changes names of a directory, and its times.
///
/// The kernel then drops the directory's attributes on its own, but considers a reply with
/// attributes newer if a thread processes it later (`fuse_dir_changed` counts no version, unlike
/// notifications).
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

/// Removes a subdirectory from the link count. The server's link counts are not relied on.
pub(super) fn lose_directory(cache: &mut Cache, parent: Ino) -> Result<(), Errno> {
    let attributes = &mut cache.node_mut(parent)?.attributes;
    attributes.links = attributes.links.saturating_sub(1);
    Ok(())
}

/// Adds a subdirectory to the link count.
pub(super) fn gain_directory(cache: &mut Cache, parent: Ino) -> Result<(), Errno> {
    let attributes = &mut cache.node_mut(parent)?.attributes;
    attributes.links = attributes.links.saturating_add(1);
    Ok(())
}

/// Removes a name from the link count of a node that is no directory.
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

/// Releases a node without a name: the server no longer needs to keep it for this client.
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
