//! Records that change names: creation, links, removal and renames.

use apus_fs_core::wire::{Errno, Ino, Name, NewNode, Record, Time};

use super::node::Body;
use super::tree::{Touched, Tree};

/// Names that a node can have. Source: ext4's `EXT4_LINK_MAX`.
const MAX_LINKS: u32 = 65_000;

/// A name in a directory.
#[derive(Clone, Copy)]
struct Place<'a> {
    directory: Ino,
    name: &'a Name,
}

/// A rename requested by a record.
struct Rename<'a> {
    from: Place<'a>,
    to: Place<'a>,
    node: Ino,
    replaced: Option<Ino>,
    exchange: bool,
}

impl Tree {
    pub(super) fn apply_to_names(
        &mut self,
        record: &Record,
        touched: &mut Touched,
    ) -> Result<(), Errno> {
        match record {
            Record::Create { parent, ino, node, mode, uid, gid, time } => {
                let place = parent
                    .as_ref()
                    .map(|(directory, name)| Place { directory: directory.ino, name });
                self.create(place, *ino, node, *mode, (*uid, *gid), *time, touched)
            }
            Record::Link { node, parent, name } => {
                self.link(node.ino, Place { directory: parent.ino, name }, touched)
            }
            Record::Unlink { parent, name, node } => {
                self.remove(Place { directory: parent.ino, name }, node.ino, false, touched)
            }
            Record::RemoveDirectory { parent, name, node } => {
                self.remove(Place { directory: parent.ino, name }, node.ino, true, touched)
            }
            Record::Rename { from, to, node, replaced, exchange } => self.rename(
                &Rename {
                    from: Place { directory: from.0.ino, name: &from.1 },
                    to: Place { directory: to.0.ino, name: &to.1 },
                    node: node.ino,
                    replaced: replaced.map(|handle| handle.ino),
                    exchange: *exchange,
                },
                touched,
            ),
            Record::Write { .. }
            | Record::SetAttributes { .. }
            | Record::Allocate { .. }
            | Record::CopyRange { .. }
            | Record::SetXattr { .. }
            | Record::RemoveXattr { .. }
            | Record::Close { .. } => unreachable!("not a record of names"),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of the record")]
    fn create(
        &mut self,
        place: Option<Place<'_>>,
        ino: Ino,
        new: &NewNode,
        mode: u16,
        owner: (u32, u32),
        time: Time,
        touched: &mut Touched,
    ) -> Result<(), Errno> {
        if let Some(place) = place
            && self.entry(place.directory, place.name)?.is_some()
        {
            return Err(Errno::EXIST);
        }
        self.check_unused(ino)?;
        if place.is_none() && !matches!(new, NewNode::File) {
            return Err(Errno::INVAL);
        }
        let body = Body::new(new, place.map_or(Ino::ROOT, |place| place.directory))?;
        // A link's permissions are never used. Source: Linux, every file system.
        let mode = if matches!(body, Body::Symlink(_)) { 0o777 } else { mode };
        self.changes += 1;
        let node = self.node(body, mode, owner, time);
        self.nodes.insert(ino, node);
        match place {
            Some(place) => self.insert(place, ino, touched),
            None => {
                let node = self.get_mut(ino)?;
                (node.links, node.is_linkable) = (0, true);
                self.orphans.insert(ino);
                touched.orphaned.push(ino);
            }
        }
        touched.changed.insert(ino);
        Ok(())
    }

    fn link(&mut self, ino: Ino, place: Place<'_>, touched: &mut Touched) -> Result<(), Errno> {
        let node = self.get(ino)?;
        if self.entry(place.directory, place.name)?.is_some() {
            return Err(Errno::EXIST);
        }
        if node.is_directory() {
            return Err(Errno::PERM);
        }
        if node.links == 0 && !node.is_linkable {
            return Err(Errno::NOENT);
        }
        if node.links >= MAX_LINKS {
            return Err(Errno::MLINK);
        }
        self.get_mut(ino)?.links += 1;
        self.orphans.remove(&ino);
        touched.orphaned.retain(|orphan| *orphan != ino);
        self.insert(place, ino, touched);
        self.touch(ino, false, touched);
        Ok(())
    }

    fn remove(
        &mut self,
        place: Place<'_>,
        ino: Ino,
        is_directory: bool,
        touched: &mut Touched,
    ) -> Result<(), Errno> {
        let found = self.entry(place.directory, place.name)?.ok_or(Errno::NOENT)?;
        if found != ino {
            return Err(Errno::STALE);
        }
        match (self.get(ino)?.directory(), is_directory) {
            (Ok(_), false) => return Err(Errno::ISDIR),
            (Err(_), true) => return Err(Errno::NOTDIR),
            (Ok(directory), true) if !directory.entries.is_empty() => return Err(Errno::NOTEMPTY),
            (Ok(_), true) | (Err(_), false) => {}
        }
        self.take(place, ino, touched);
        self.lose_name(ino, touched);
        Ok(())
    }

    fn rename(&mut self, rename: &Rename<'_>, touched: &mut Touched) -> Result<(), Errno> {
        let Rename { from, to, node, replaced, exchange } = *rename;
        let source = self.entry(from.directory, from.name)?.ok_or(Errno::NOENT)?;
        let target = self.entry(to.directory, to.name)?;
        if source != node {
            return Err(Errno::STALE);
        }
        match (target, replaced) {
            (None, _) if exchange => return Err(Errno::NOENT),
            (None, Some(_)) => return Err(Errno::STALE),
            (Some(_), None) => return Err(Errno::EXIST),
            (Some(target), Some(replaced)) if target != replaced => return Err(Errno::STALE),
            (None, None) | (Some(_), Some(_)) => {}
        }
        // Two names of one file stay. Source: POSIX rename, and Linux `vfs_rename`.
        if target == Some(source) {
            return Ok(());
        }
        if self.is_within(to.directory, source) {
            return Err(Errno::INVAL);
        }
        if let Some(target) = target {
            if self.is_within(from.directory, target) {
                return Err(if exchange { Errno::INVAL } else { Errno::NOTEMPTY });
            }
            if !exchange {
                match (self.get(source)?.is_directory(), self.get(target)?.directory()) {
                    (true, Err(_)) => return Err(Errno::NOTDIR),
                    (false, Ok(_)) => return Err(Errno::ISDIR),
                    (true, Ok(directory)) if !directory.entries.is_empty() => {
                        return Err(Errno::NOTEMPTY);
                    }
                    (true, Ok(_)) | (false, Err(_)) => {}
                }
            }
        }
        self.take(from, source, touched);
        if let Some(target) = target {
            self.take(to, target, touched);
            if exchange {
                self.insert(from, target, touched);
                self.touch(target, false, touched);
            } else {
                self.lose_name(target, touched);
            }
        }
        self.insert(to, source, touched);
        self.touch(source, false, touched);
        Ok(())
    }

    /// Returns whether a directory is `ancestor` or lies below it.
    fn is_within(&self, mut directory: Ino, ancestor: Ino) -> bool {
        loop {
            if directory == ancestor {
                return true;
            }
            let parent = self.get(directory).and_then(|node| node.directory());
            match parent {
                Ok(found) if directory != Ino::ROOT => directory = found.parent,
                Ok(_) | Err(_) => return false,
            }
        }
    }

    /// Gives a node a name, and its directory one more link if it is a directory.
    fn insert(&mut self, place: Place<'_>, ino: Ino, touched: &mut Touched) {
        let is_directory = self.nodes.get(&ino).is_some_and(super::node::Node::is_directory);
        if let Ok(node) = self.get_mut(ino)
            && let Ok(directory) = node.directory_mut()
        {
            directory.parent = place.directory;
        }
        if let Ok(parent) = self.get_mut(place.directory) {
            parent.links += u32::from(is_directory);
            if let Ok(directory) = parent.directory_mut() {
                directory.entries.insert(place.name.clone(), ino);
            }
        }
        self.change_directory(place.directory, touched);
    }

    /// Takes a name away from a directory; the node's number of links stays.
    fn take(&mut self, place: Place<'_>, ino: Ino, touched: &mut Touched) {
        let is_directory = self.nodes.get(&ino).is_some_and(super::node::Node::is_directory);
        if let Ok(parent) = self.get_mut(place.directory) {
            parent.links -= u32::from(is_directory);
            if let Ok(directory) = parent.directory_mut() {
                directory.entries.remove(place.name);
            }
        }
        self.change_directory(place.directory, touched);
    }

    fn change_directory(&mut self, directory: Ino, touched: &mut Touched) {
        self.touch(directory, false, touched);
        let now = self.now();
        if let Some(node) = self.nodes.get_mut(&directory) {
            node.mtime = now;
        }
    }

    /// Decrements the count of names; losing the last one makes an orphan. A directory has a single
    /// name and is removed at once.
    fn lose_name(&mut self, ino: Ino, touched: &mut Touched) {
        let Some(node) = self.nodes.get_mut(&ino) else { return };
        if node.is_directory() {
            self.nodes.remove(&ino);
            self.gone.insert(ino);
            touched.changed.remove(&ino);
            return;
        }
        node.links -= 1;
        if node.links == 0 {
            node.is_linkable = false;
            self.orphans.insert(ino);
            touched.orphaned.push(ino);
        }
        self.touch(ino, false, touched);
    }
}
