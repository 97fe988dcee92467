//! Replies of the core in the form that the kernel expects.

use std::io::IoSlice;
use std::time::Duration;

use apus_fs_core::client::{DirectoryEntry, Reply};
use apus_fs_core::wire::{Ino, LockConflict, LockKind};
use apus_fuse::codec::{Directory, Entry, FileLock, OpenFlags, Opened, Reply as Answer, Timestamp};
use apus_fuse::{Errno, ReplyError, Session};
use bytes::Bytes;

use super::attributes::{attributes, entry, statfs, timestamp, type_bits};

/// Kinds of locks as the kernel numbers them.
const F_RDLCK: u32 = 0;
const F_WRLCK: u32 = 1;
const F_UNLCK: u32 = 2;

/// The form of a reply, as far as its request decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// The reply determines its form.
    Plain,
    /// Attributes with the time of creation.
    Statx,
    /// A file is opened.
    Open {
        /// It can be written.
        writable: bool,
    },
    /// A directory is opened.
    OpenDirectory,
    /// Data of at most `room` bytes; 0 requests its length.
    Sized {
        /// Room in bytes.
        room: u32,
    },
    /// As many names as fit in `room` bytes.
    Directory {
        /// Room in bytes.
        room: u32,
        /// With attributes and references.
        plus: bool,
    },
    /// A conflicting lock, or none.
    Lock {
        /// The requested lock.
        wanted: FileLock,
    },
}

/// Sends a reply. Returns the nodes whose reference in the reply the kernel did not take (FSRUN-3).
pub(super) fn send(session: &Session, unique: u64, shape: Shape, reply: &Reply) -> Vec<Ino> {
    if let (Reply::Entries(entries), Shape::Directory { room, plus }) = (reply, shape) {
        return send_names(session, unique, room, plus, entries);
    }
    let sent = send_one(session, unique, shape, reply);
    match reply {
        Reply::Entry(entry) | Reply::Created(entry) if sent.is_err() => vec![entry.node],
        _ => Vec::new(),
    }
}

/// Returns the nodes that a reply references, for a reply that no request waits for any more.
pub(super) fn references(reply: &Reply) -> Vec<Ino> {
    match reply {
        Reply::Entry(entry) | Reply::Created(entry) => vec![entry.node],
        Reply::Entries(entries) => entries.iter().filter_map(reference).collect(),
        _ => Vec::new(),
    }
}

fn reference(entry: &DirectoryEntry) -> Option<Ino> {
    entry.entry.as_ref().map(|entry| entry.node)
}

fn send_one(session: &Session, unique: u64, shape: Shape, reply: &Reply) -> Result<(), ReplyError> {
    let send = |answer: &Answer<'_>| session.reply(unique, answer);
    match reply {
        Reply::Done => send(&Answer::Empty),
        Reply::Entry(found) => send(&Answer::Entry(&entry(found))),
        Reply::Absent(valid) => send(&Answer::Entry(&Entry::absent(*valid))),
        Reply::Attributes(node, found, timeout) => {
            let attributes = &attributes(*node, found);
            match shape {
                Shape::Statx => {
                    let created: Option<Timestamp> = found.btime.map(timestamp);
                    send(&Answer::Statx { attributes, created, timeout: *timeout })
                }
                _ => send(&Answer::Attributes(attributes, *timeout)),
            }
        }
        Reply::Opened { handle, keep_cache } => {
            let mut flags = open_flags(shape);
            flags.set(OpenFlags::KEEP_CACHE, *keep_cache);
            flags.set(OpenFlags::CACHE_DIR, *keep_cache && shape == Shape::OpenDirectory);
            send(&Answer::Opened(Opened { handle: *handle, flags }))
        }
        Reply::Created(new) => {
            let flags = open_flags(shape) | OpenFlags::KEEP_CACHE;
            let opened = Opened { handle: 0, flags };
            send(&Answer::Created(&entry(new), opened))
        }
        Reply::Data(pieces) => match shape {
            Shape::Sized { room } => send_sized(session, unique, room, &pieces.concat()),
            _ => send(&Answer::Pieces(&slices(pieces))),
        },
        Reply::Names(names) => {
            let list: Vec<u8> = names.iter().flat_map(|name| [name, &b"\0"[..]].concat()).collect();
            let room = if let Shape::Sized { room } = shape { room } else { u32::MAX };
            send_sized(session, unique, room, &list)
        }
        Reply::Written(length) => send(&Answer::Written(*length)),
        Reply::Space(space) => send(&Answer::Statfs(&statfs(space))),
        Reply::Conflict(conflict) => send(&Answer::Lock(lock(shape, conflict.as_ref()))),
        Reply::Position(position) => send(&Answer::Offset(*position)),
        Reply::Copied(length) => send(&Answer::Copied(*length)),
        // Only requests for names are replied to with names.
        Reply::Entries(_) => session.fail(unique, Errno::IO),
    }
}

/// A writable file bypasses the kernel's cache: other programs of this host would read the new
/// bytes from it before the write has its lease, and then the old bytes again. Writes take one
/// request either way.
fn open_flags(shape: Shape) -> OpenFlags {
    match shape {
        Shape::Open { writable: true } => OpenFlags::DIRECT_IO,
        _ => OpenFlags::empty(),
    }
}

fn slices(pieces: &[Bytes]) -> Vec<IoSlice<'_>> {
    pieces.iter().map(|piece| IoSlice::new(piece)).collect()
}

/// Sends the data if the request has room for it, or its length.
fn send_sized(session: &Session, unique: u64, room: u32, data: &[u8]) -> Result<(), ReplyError> {
    match room as usize {
        0 => session.reply(unique, &Answer::XattrSize(data.len() as u32)),
        room if room < data.len() => session.fail(unique, Errno::RANGE),
        _ => session.reply(unique, &Answer::Data(data)),
    }
}

/// Sends the names that fit, and returns the nodes of the others.
fn send_names(
    session: &Session,
    unique: u64,
    room: u32,
    plus: bool,
    entries: &[DirectoryEntry],
) -> Vec<Ino> {
    let mut directory = Directory::new(room);
    let fits = |found: &&DirectoryEntry| push(&mut directory, found, plus);
    let taken = entries.iter().take_while(fits).count();
    let sent = session.reply(unique, &Answer::Data(directory.bytes()));
    let left = if sent.is_ok() { &entries[taken..] } else { entries };
    left.iter().filter_map(reference).collect()
}

/// Adds a name. Returns whether there was room.
fn push(directory: &mut Directory, found: &DirectoryEntry, plus: bool) -> bool {
    let mode = type_bits(found.kind);
    let pushed = if plus {
        let known = found.entry.as_ref().map(entry);
        directory.push_plus(&known.unwrap_or_else(|| bare(found, mode)), found.next, &found.name)
    } else {
        directory.push(found.node.0, found.next, mode, &found.name)
    };
    pushed.is_ok()
}

/// An entry without attributes: the kernel gets its kind, and takes no reference.
fn bare(found: &DirectoryEntry, mode: u32) -> Entry {
    let mut entry = Entry::absent(Duration::ZERO);
    (entry.attributes.inode, entry.attributes.mode) = (found.node.0, mode);
    entry
}

/// The lock that conflicts with the requested one, if any. The process that has it runs on another
/// host.
fn lock(shape: Shape, conflict: Option<&LockConflict>) -> FileLock {
    let Some(conflict) = conflict else {
        let free = FileLock { start: 0, end: i64::MAX as u64, kind: F_UNLCK, process: 0 };
        return match shape {
            Shape::Lock { wanted } => FileLock { kind: F_UNLCK, ..wanted },
            _ => free,
        };
    };
    let kind = match conflict.kind {
        LockKind::Read => F_RDLCK,
        LockKind::Write => F_WRLCK,
        LockKind::Unlock => F_UNLCK,
    };
    let end = conflict.range.end.min(i64::MAX as u64);
    FileLock { start: conflict.range.start, end, kind, process: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_fs_core::wire::{LockRange, NodeKind};

    fn found(name: &'static [u8]) -> DirectoryEntry {
        let (name, node) = (Bytes::from_static(name), Ino(5));
        DirectoryEntry { name, node, kind: NodeKind::File, next: 1, entry: None }
    }

    #[test]
    fn names_are_added_while_there_is_room() {
        let mut directory = Directory::new(64);
        assert!(push(&mut directory, &found(b"a"), false));
        assert!(push(&mut directory, &found(b"b"), false));
        assert!(!push(&mut directory, &found(b"c"), false));
        assert_eq!(directory.bytes().len(), 64);
    }

    #[test]
    fn a_name_without_attributes_gives_no_reference() {
        assert_eq!(references(&Reply::Entries(vec![found(b"a")])), []);
        let entry = bare(&found(b"."), 0o040_000);
        assert_eq!((entry.node, entry.attributes.inode), (0, 5));
    }

    #[test]
    fn a_conflict_ends_within_the_kernels_numbers() {
        let range = LockRange { start: 3, end: u64::MAX };
        let conflict = LockConflict { kind: LockKind::Write, range };
        let shown = lock(Shape::Plain, Some(&conflict));
        assert_eq!((shown.start, shown.end, shown.kind), (3, i64::MAX as u64, F_WRLCK));
        let wanted = FileLock { start: 1, end: 2, kind: F_WRLCK, process: 9 };
        assert_eq!(lock(Shape::Lock { wanted }, None), FileLock { kind: F_UNLCK, ..wanted });
    }
}
