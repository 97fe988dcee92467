//! Applies the name changes of records to the directory.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use apus_fs_core::wire::{Errno, Ino, NewNode, NodeKind, Record};
use rustix::fs::{AtFlags, FileType, OFlags, RenameFlags};

use super::attributes::{set_owner, times};
use super::files::{Files, mode_of, proc_path};
use super::identity::{Identity, Status, errno, status_of};
use super::names::{Fate, NameChange, Removal};
use super::table::{ORPHANS, Place, Table, number_name};

impl Files {
    /// Carries out a step of a record in the directory. The table is as it was before. Returns the
    /// backing file of a new node.
    pub(crate) fn perform(
        &mut self,
        table: &Table,
        step: &NameChange,
        record: &Record,
    ) -> Result<Option<Identity>, Errno> {
        match step {
            NameChange::Create { ino, place } => self.create(table, *ino, place, record).map(Some),
            NameChange::Link { from, to, .. } => self.link(table, from, to).map(|()| None),
            NameChange::Move { from, to, replaced: None, .. } => {
                self.rename(table, from, to, RenameFlags::NOREPLACE).map(|()| None)
            }
            NameChange::Move { from, to, replaced: Some(removal), .. } => {
                self.replace(table, from, to, removal).map(|()| None)
            }
            NameChange::Exchange { first, second } => {
                self.rename(table, &first.1, &second.1, RenameFlags::EXCHANGE).map(|()| None)
            }
            NameChange::Remove(removal) => self.remove(table, removal).map(|()| None),
            NameChange::Nothing => Ok(None),
        }
    }

    /// Adds a name to a node that has the name `from`.
    pub(crate) fn link(&mut self, table: &Table, from: &Place, to: &Place) -> Result<(), Errno> {
        let (old, new) = (self.directory(table, from.0)?, self.directory(table, to.0)?);
        self.fail_point.pass();
        let (from, to) = (from.1.as_bytes(), to.1.as_bytes());
        rustix::fs::linkat(&old, from, &new, to, AtFlags::empty()).map_err(errno)
    }

    pub(crate) fn rename(
        &mut self,
        table: &Table,
        from: &Place,
        to: &Place,
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        let (old, new) = (self.directory(table, from.0)?, self.directory(table, to.0)?);
        self.fail_point.pass();
        let (from, to) = (from.1.as_bytes(), to.1.as_bytes());
        rustix::fs::renameat_with(&old, from, &new, to, flags).map_err(errno)
    }

    /// Removes the name of a directory (`is_directory`) or of any other node.
    pub(crate) fn unlink(
        &mut self,
        table: &Table,
        place: &Place,
        is_directory: bool,
    ) -> Result<(), Errno> {
        let directory = self.directory(table, place.0)?;
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        self.fail_point.pass();
        rustix::fs::unlinkat(&directory, place.1.as_bytes(), flags).map_err(errno)
    }

    /// Moves a node to a name that another node has. The name refers to one of the two at any time.
    fn replace(
        &mut self,
        table: &Table,
        from: &Place,
        to: &Place,
        removal: &Removal,
    ) -> Result<(), Errno> {
        if removal.fate != Fate::Orphaned {
            self.rename(table, from, to, RenameFlags::empty())?;
            if removal.fate == Fate::Directory {
                self.forget(removal.ino);
            }
            return Ok(());
        }
        let orphan = (ORPHANS, number_name(removal.ino));
        match self.link(table, to, &orphan) {
            Ok(()) => {
                let renamed = self.rename(table, from, to, RenameFlags::empty());
                if renamed.is_err() {
                    self.unlink(table, &orphan, false)?;
                }
                renamed
            }
            // Links can be forbidden, also to files of other users.
            Err(_) => {
                self.rename(table, to, &orphan, RenameFlags::NOREPLACE)?;
                let renamed = self.rename(table, from, to, RenameFlags::NOREPLACE);
                if renamed.is_err() {
                    self.rename(table, &orphan, to, RenameFlags::NOREPLACE)?;
                }
                renamed
            }
        }
    }

    fn remove(&mut self, table: &Table, removal: &Removal) -> Result<(), Errno> {
        match removal.fate {
            Fate::Orphaned => {
                let orphan = (ORPHANS, number_name(removal.ino));
                self.rename(table, &removal.place, &orphan, RenameFlags::NOREPLACE)
            }
            Fate::Named => self.unlink(table, &removal.place, false),
            Fate::Directory | Fate::Dropped => {
                let is_directory = removal.fate == Fate::Directory;
                self.unlink(table, &removal.place, is_directory)?;
                self.forget(removal.ino);
                Ok(())
            }
        }
    }

    /// Creates the node that a record describes, at `place`.
    pub(crate) fn create(
        &mut self,
        table: &Table,
        ino: Ino,
        place: &Place,
        record: &Record,
    ) -> Result<Identity, Errno> {
        let Record::Create { node, mode, .. } = record else { return Err(Errno::INVAL) };
        let parent = self.directory(table, place.0)?;
        let name = place.1.as_bytes();
        // Others must not use a file before it has its owner.
        let mode = mode_of(mode & 0o700);
        self.fail_point.pass();
        match node {
            NewNode::File => {
                let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
                let file = rustix::fs::openat(&parent, name, flags | OFlags::CLOEXEC, mode);
                self.keep(ino, Arc::new(file.map_err(errno)?), true);
            }
            NewNode::Directory => rustix::fs::mkdirat(&parent, name, mode).map_err(errno)?,
            NewNode::Symlink { target } => {
                rustix::fs::symlinkat(&target[..], &parent, name).map_err(errno)?;
            }
            NewNode::Special { kind, device } => {
                let file_type = type_of(*kind);
                rustix::fs::mknodat(&parent, name, file_type, mode, *device).map_err(errno)?;
            }
        }
        self.dress(&parent, ino, place, record).inspect_err(|_| {
            let is_directory = *node == NewNode::Directory;
            let _ = self.unlink(table, place, is_directory);
            self.forget(ino);
        })
    }

    /// Gives a new node owner, mode and times.
    fn dress(
        &mut self,
        parent: &OwnedFd,
        ino: Ino,
        place: &Place,
        record: &Record,
    ) -> Result<Identity, Errno> {
        let file = match self.opened(ino) {
            Some(file) => file,
            None => Arc::new(Self::open_path(parent, &place.1)?),
        };
        let status = status_of(&file)?;
        self.dress_again(&file, &status, record)?;
        Ok(status.identity)
    }

    /// Gives a node, new or found by a replay, the owner, mode and times of the record that creates
    /// it.
    pub(crate) fn dress_again(
        &self,
        file: &OwnedFd,
        status: &Status,
        record: &Record,
    ) -> Result<(), Errno> {
        let Record::Create { mode, uid, gid, time, .. } = record else { return Err(Errno::INVAL) };
        let now = status.attributes;
        if self.sets_owners && (now.uid, now.gid) != (*uid, *gid) {
            self.fail_point.pass();
            set_owner(file, Some(*uid), Some(*gid))?;
        }
        if now.kind != NodeKind::Symlink && now.mode != *mode {
            self.fail_point.pass();
            rustix::fs::chmod(proc_path(file), mode_of(*mode)).map_err(errno)?;
        }
        self.fail_point.pass();
        let times = times(Some(*time), Some(*time));
        rustix::fs::utimensat(file, "", &times, AtFlags::EMPTY_PATH).map_err(errno)
    }
}

fn type_of(kind: NodeKind) -> FileType {
    match kind {
        NodeKind::File => FileType::RegularFile,
        NodeKind::Directory => FileType::Directory,
        NodeKind::Symlink => FileType::Symlink,
        NodeKind::Fifo => FileType::Fifo,
        NodeKind::Socket => FileType::Socket,
        NodeKind::CharacterDevice => FileType::CharacterDevice,
        NodeKind::BlockDevice => FileType::BlockDevice,
    }
}
