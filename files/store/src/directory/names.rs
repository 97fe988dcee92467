//! Changes of names by records: checked and applied to the table, in the same way when a batch is
//! applied and when it is replayed.
//!
//! Before a batch is logged, the nodes behind its names are read from the directory and logged as
//! well. So the table alone decides whether a record applies, and a replay decides as the server
//! did.

use apus_fs_core::wire::{AllocateMode, Errno, Handle, Ino, Name, NewNode, NodeKind, Record};

use super::table::{ORPHANS, Place, Table, is_public, number_name};

/// Name of the store's own directory in the root.
pub(crate) const STATE: &[u8] = b".apus-fs";

/// Effect of a record on names.
#[derive(Clone, Debug)]
pub(crate) enum NameChange {
    /// A node is created.
    Create { ino: Ino, place: Place },
    /// A node gets one more name.
    Link { ino: Ino, from: Place, to: Place },
    /// A node moves, and the node it replaces loses that name.
    Move { ino: Ino, from: Place, to: Place, replaced: Option<Removal> },
    /// Two nodes exchange their names.
    Exchange { first: (Ino, Place), second: (Ino, Place) },
    /// A name is removed.
    Remove(Removal),
    /// Names stay.
    Nothing,
}

/// A name that is removed.
#[derive(Clone, Debug)]
pub(crate) struct Removal {
    pub(crate) ino: Ino,
    pub(crate) place: Place,
    pub(crate) fate: Fate,
}

/// Fate of a node that loses a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was an empty directory, and is deleted.
    Directory,
    /// It has other names.
    Named,
    /// It moves to the directory of orphans.
    Orphaned,
    /// It was an orphan, and is deleted.
    Dropped,
}

/// Returns whether a place is the store's own directory.
pub(crate) fn is_hidden(parent: Ino, name: &Name) -> bool {
    parent == Ino::ROOT && name.as_bytes() == STATE
}

/// Returns the place of an orphan.
pub(crate) fn orphan_place(ino: Ino) -> Place {
    (ORPHANS, number_name(ino))
}

/// Returns the kind of a new node.
pub(crate) fn kind_of_new(node: &NewNode) -> Result<NodeKind, Errno> {
    match node {
        NewNode::File => Ok(NodeKind::File),
        NewNode::Directory => Ok(NodeKind::Directory),
        NewNode::Symlink { .. } => Ok(NodeKind::Symlink),
        NewNode::Special { kind, .. } => match kind {
            NodeKind::File | NodeKind::Directory | NodeKind::Symlink => Err(Errno::INVAL),
            special => Ok(*special),
        },
    }
}

impl Table {
    /// Checks a record, and returns its effect on names.
    pub(crate) fn check(&self, record: &Record) -> Result<NameChange, Errno> {
        match record {
            Record::Create { parent, ino, node, .. } => {
                self.check_create(parent.as_ref(), *ino, node)
            }
            Record::Link { node, parent, name } => self.check_link(node.ino, parent.ino, name),
            Record::Unlink { parent, name, node } => {
                let place = self.occupied(parent.ino, name, node.ino)?;
                if self.kind(node.ino)? == NodeKind::Directory {
                    return Err(Errno::ISDIR);
                }
                Ok(NameChange::Remove(self.removal(node.ino, place)))
            }
            Record::RemoveDirectory { parent, name, node } => {
                let place = self.occupied(parent.ino, name, node.ino)?;
                self.directory(node.ino)?;
                if !self.is_empty(node.ino) {
                    return Err(Errno::NOTEMPTY);
                }
                Ok(NameChange::Remove(self.removal(node.ino, place)))
            }
            Record::Rename { from, to, node, replaced, exchange } => {
                let replaced = replaced.map(|handle| handle.ino);
                self.check_rename(from, to, node.ino, replaced, *exchange)
            }
            Record::Write { file, .. } => self.file(*file),
            Record::Allocate { file, length, mode, .. } => match (length, mode) {
                (0, AllocateMode::Extend | AllocateMode::KeepSize | AllocateMode::PunchHole)
                | (0, AllocateMode::Zero | AllocateMode::ZeroKeepSize) => Err(Errno::INVAL),
                _ => self.file(*file),
            },
            Record::SetAttributes { node, set } if set.size.is_some() => self.file(*node),
            // Check here the rules of Linux for this kind of node: a replay cannot try the call on
            // a node that no longer exists.
            Record::SetAttributes { node, set } if set.mode.is_some() => {
                match self.kind(node.ino)? {
                    NodeKind::Symlink => Err(Errno::OPNOTSUPP),
                    _ => Ok(NameChange::Nothing),
                }
            }
            Record::SetXattr { node, name, .. } if name.starts_with(b"user.") => {
                match self.kind(node.ino)? {
                    NodeKind::File | NodeKind::Directory => Ok(NameChange::Nothing),
                    _ => Err(Errno::PERM),
                }
            }
            Record::SetAttributes { node, .. }
            | Record::SetXattr { node, .. }
            | Record::RemoveXattr { node, .. } => self.kind(node.ino).map(|_| NameChange::Nothing),
            // Resolved before it is logged.
            Record::CopyRange { .. } => Err(Errno::INVAL),
            // Others may have the node open: the server drops it when the last one has closed it.
            Record::Close { .. } => Ok(NameChange::Nothing),
        }
    }

    /// Returns the effect of the end of a node without a name.
    pub(crate) fn check_close(&self, ino: Ino) -> NameChange {
        if is_public(ino) && self.is_orphan(ino) {
            NameChange::Remove(Removal {
                ino,
                place: orphan_place(ino),
                fate: self.fate_of_orphan(ino),
            })
        } else {
            NameChange::Nothing
        }
    }

    fn fate_of_orphan(&self, ino: Ino) -> Fate {
        let names = self.node(ino).map_or(0, |node| node.places.len());
        if names > 1 { Fate::Named } else { Fate::Dropped }
    }

    fn kind(&self, ino: Ino) -> Result<NodeKind, Errno> {
        self.node(ino).filter(|_| is_public(ino)).map(|node| node.kind).ok_or(Errno::STALE)
    }

    fn file(&self, file: Handle) -> Result<NameChange, Errno> {
        match self.kind(file.ino)? {
            NodeKind::File => Ok(NameChange::Nothing),
            NodeKind::Directory => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }

    fn directory(&self, ino: Ino) -> Result<(), Errno> {
        if self.kind(ino)? == NodeKind::Directory { Ok(()) } else { Err(Errno::NOTDIR) }
    }

    /// Checks that a directory is one, and that the name is not the store's own.
    fn place(&self, parent: Ino, name: &Name) -> Result<Place, Errno> {
        self.directory(parent)?;
        if is_hidden(parent, name) { Err(Errno::PERM) } else { Ok((parent, name.clone())) }
    }

    fn occupied(&self, parent: Ino, name: &Name, node: Ino) -> Result<Place, Errno> {
        let place = self.place(parent, name)?;
        match self.at(parent, name) {
            Some(is) if is == node => Ok(place),
            Some(_) => Err(Errno::STALE),
            None => Err(Errno::NOENT),
        }
    }

    fn removal(&self, ino: Ino, place: Place) -> Removal {
        let fate = match self.node(ino) {
            Some(node) if node.kind == NodeKind::Directory => Fate::Directory,
            Some(node) if node.places.len() > 1 => Fate::Named,
            _ => Fate::Orphaned,
        };
        Removal { ino, place, fate }
    }

    fn check_create(
        &self,
        parent: Option<&(Handle, Name)>,
        ino: Ino,
        node: &NewNode,
    ) -> Result<NameChange, Errno> {
        let kind = kind_of_new(node)?;
        if ino == Ino::ROOT || !is_public(ino) || super::identity::is_found(ino) {
            return Err(Errno::INVAL);
        }
        let place = match parent {
            Some((parent, name)) => self.place(parent.ino, name)?,
            None if kind == NodeKind::File => orphan_place(ino),
            None => return Err(Errno::INVAL),
        };
        if self.node(ino).is_some() || self.at(place.0, &place.1).is_some() {
            return Err(Errno::EXIST);
        }
        Ok(NameChange::Create { ino, place })
    }

    fn check_link(&self, ino: Ino, parent: Ino, name: &Name) -> Result<NameChange, Errno> {
        let to = self.place(parent, name)?;
        if self.kind(ino)? == NodeKind::Directory {
            return Err(Errno::PERM);
        }
        if self.at(parent, name).is_some() {
            return Err(Errno::EXIST);
        }
        let places = &self.node(ino).ok_or(Errno::STALE)?.places;
        match places.iter().find(|place| place.0 == ORPHANS) {
            Some(orphan) => Ok(NameChange::Move { ino, from: orphan.clone(), to, replaced: None }),
            None => {
                let from = places.first().ok_or(Errno::STALE)?.clone();
                Ok(NameChange::Link { ino, from, to })
            }
        }
    }

    fn check_rename(
        &self,
        from: &(Handle, Name),
        to: &(Handle, Name),
        ino: Ino,
        replaced: Option<Ino>,
        exchange: bool,
    ) -> Result<NameChange, Errno> {
        let from = self.occupied(from.0.ino, &from.1, ino)?;
        let to = self.place(to.0.ino, &to.1)?;
        if self.at(to.0, &to.1) != replaced {
            return Err(Errno::STALE);
        }
        if exchange && replaced.is_none() {
            return Err(Errno::NOENT);
        }
        if self.is_within(to.0, ino) {
            return Err(Errno::INVAL);
        }
        let Some(other) = replaced else {
            return Ok(NameChange::Move { ino, from, to, replaced: None });
        };
        if other == ino {
            return Ok(NameChange::Nothing);
        }
        if exchange {
            return match self.is_within(from.0, other) {
                true => Err(Errno::INVAL),
                false => Ok(NameChange::Exchange { first: (ino, from), second: (other, to) }),
            };
        }
        // As Linux does, before it compares kinds.
        if self.is_within(from.0, other) {
            return Err(Errno::NOTEMPTY);
        }
        let is_directory = |ino| self.kind(ino).map(|kind| kind == NodeKind::Directory);
        match (is_directory(ino)?, is_directory(other)?) {
            (true, false) => return Err(Errno::NOTDIR),
            (false, true) => return Err(Errno::ISDIR),
            (true, true) if !self.is_empty(other) => return Err(Errno::NOTEMPTY),
            _ => {}
        }
        let removal = self.removal(other, to.clone());
        Ok(NameChange::Move { ino, from, to, replaced: Some(removal) })
    }

    /// Returns whether a directory is another one, or below it.
    fn is_within(&self, mut directory: Ino, ancestor: Ino) -> bool {
        // Names that other processes moved meanwhile might form a circle.
        for _ in 0..=self.nodes().size_hint().0 {
            if directory == ancestor {
                return true;
            }
            match self.node(directory).and_then(|node| node.places.first()) {
                Some(place) => directory = place.0,
                None => return false,
            }
        }
        true
    }

    /// Applies to the table the step that [`check`](Self::check) returned.
    pub(crate) fn apply(&mut self, step: &NameChange, kind: NodeKind) {
        match step {
            NameChange::Create { ino, place } => {
                self.insert(*ino, kind, None);
                self.add_place(*ino, place);
            }
            NameChange::Link { ino, to, .. } => self.add_place(*ino, to),
            NameChange::Move { ino, from, to, replaced } => {
                if let Some(removal) = replaced {
                    self.apply_removal(removal);
                }
                self.remove_place(from);
                self.add_place(*ino, to);
            }
            NameChange::Exchange { first, second } => {
                self.remove_place(&first.1);
                self.remove_place(&second.1);
                self.add_place(first.0, &second.1);
                self.add_place(second.0, &first.1);
            }
            NameChange::Remove(removal) => self.apply_removal(removal),
            NameChange::Nothing => {}
        }
    }

    fn apply_removal(&mut self, removal: &Removal) {
        match removal.fate {
            Fate::Directory | Fate::Dropped => self.remove(removal.ino),
            Fate::Named => {
                self.remove_place(&removal.place);
            }
            Fate::Orphaned => {
                self.remove_place(&removal.place);
                self.add_place(removal.ino, &orphan_place(removal.ino));
            }
        }
    }
}
