//! Nodes as the kernel receives them, with the validity of names and attributes.

use std::time::Duration;

use crate::client::interface::operation::NodeEntry;
use crate::wire::{Ino, LeaseKind};

use super::turn::{Attempt, Turn};

/// Returns a node for the kernel, which gets one more reference to it.
pub(super) fn node_entry(
    turn: &mut Turn<'_>,
    directory: Option<Ino>,
    ino: Ino,
) -> Attempt<NodeEntry> {
    let name_valid = directory.map_or(Duration::ZERO, |ino| name_valid(turn, ino));
    let attributes_valid = attributes_valid(turn, ino);
    let node = turn.cache.node_mut(ino)?;
    node.references += 1;
    let attributes = node.attributes;
    Ok(NodeEntry { node: ino, attributes, name_valid, attributes_valid })
}

/// Returns how long the kernel may use names of a directory.
pub(super) fn name_valid(turn: &mut Turn<'_>, directory: Ino) -> Duration {
    let rest = turn.link.session.rest(turn.clock.now);
    let allowed = turn.link.session.settings.kernel_drops_names;
    match turn.cache.get_mut(directory) {
        Some(node) if allowed && node.recall.is_none() && node.lease > LeaseKind::None => {
            node.kernel_names = true;
            rest
        }
        _ => Duration::ZERO,
    }
}

/// Returns how long the kernel may use attributes of a node. Attributes of a dirty node change once
/// more, when the server has applied the change.
pub(super) fn attributes_valid(turn: &mut Turn<'_>, ino: Ino) -> Duration {
    let applied = turn.link.log.applied();
    match turn.cache.get_mut(ino) {
        Some(node)
            if node.recall.is_none() && node.lease > LeaseKind::None && !node.is_dirty(applied) =>
        {
            node.kernel_attributes |= node.is_directory();
            turn.link.session.rest(turn.clock.now)
        }
        _ => Duration::ZERO,
    }
}
