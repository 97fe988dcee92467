//! Intents: operations that an application is about to start, before they reach the client.

use apus_fs_core::client::{AttributeChange, Operation, Place};
use apus_fs_core::wire::{Ino, LockKind, LockOwner, LockRange, Name, NewNode};
use bytes::Bytes;

use crate::history::RenameMode;

/// Intended operation of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    LookUp((Ino, Name)),
    Create { at: (Ino, Name), is_directory: bool },
    CreateTemporary(Ino),
    Link { node: Ino, at: (Ino, Name) },
    Remove { at: (Ino, Name), is_directory: bool },
    Rename { from: (Ino, Name), to: (Ino, Name), mode: RenameMode },
    OpenDirectory(Ino),
    ReadDirectory { directory: Ino, handle: u64 },
    ReleaseDirectory { handle: u64 },
    Open(Ino),
    Release(Ino),
    Write { file: Ino, offset: u64, data: Bytes },
    Append { file: Ino, data: Bytes },
    Truncate { file: Ino, size: u64 },
    Read { file: Ino, offset: u64, length: u32 },
    Size(Ino),
    Sync(Ino),
    Lock { file: Ino, owner: LockOwner, kind: LockKind, range: LockRange, wait: bool },
}

fn place((directory, name): &(Ino, Name)) -> Place {
    Place { directory: *directory, name: name.clone() }
}

fn write(node: Ino, offset: u64, data: &Bytes, append: bool) -> Operation {
    let data = data.clone();
    Operation::Write { node, offset, data, append, from_cache: false, kill_privileges: false }
}

impl Intent {
    /// Returns the operation of the client.
    pub(super) fn operation(&self) -> Operation {
        match self {
            Self::LookUp(at) => Operation::LookUp(place(at)),
            Self::Create { at, is_directory } => Operation::Create {
                place: place(at),
                node: if *is_directory { NewNode::Directory } else { NewNode::File },
                mode: 0o755,
                open: !is_directory,
            },
            Self::CreateTemporary(directory) => {
                Operation::CreateTemporary { directory: *directory, mode: 0o600 }
            }
            Self::Link { node, at } => Operation::Link { node: *node, place: place(at) },
            Self::Remove { at, is_directory: true } => Operation::RemoveDirectory(place(at)),
            Self::Remove { at, is_directory: false } => Operation::Unlink(place(at)),
            Self::Rename { from, to, mode } => Operation::Rename {
                from: place(from),
                to: place(to),
                exchange: *mode == RenameMode::Exchange,
                no_replace: *mode == RenameMode::NoReplace,
            },
            Self::OpenDirectory(node) => Operation::OpenDirectory { node: *node },
            Self::ReadDirectory { directory, handle } => Operation::ReadDirectory {
                node: *directory,
                handle: *handle,
                offset: 0,
                most: 10_000,
                with_attributes: false,
            },
            Self::ReleaseDirectory { handle } => Operation::ReleaseDirectory { handle: *handle },
            Self::Open(node) => Operation::Open {
                node: *node,
                truncate: false,
                writable: true,
                kill_privileges: false,
            },
            Self::Release(node) => {
                Operation::Release { node: *node, writable: true, flock_owner: None }
            }
            Self::Write { file, offset, data } => write(*file, *offset, data, false),
            Self::Append { file, data } => write(*file, 0, data, true),
            Self::Truncate { file, size } => Operation::SetAttributes {
                node: *file,
                change: AttributeChange { size: Some(*size), ..AttributeChange::default() },
            },
            Self::Read { file, offset, length } => {
                Operation::Read { node: *file, offset: *offset, size: *length }
            }
            Self::Size(node) => Operation::GetAttributes { node: *node },
            Self::Sync(node) => Operation::Sync { node: *node },
            Self::Lock { file, owner, kind, range, wait } => Operation::Lock {
                node: *file,
                owner: *owner,
                kind: *kind,
                range: *range,
                wait: *wait,
            },
        }
    }

    /// Returns whether the operation changes files or names.
    pub(super) const fn is_change(&self) -> bool {
        match self {
            Self::Create { .. }
            | Self::CreateTemporary(_)
            | Self::Link { .. }
            | Self::Remove { .. }
            | Self::Rename { .. }
            | Self::Write { .. }
            | Self::Append { .. }
            | Self::Truncate { .. } => true,
            Self::LookUp(_)
            | Self::OpenDirectory(_)
            | Self::ReadDirectory { .. }
            | Self::ReleaseDirectory { .. }
            | Self::Open(_)
            | Self::Release(_)
            | Self::Read { .. }
            | Self::Size(_)
            | Self::Sync(_)
            | Self::Lock { .. } => false,
        }
    }
}
