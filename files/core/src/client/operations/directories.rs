//! Reading directories.

use crate::client::interface::operation::{DirectoryEntry, Reply};
use crate::client::nodes::cache::Cache;
use crate::client::nodes::directories::{Directories, Names};
use crate::wire::{Errno, Ino, LeaseKind, NodeKind};
use bytes::Bytes;

use super::entries::node_entry;
use super::lease::DEPTH;
use super::resolve::{ask_names, require_directory};
use super::turn::{Attempt, Turn};

pub(super) fn open_directory(
    cache: &Cache,
    directories: &mut Directories,
    ino: Ino,
) -> Attempt<Reply> {
    if !cache.node(ino)?.is_directory() {
        return Err(Errno::NOTDIR.into());
    }
    Ok(Reply::Opened { handle: directories.open(), keep_cache: false })
}

/// Reads names, as they were when the directory was opened or rewound.
pub(super) fn read_directory(
    turn: &mut Turn<'_>,
    directories: &mut Directories,
    ino: Ino,
    handle: u64,
    (offset, most, with_attributes): (u64, usize, bool),
) -> Attempt<Reply> {
    if directories.names(handle).is_none() || offset == 0 {
        let names = current_names(turn, ino)?;
        if !directories.set_names(handle, names) {
            return Err(Errno::STALE.into());
        }
    }
    let names = directories.names(handle).ok_or(Errno::STALE)?;
    let from = usize::try_from(offset).unwrap_or(usize::MAX).min(names.len());
    let part = &names[from..names.len().min(from.saturating_add(most))];
    let mut entries = Vec::with_capacity(part.len());
    for (index, (name, child)) in part.iter().enumerate() {
        let next = (from + index + 1) as u64;
        let dot = from + index < 2;
        let kind = match turn.cache.get(*child) {
            Some(node) => node.attributes.kind,
            None if dot => NodeKind::Directory,
            None => NodeKind::File,
        };
        let entry = if with_attributes && !dot && turn.cache.permits(*child, LeaseKind::Shared) {
            Some(node_entry(turn, Some(ino), *child)?)
        } else {
            None
        };
        entries.push(DirectoryEntry { name: name.clone(), node: *child, kind, next, entry });
    }
    Ok(Reply::Entries(entries))
}

/// Requires all names of a directory, and returns them behind `.` and `..`.
fn current_names(turn: &mut Turn<'_>, ino: Ino) -> Attempt<Names> {
    require_directory(turn, ino)?;
    let node = turn.cache.node(ino)?;
    if !node.names().complete {
        return Err(ask_names(turn, ino, DEPTH));
    }
    let above = node.parent.unwrap_or(ino);
    let dots = [(Bytes::from_static(b"."), ino), (Bytes::from_static(b".."), above)];
    let names = node.names().known.iter();
    let names = names.map(|(name, child)| (Bytes::copy_from_slice(name.as_bytes()), *child));
    Ok(dots.into_iter().chain(names).collect())
}
