//! Operations on names.

use crate::wire::{Errno, Handle, Ino, LeaseKind, NewNode, NodeKind, Record};

use super::{Turn, new_attributes};
use crate::client::contents::Contents;
use crate::client::node::{Names, Node};
use crate::client::operation::{NodeEntry, Place, Reply};
use crate::client::renames::Rename;
use crate::client::{Attempt, Client, Invalidation, Stop};

/// Set-group-ID.
const SETGID: u16 = 0o2000;

/// Links that a file can have. Source: ext4 has 65,000, others more; the server's file system decides finally.
const MOST_LINKS: u32 = 65_000;

impl Client {
    pub(super) fn look_up(&mut self, turn: &Turn, place: &Place) -> Attempt<Reply> {
        match self.resolve(turn, place.directory, &place.name)? {
            Some(ino) => Ok(Reply::Entry(self.entry(turn, Some(place.directory), ino)?)),
            None => Ok(Reply::Absent(self.name_valid(turn, place.directory))),
        }
    }

    /// Requires that a name does not exist, in a directory that may be changed.
    fn free_place(&mut self, turn: &Turn, place: &Place) -> Attempt<()> {
        if self.resolve(turn, place.directory, &place.name)?.is_some() {
            return Err(Errno::EXIST.into());
        }
        self.lease(turn, &[(place.directory, LeaseKind::Exclusive)])?;
        if self.node(place.directory)?.attributes.links == 0 {
            return Err(Errno::NOENT.into());
        }
        // The lease may have been granted after another client has changed the directory.
        match self.resolve(turn, place.directory, &place.name)? {
            Some(_) => Err(Errno::EXIST.into()),
            None => Ok(()),
        }
    }

    /// Requires a number for a new node.
    fn new_ino(&mut self, turn: &Turn) -> Attempt<Ino> {
        if self.session.is_short_of_inos() {
            self.ask_inos(&turn.clock);
        }
        if !self.session.has_ino() {
            self.for_session.push(turn.token);
            return Err(Stop::Wait);
        }
        Ok(self.session.take_ino())
    }

    pub(super) fn create(
        &mut self,
        turn: &Turn,
        place: &Place,
        new: &NewNode,
        mode: u16,
        open: bool,
    ) -> Attempt<Reply> {
        self.room(turn, 0)?;
        self.free_place(turn, place)?;
        let parent = self.handle(place.directory)?;
        let entry = self.make(turn, place.directory, Some((parent, place)), new, mode)?;
        if open {
            self.add_opening(entry.node, true)?;
            return Ok(Reply::Created(entry));
        }
        Ok(Reply::Entry(entry))
    }

    pub(super) fn create_temporary(
        &mut self,
        turn: &Turn,
        directory: Ino,
        mode: u16,
    ) -> Attempt<Reply> {
        self.room(turn, 0)?;
        self.directory(turn, directory)?;
        let entry = self.make(turn, directory, None, &NewNode::File, mode)?;
        let node = self.node_mut(entry.node)?;
        node.attributes.links = 0;
        (node.is_orphan, node.is_nameless) = (true, true);
        self.add_opening(entry.node, true)?;
        Ok(Reply::Created(NodeEntry { attributes: self.node(entry.node)?.attributes, ..entry }))
    }

    /// Creates a node with the group of a directory, if that says so.
    fn make(
        &mut self,
        turn: &Turn,
        directory: Ino,
        parent: Option<(Handle, &Place)>,
        new: &NewNode,
        mut mode: u16,
    ) -> Attempt<NodeEntry> {
        let ino = self.new_ino(turn)?;
        let (kind, device, size) = match new {
            NewNode::File => (NodeKind::File, 0, 0),
            NewNode::Directory => (NodeKind::Directory, 0, 4096),
            NewNode::Symlink { target } => (NodeKind::Symlink, 0, target.len() as u64),
            NewNode::Special { kind, device } => (*kind, *device, 0),
        };
        let mut gid = turn.caller.gid;
        let above = self.node(directory)?.attributes;
        if above.mode & SETGID != 0 {
            gid = above.gid;
            if kind == NodeKind::Directory {
                mode |= SETGID;
            } else if mode & 0o2010 == 0o2010 && turn.caller.gid != gid && turn.caller.uid != 0 {
                mode &= !SETGID;
            }
        }
        let mut attributes = new_attributes(turn, kind, mode, gid);
        (attributes.device, attributes.size) = (device, size);
        if kind == NodeKind::Directory {
            attributes.links = 2;
        }
        let mut node = Node::new(Handle::created(ino), attributes, LeaseKind::Exclusive);
        node.created_in = self.log.open_number();
        node.contents = Contents::empty();
        node.empty();
        node.xattrs = Some(Default::default());
        node.parent = parent.as_ref().map(|(parent, _)| parent.ino);
        if let NewNode::Symlink { target } = new {
            node.target = Some(Box::new(target.clone()));
        }
        self.nodes.insert(ino, Box::new(node));
        let record = Record::Create {
            parent: parent.as_ref().map(|(parent, place)| (*parent, place.name.clone())),
            ino,
            node: new.clone(),
            mode,
            uid: turn.caller.uid,
            gid,
            time: turn.clock.wall,
        };
        let Some((_, place)) = parent else {
            self.record(turn, &[ino], record);
            return self.entry(turn, None, ino);
        };
        let before = self.before_creation(place.directory);
        self.record(turn, &[ino, place.directory], record);
        if let Some(before) = before {
            self.log.note_before(before);
        }
        self.change_directory(turn, place.directory, |names| names.put(place.name.clone(), ino));
        if kind == NodeKind::Directory {
            self.gain_directory(place.directory)?;
        }
        self.entry(turn, Some(place.directory), ino)
    }

    /// Changes names of a directory, and its times.
    ///
    /// The kernel drops the directory's attributes by itself then, but takes a reply with attributes for newer if a thread gets round
    /// to it later (`fuse_dir_changed` counts no version, as notifications do).
    fn change_directory(&mut self, turn: &Turn, directory: Ino, change: impl FnOnce(&mut Names)) {
        if let Some(node) = self.nodes.get_mut(&directory) {
            change(node.names_mut());
            node.attributes.mtime = turn.clock.wall;
            if std::mem::take(&mut node.kernel_attributes) {
                self.invalidate(vec![Invalidation::Node { node: directory, data: false }]);
            }
        }
    }

    /// A directory has one directory less. What the server says of the number of links is not relied on.
    fn lose_directory(&mut self, parent: Ino) -> Result<(), Errno> {
        let attributes = &mut self.node_mut(parent)?.attributes;
        attributes.links = attributes.links.saturating_sub(1);
        Ok(())
    }

    /// A directory has one directory more.
    fn gain_directory(&mut self, parent: Ino) -> Result<(), Errno> {
        let attributes = &mut self.node_mut(parent)?.attributes;
        attributes.links = attributes.links.saturating_add(1);
        Ok(())
    }

    /// Requires exclusive leases of a directory and of what one of its names leads to.
    fn taken_place(&mut self, turn: &Turn, place: &Place) -> Attempt<Ino> {
        let Some(ino) = self.resolve(turn, place.directory, &place.name)? else {
            return Err(Errno::NOENT.into());
        };
        self.lease(turn, &[(place.directory, LeaseKind::Exclusive), (ino, LeaseKind::Exclusive)])?;
        match self.resolve(turn, place.directory, &place.name)? {
            Some(now) if now == ino => Ok(ino),
            Some(_) => self.taken_place(turn, place),
            None => Err(Errno::NOENT.into()),
        }
    }

    pub(super) fn unlink(&mut self, turn: &Turn, place: &Place) -> Attempt<Reply> {
        self.room(turn, 0)?;
        let ino = self.taken_place(turn, place)?;
        if self.node(ino)?.is_directory() {
            return Err(Errno::ISDIR.into());
        }
        let (parent, node) = (self.handle(place.directory)?, self.handle(ino)?);
        if self.cancel_creation(place.directory, ino) {
            self.change_directory(turn, place.directory, |names| names.remove(&place.name));
            return Ok(Reply::Done);
        }
        let name = place.name.clone();
        self.record(turn, &[ino, place.directory], Record::Unlink { parent, name, node });
        self.change_directory(turn, place.directory, |names| names.remove(&place.name));
        self.drop_link(turn, ino);
        Ok(Reply::Done)
    }

    /// A node that is no directory has lost a name.
    fn drop_link(&mut self, turn: &Turn, ino: Ino) {
        let Some(node) = self.nodes.get_mut(&ino) else { return };
        node.attributes.links = node.attributes.links.saturating_sub(1);
        if node.attributes.links == 0 {
            node.is_orphan = true;
            if node.openings == 0 {
                self.close_orphan(turn, ino);
            }
        }
    }

    /// Tells the server that it need not keep a node without a name for this client any more.
    pub(super) fn close_orphan(&mut self, turn: &Turn, ino: Ino) {
        let Ok(node) = self.handle(ino) else { return };
        // No change of the node: it may be gone at the server before this is there.
        self.record(turn, &[], Record::Close { node });
        let number = self.log.last_number();
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.is_orphan = false;
            node.closed_in = number;
        }
    }

    /// Requires that all names of a directory are known, and that there are none.
    fn empty(&mut self, turn: &Turn, ino: Ino) -> Attempt<()> {
        let names = self.node(ino)?.names();
        if !names.known.is_empty() {
            return Err(Errno::NOTEMPTY.into());
        }
        if names.complete { Ok(()) } else { Err(self.ask_names(turn, ino, 1)) }
    }

    pub(super) fn remove_directory(&mut self, turn: &Turn, place: &Place) -> Attempt<Reply> {
        self.room(turn, 0)?;
        let ino = self.taken_place(turn, place)?;
        if !self.node(ino)?.is_directory() {
            return Err(Errno::NOTDIR.into());
        }
        self.empty(turn, ino)?;
        let (parent, node) = (self.handle(place.directory)?, self.handle(ino)?);
        let name = place.name.clone();
        let record = Record::RemoveDirectory { parent, name, node };
        self.record(turn, &[ino, place.directory], record);
        self.change_directory(turn, place.directory, |names| names.remove(&place.name));
        self.lose_directory(place.directory)?;
        self.node_mut(ino)?.become_removed();
        Ok(Reply::Done)
    }

    pub(super) fn link(&mut self, turn: &Turn, ino: Ino, place: &Place) -> Attempt<Reply> {
        self.room(turn, 0)?;
        if self.node(ino)?.is_gone {
            return Err(Errno::NOENT.into());
        }
        let node = self.node(ino)?;
        // What has lost its last name does not get another one.
        if node.attributes.links == 0 && !node.is_nameless && !node.is_directory() {
            return Err(Errno::NOENT.into());
        }
        self.free_place(turn, place)?;
        let wanted = [(place.directory, LeaseKind::Exclusive), (ino, LeaseKind::Exclusive)];
        self.lease(turn, &wanted)?;
        self.free_place(turn, place)?;
        let node = self.node(ino)?;
        if node.is_directory() {
            return Err(Errno::PERM.into());
        }
        // A node that has lost its last name cannot get one again, but one that was created without a name can.
        if node.attributes.links == 0 && !node.is_nameless {
            return Err(Errno::NOENT.into());
        }
        if node.attributes.links >= MOST_LINKS {
            return Err(Errno::MLINK.into());
        }
        let (node, parent) = (node.handle, self.handle(place.directory)?);
        let record = Record::Link { node, parent, name: place.name.clone() };
        self.record(turn, &[ino, place.directory], record);
        self.change_directory(turn, place.directory, |names| names.put(place.name.clone(), ino));
        let node = self.node_mut(ino)?;
        node.attributes.links = node.attributes.links.saturating_add(1);
        (node.is_orphan, node.is_nameless) = (false, false);
        node.parent = Some(place.directory);
        Ok(Reply::Entry(self.entry(turn, Some(place.directory), ino)?))
    }

    pub(super) fn rename(
        &mut self,
        turn: &Turn,
        from: &Place,
        to: &Place,
        exchange: bool,
        no_replace: bool,
    ) -> Attempt<Reply> {
        if self.was_applied_alone(turn)? {
            return Ok(Reply::Done);
        }
        self.room(turn, 0)?;
        let Some(moved) = self.resolve(turn, from.directory, &from.name)? else {
            return Err(Errno::NOENT.into());
        };
        let replaced = self.resolve(turn, to.directory, &to.name)?;
        match replaced {
            Some(_) if no_replace => return Err(Errno::EXIST.into()),
            None if exchange => return Err(Errno::NOENT.into()),
            Some(same) if same == moved => return Ok(Reply::Done),
            _ => {}
        }
        let nodes = [Some(from.directory), Some(to.directory), Some(moved), replaced];
        let wanted: Vec<_> =
            nodes.into_iter().flatten().map(|ino| (ino, LeaseKind::Exclusive)).collect();
        self.lease(turn, &wanted)?;
        let unchanged = self.resolve(turn, from.directory, &from.name)? == Some(moved)
            && self.resolve(turn, to.directory, &to.name)? == replaced;
        if !unchanged {
            return self.rename(turn, from, to, exchange, no_replace);
        }
        let moves_directory = self.node(moved)?.is_directory();
        let replaces_directory = replaced.map(|ino| self.node(ino).map(Node::is_directory));
        let replaces_directory = replaces_directory.transpose()?;
        if !exchange {
            match (moves_directory, replaces_directory) {
                (true, Some(false)) => return Err(Errno::NOTDIR.into()),
                (false, Some(true)) => return Err(Errno::ISDIR.into()),
                (true, Some(true)) => self.empty(turn, replaced.unwrap_or(moved))?,
                _ => {}
            }
        }
        if self.node(to.directory)?.attributes.links == 0 {
            return Err(Errno::NOENT.into());
        }
        let record = Record::Rename {
            from: (self.handle(from.directory)?, from.name.clone()),
            to: (self.handle(to.directory)?, to.name.clone()),
            node: self.handle(moved)?,
            replaced: replaced.map(|ino| self.handle(ino)).transpose()?,
            exchange,
        };
        let changed: Vec<Ino> = wanted.iter().map(|(ino, _)| *ino).collect();
        let moves_any = moves_directory || replaces_directory == Some(true);
        if moves_any && from.directory != to.directory {
            // Whether a directory would get into itself is known only at the server.
            let stop = self.apply_alone(turn, &changed, record);
            let is_removed = !exchange && replaces_directory == Some(true);
            self.renames.add(Rename {
                number: self.syncing[&turn.token],
                nodes: changed,
                directories: [from.directory, to.directory],
                removed: replaced.filter(|_| is_removed),
            });
            return Err(stop);
        }
        self.record(turn, &changed, record);
        self.change_directory(turn, from.directory, |names| match replaced {
            Some(ino) if exchange => names.put(from.name.clone(), ino),
            _ => names.remove(&from.name),
        });
        self.change_directory(turn, to.directory, |names| names.put(to.name.clone(), moved));
        self.node_mut(moved)?.parent = Some(to.directory);
        let back = replaces_directory.unwrap_or(false);
        if exchange {
            if let Some(node) = replaced.and_then(|ino| self.nodes.get_mut(&ino)) {
                node.parent = Some(from.directory);
            }
            if moves_directory != back {
                let (loses, gains) = if moves_directory { (from, to) } else { (to, from) };
                self.lose_directory(loses.directory)?;
                self.gain_directory(gains.directory)?;
            }
            return Ok(Reply::Done);
        }
        if moves_directory {
            self.lose_directory(from.directory)?;
            self.gain_directory(to.directory)?;
        }
        if let Some(ino) = replaced {
            if back {
                self.lose_directory(to.directory)?;
                self.node_mut(ino)?.become_removed();
            } else {
                self.drop_link(turn, ino);
            }
        }
        Ok(Reply::Done)
    }

    /// The server has renamed: names of both directories are asked for again.
    pub(in crate::client) fn renamed_at_server(&mut self, rename: &Rename) {
        for ino in rename.directories {
            self.calls.void(ino);
            if let Some(node) = self.nodes.get_mut(&ino) {
                node.forget_names();
            }
        }
        if let Some(node) = rename.removed.and_then(|ino| self.nodes.get_mut(&ino)) {
            node.become_removed();
        }
    }

    pub(super) fn read_link(&mut self, turn: &Turn, ino: Ino) -> Attempt<Reply> {
        let node = self.node(ino)?;
        if node.attributes.kind != NodeKind::Symlink {
            return Err(Errno::INVAL.into());
        }
        match &node.target {
            Some(target) => Ok(Reply::Data(vec![target.as_ref().clone()])),
            None => Err(self.ask_node(turn, ino)),
        }
    }
}
