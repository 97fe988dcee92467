//! Nodes: files, directories, links and special nodes.

use std::collections::BTreeMap;

use apus_fs_core::wire::{Attributes, Errno, Ino, Name, NewNode, NodeKind, Time, Version};
use bytes::Bytes;

use super::contents::Contents;

/// Reported size of a directory in bytes. Source: an ext4 directory of few names.
const DIRECTORY_SIZE: u64 = 4096;

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) body: Body,
    pub(super) mode: u16,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Number of names; of a directory: 2, and one for each directory in it.
    pub(super) links: u32,
    pub(super) atime: Time,
    pub(super) mtime: Time,
    pub(super) ctime: Time,
    pub(super) btime: Time,
    pub(super) version: Version,
    pub(super) xattrs: BTreeMap<Bytes, Bytes>,
    /// Whether it was created without a name, and may get its first name.
    pub(super) is_linkable: bool,
}

/// State specific to each kind of node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    File(Contents),
    Directory(Directory),
    Symlink(Bytes),
    Special { kind: NodeKind, device: u64 },
}

/// Names of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    pub(super) entries: BTreeMap<Name, Ino>,
    /// The directory that contains it; the root contains itself.
    pub(super) parent: Ino,
}

impl Body {
    /// Returns the body of a new node.
    pub(super) fn new(node: &NewNode, parent: Ino) -> Result<Self, Errno> {
        match node {
            NewNode::File => Ok(Self::File(Contents::default())),
            NewNode::Directory => {
                Ok(Self::Directory(Directory { entries: BTreeMap::new(), parent }))
            }
            NewNode::Symlink { target } => Ok(Self::Symlink(target.clone())),
            NewNode::Special { kind, device } => match kind {
                NodeKind::File | NodeKind::Directory | NodeKind::Symlink => Err(Errno::INVAL),
                NodeKind::Fifo
                | NodeKind::Socket
                | NodeKind::CharacterDevice
                | NodeKind::BlockDevice => Ok(Self::Special { kind: *kind, device: *device }),
            },
        }
    }
}

impl Node {
    pub(super) const fn is_directory(&self) -> bool {
        matches!(self.body, Body::Directory(_))
    }

    pub(super) fn directory(&self) -> Result<&Directory, Errno> {
        match &self.body {
            Body::Directory(directory) => Ok(directory),
            Body::File(_) | Body::Symlink(_) | Body::Special { .. } => Err(Errno::NOTDIR),
        }
    }

    pub(super) fn directory_mut(&mut self) -> Result<&mut Directory, Errno> {
        match &mut self.body {
            Body::Directory(directory) => Ok(directory),
            Body::File(_) | Body::Symlink(_) | Body::Special { .. } => Err(Errno::NOTDIR),
        }
    }

    pub(super) fn contents(&self) -> Result<&Contents, Errno> {
        match &self.body {
            Body::File(contents) => Ok(contents),
            Body::Directory(_) => Err(Errno::ISDIR),
            Body::Symlink(_) | Body::Special { .. } => Err(Errno::INVAL),
        }
    }

    pub(super) fn contents_mut(&mut self) -> Result<&mut Contents, Errno> {
        match &mut self.body {
            Body::File(contents) => Ok(contents),
            Body::Directory(_) => Err(Errno::ISDIR),
            Body::Symlink(_) | Body::Special { .. } => Err(Errno::INVAL),
        }
    }

    /// Returns the attributes.
    pub(super) fn attributes(&self) -> Attributes {
        let (kind, size, blocks, device) = match &self.body {
            Body::File(contents) => (NodeKind::File, contents.size(), contents.blocks(), 0),
            Body::Directory(_) => (NodeKind::Directory, DIRECTORY_SIZE, DIRECTORY_SIZE / 512, 0),
            Body::Symlink(target) => (NodeKind::Symlink, target.len() as u64, 0, 0),
            Body::Special { kind, device } => (*kind, 0, 0, *device),
        };
        Attributes {
            has_xattrs: !self.xattrs.is_empty(),
            kind,
            mode: self.mode,
            links: self.links,
            uid: self.uid,
            gid: self.gid,
            device,
            size,
            blocks,
            atime: self.atime,
            mtime: self.mtime,
            ctime: self.ctime,
            btime: Some(self.btime),
            version: self.version,
        }
    }
}
