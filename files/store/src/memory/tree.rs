//! The tree of nodes, and the records that change nodes. Records that change names are in
//! `names.rs`.

use std::collections::{BTreeMap, BTreeSet};

use apus_fs_core::wire::{
    AllocateMode, Attributes, Data, Errno, Ino, Name, Record, SetAttributes, Time, Version,
};
use bytes::Bytes;

use super::node::{Body, Directory, Node};
use apus_fs_core::wire::NodeKind;

/// Second at which the clock of ctimes starts: in 2023, so that times are plausible.
const FIRST_SECOND: i64 = 1_700_000_000;

/// All nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) nodes: BTreeMap<Ino, Node>,
    /// Nodes without a name.
    pub(super) orphans: BTreeSet<Ino>,
    /// Numbers of deleted nodes.
    pub(super) gone: BTreeSet<Ino>,
    /// Number of changes: the clock, and the source of versions.
    pub(super) changes: u64,
}

/// Nodes that records have changed.
#[derive(Debug, Default)]
pub(super) struct Touched {
    pub(super) changed: BTreeSet<Ino>,
    pub(super) orphaned: Vec<Ino>,
}

impl Tree {
    /// Returns a tree that has an empty root.
    pub(super) fn new() -> Self {
        let mut tree = Self {
            nodes: BTreeMap::new(),
            orphans: BTreeSet::new(),
            gone: BTreeSet::new(),
            changes: 1,
        };
        let root = Directory { entries: BTreeMap::new(), parent: Ino::ROOT };
        let root = tree.node(Body::Directory(root), 0o755, (0, 0), tree.now());
        tree.nodes.insert(Ino::ROOT, root);
        tree
    }

    /// Returns the time of the last change.
    pub(super) const fn now(&self) -> Time {
        Time {
            seconds: FIRST_SECOND + (self.changes / 1_000_000_000) as i64,
            nanoseconds: (self.changes % 1_000_000_000) as u32,
        }
    }

    /// Returns a new node, without a name yet.
    pub(super) fn node(&self, body: Body, mode: u16, owner: (u32, u32), time: Time) -> Node {
        let links = if matches!(body, Body::Directory(_)) { 2 } else { 1 };
        Node {
            body,
            mode,
            uid: owner.0,
            gid: owner.1,
            links,
            atime: time,
            mtime: time,
            ctime: self.now(),
            btime: self.now(),
            version: Version { change: self.changes, data: self.changes },
            xattrs: BTreeMap::new(),
            is_linkable: false,
        }
    }

    pub(super) fn get(&self, node: Ino) -> Result<&Node, Errno> {
        self.nodes.get(&node).ok_or(Errno::STALE)
    }

    pub(super) fn get_mut(&mut self, node: Ino) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&node).ok_or(Errno::STALE)
    }

    pub(super) fn attributes(&self, node: Ino) -> Result<Attributes, Errno> {
        Ok(self.get(node)?.attributes())
    }

    /// Returns the node that has a name.
    pub(super) fn entry(&self, directory: Ino, name: &Name) -> Result<Option<Ino>, Errno> {
        Ok(self.get(directory)?.directory()?.entries.get(name).copied())
    }

    /// Notes a change of a node: of its attributes or names, or of its contents also.
    pub(super) fn touch(&mut self, node: Ino, is_data: bool, touched: &mut Touched) {
        self.changes += 1;
        let (now, changes) = (self.now(), self.changes);
        if let Some(changed) = self.nodes.get_mut(&node) {
            changed.ctime = now;
            changed.version.change = changes;
            if is_data {
                changed.version.data = changes;
            }
            touched.changed.insert(node);
        }
    }

    /// Applies a record. If it fails, the tree is unchanged.
    pub(super) fn apply(
        &mut self,
        record: &Record,
        payload: &Bytes,
        touched: &mut Touched,
    ) -> Result<(), Errno> {
        match record {
            Record::Create { .. }
            | Record::Link { .. }
            | Record::Unlink { .. }
            | Record::RemoveDirectory { .. }
            | Record::Rename { .. } => self.apply_to_names(record, touched),
            Record::Write { file, offset, data, time } => {
                let bytes = slice(payload, *data)?;
                let node = self.get_mut(file.ino)?;
                node.contents_mut()?.write(*offset, &bytes)?;
                if !bytes.is_empty() {
                    node.mtime = *time;
                    self.touch(file.ino, true, touched);
                }
                Ok(())
            }
            Record::SetAttributes { node, set } => self.set_attributes(node.ino, set, touched),
            Record::Allocate { file, mode, offset, length } => {
                self.allocate(file.ino, *mode, *offset, *length, touched)
            }
            Record::CopyRange { from, from_offset, to, to_offset, length } => {
                let part = self.get(from.ino)?.contents()?.copy(*from_offset, *length);
                let distance = from_offset.abs_diff(*to_offset);
                if from.ino == to.ino && distance < *length {
                    return Err(Errno::INVAL);
                }
                let contents = self.get_mut(to.ino)?.contents_mut()?;
                if part.size() > 0 {
                    contents.paste(*to_offset, &part)?;
                    self.change_contents(to.ino, touched);
                }
                Ok(())
            }
            Record::SetXattr { node, name, value } => {
                let changed = self.get_mut(node.ino)?;
                check_namespace(changed, name)?;
                changed.xattrs.insert(name.clone(), value.clone());
                self.touch(node.ino, false, touched);
                Ok(())
            }
            Record::RemoveXattr { node, name } => {
                let changed = self.get_mut(node.ino)?;
                check_namespace(changed, name)?;
                changed.xattrs.remove(name).ok_or(Errno::NODATA)?;
                self.touch(node.ino, false, touched);
                Ok(())
            }
            // The server counts the clients that have a node open, and drops it when the last one
            // closes it.
            Record::Close { .. } => Ok(()),
        }
    }

    /// Notes that contents have changed now.
    fn change_contents(&mut self, file: Ino, touched: &mut Touched) {
        self.touch(file, true, touched);
        let now = self.now();
        if let Some(node) = self.nodes.get_mut(&file) {
            node.mtime = now;
        }
    }

    fn set_attributes(
        &mut self,
        ino: Ino,
        set: &SetAttributes,
        touched: &mut Touched,
    ) -> Result<(), Errno> {
        let node = self.get_mut(ino)?;
        let is_symlink = matches!(node.body, Body::Symlink(_));
        if set.mode.is_some() && is_symlink {
            return Err(Errno::OPNOTSUPP);
        }
        if let Some(size) = set.size {
            node.contents_mut()?.set_size(size)?;
            self.change_contents(ino, touched);
        }
        let node = self.get_mut(ino)?;
        // A change of the owner takes away the rights of the old one. Source: Linux `chown_common`.
        if (set.uid.is_some() || set.gid.is_some()) && !node.is_directory() {
            let group = if node.mode & 0o010 == 0 { 0 } else { 0o2000 };
            node.mode &= !(0o4000 | group);
        }
        node.uid = set.uid.unwrap_or(node.uid);
        node.gid = set.gid.unwrap_or(node.gid);
        node.mode = set.mode.unwrap_or(node.mode);
        node.atime = set.atime.unwrap_or(node.atime);
        node.mtime = set.mtime.unwrap_or(node.mtime);
        self.touch(ino, false, touched);
        Ok(())
    }

    fn allocate(
        &mut self,
        file: Ino,
        mode: AllocateMode,
        offset: u64,
        length: u64,
        touched: &mut Touched,
    ) -> Result<(), Errno> {
        let node = self.get_mut(file)?;
        let contents = match &mut node.body {
            Body::File(contents) => contents,
            Body::Directory(_) => return Err(Errno::ISDIR),
            Body::Special { kind: NodeKind::Fifo, .. } => return Err(Errno::SPIPE),
            Body::Symlink(_) | Body::Special { .. } => return Err(Errno::NODEV),
        };
        if length == 0 {
            return Err(Errno::INVAL);
        }
        if matches!(mode, AllocateMode::Extend | AllocateMode::Zero) {
            contents.extend(offset, length)?;
        }
        match mode {
            // Reserved space that was never written is a hole to `seek`, as on ext4.
            AllocateMode::Extend | AllocateMode::KeepSize => {}
            AllocateMode::PunchHole | AllocateMode::Zero | AllocateMode::ZeroKeepSize => {
                contents.clear(offset, length);
            }
        }
        self.change_contents(file, touched);
        Ok(())
    }

    /// Refuses a number that a node has or had.
    pub(super) fn check_unused(&self, ino: Ino) -> Result<(), Errno> {
        let is_used = self.nodes.contains_key(&ino) || self.gone.contains(&ino);
        if is_used { Err(Errno::EXIST) } else { Ok(()) }
    }
}

/// Returns the bytes of a write.
fn slice(payload: &Bytes, data: Data) -> Result<Bytes, Errno> {
    let end = data.start as usize + data.length as usize;
    if end > payload.len() {
        Err(Errno::INVAL)
    } else {
        Ok(payload.slice(data.start as usize..end))
    }
}

/// Refuses extended attributes that ext4 would refuse. Source: Linux `xattr_permission` and ext4's
/// handlers.
fn check_namespace(node: &Node, name: &[u8]) -> Result<(), Errno> {
    let is_plain = matches!(node.body, Body::File(_) | Body::Directory(_));
    if name.starts_with(b"user.") {
        if is_plain { Ok(()) } else { Err(Errno::PERM) }
    } else if name.starts_with(b"trusted.") || name.starts_with(b"security.") {
        Ok(())
    } else {
        Err(Errno::OPNOTSUPP)
    }
}
