//! Creation of nodes.

use crate::client::interface::operation::{NodeEntry, Place, Reply};
use crate::client::nodes::cancellation::before_creation;
use crate::client::nodes::contents::Contents;
use crate::client::nodes::node::Node;
use crate::client::waiting::Event;
use crate::wire::{Attributes, Handle, Ino, LeaseKind, NewNode, NodeKind, Record, Version};

use super::entries::node_entry;
use super::openings::add_opening;
use super::places::{change_directory, free_place, gain_directory};
use super::resolve::require_directory;
use super::turn::{Attempt, Stop, Turn};

/// Set-group-ID.
const SETGID: u16 = 0o2000;

pub(super) fn create(
    turn: &mut Turn<'_>,
    place: &Place,
    new: &NewNode,
    mode: u16,
    open: bool,
) -> Attempt<Reply> {
    turn.require_room(0)?;
    free_place(turn, place)?;
    let parent = turn.cache.handle(place.directory)?;
    let entry = make(turn, place.directory, Some((parent, place)), new, mode)?;
    if open {
        add_opening(turn.cache, entry.node, true)?;
        return Ok(Reply::Created(entry));
    }
    Ok(Reply::Entry(entry))
}

pub(super) fn create_temporary(turn: &mut Turn<'_>, directory: Ino, mode: u16) -> Attempt<Reply> {
    turn.require_room(0)?;
    require_directory(turn, directory)?;
    let entry = make(turn, directory, None, &NewNode::File, mode)?;
    let node = turn.cache.node_mut(entry.node)?;
    node.attributes.links = 0;
    (node.is_orphan, node.is_nameless) = (true, true);
    add_opening(turn.cache, entry.node, true)?;
    Ok(Reply::Created(NodeEntry { attributes: turn.cache.node(entry.node)?.attributes, ..entry }))
}

/// Requires a number for a new node.
fn new_ino(turn: &mut Turn<'_>) -> Attempt<Ino> {
    if turn.link.session.is_short_of_inos() {
        turn.link.greet(&turn.clock);
    }
    if !turn.link.session.has_ino() {
        turn.waiting.wait(Event::Session, turn.token);
        return Err(Stop::Wait);
    }
    Ok(turn.link.session.take_ino())
}

/// Creates a node in the cache and in the log. `parent` is absent for a node without a name.
fn make(
    turn: &mut Turn<'_>,
    directory: Ino,
    parent: Option<(Handle, &Place)>,
    new: &NewNode,
    mode: u16,
) -> Attempt<NodeEntry> {
    let ino = new_ino(turn)?;
    let above = turn.cache.node(directory)?.attributes;
    let attributes = new_attributes(turn, &above, new, mode);
    let mut node = Node::new(Handle::created(ino), attributes, LeaseKind::Exclusive);
    node.created_in = turn.link.log.open_number();
    node.contents = Contents::empty();
    node.empty();
    node.xattrs = Some(Default::default());
    node.parent = parent.as_ref().map(|(parent, _)| parent.ino);
    if let NewNode::Symlink { target } = new {
        node.target = Some(Box::new(target.clone()));
    }
    turn.cache.insert(Box::new(node));
    let record = Record::Create {
        parent: parent.as_ref().map(|(parent, place)| (*parent, place.name.clone())),
        ino,
        node: new.clone(),
        mode: attributes.mode,
        uid: turn.caller.uid,
        gid: attributes.gid,
        time: turn.clock.wall,
    };
    let Some((_, place)) = parent else {
        turn.record(&[ino], record);
        return node_entry(turn, None, ino);
    };
    let before = before_creation(&turn.link.log, turn.cache, place.directory);
    turn.record(&[ino, place.directory], record);
    if let Some(before) = before {
        turn.link.log.note_before(before);
    }
    change_directory(turn, place.directory, |names| names.put(place.name.clone(), ino));
    if attributes.kind == NodeKind::Directory {
        gain_directory(turn.cache, place.directory)?;
    }
    node_entry(turn, Some(place.directory), ino)
}

/// Returns the attributes of a new node. It inherits the group of a directory with set-group-ID.
fn new_attributes(turn: &Turn<'_>, above: &Attributes, new: &NewNode, mut mode: u16) -> Attributes {
    let (kind, device, size) = match new {
        NewNode::File => (NodeKind::File, 0, 0),
        NewNode::Directory => (NodeKind::Directory, 0, 4096),
        NewNode::Symlink { target } => (NodeKind::Symlink, 0, target.len() as u64),
        NewNode::Special { kind, device } => (*kind, *device, 0),
    };
    let mut gid = turn.caller.gid;
    if above.mode & SETGID != 0 {
        gid = above.gid;
        if kind == NodeKind::Directory {
            mode |= SETGID;
        } else if mode & 0o2010 == 0o2010 && turn.caller.gid != gid && turn.caller.uid != 0 {
            mode &= !SETGID;
        }
    }
    let now = turn.clock.wall;
    Attributes {
        kind,
        mode,
        links: if kind == NodeKind::Directory { 2 } else { 1 },
        uid: turn.caller.uid,
        gid,
        device,
        size,
        blocks: 0,
        atime: now,
        mtime: now,
        ctime: now,
        btime: Some(now),
        has_xattrs: false,
        version: Version::default(),
    }
}
