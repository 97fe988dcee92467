//! Permissions: the changes that a session may make, by the rights of its client (FS-18, FS-19).
//!
//! A batch is judged before it is appended, so nothing that was refused reaches the log. Records
//! of a batch may depend on earlier ones of the same batch, whose effects are kept aside here.
//!
//! What an honest client's kernel permits, and the rights of the client do not, is left out where
//! Linux leaves it out in silence (set-id bits, owners); everything else refuses the batch.

use std::collections::BTreeMap;

use crate::rights::access::{EXECUTE, READ, WRITE};
use crate::rights::{OVERFLOW_ID, Ownership, Rights};
use crate::store::Store;
use crate::wire::{Errno, Handle, Ino, NewNode, NodeKind, Record, SetAttributes};

use super::access::Access;

const SET_UID: u16 = 0o4000;
const SET_GID: u16 = 0o2000;
const STICKY: u16 = 0o1000;

/// Extended attributes with other prefixes give rights, or need those of root.
const USER_XATTRS: &[u8] = b"user.";

/// Refuses the names of extended attributes that no client may use.
pub(super) fn check_xattr(name: &[u8]) -> Result<(), Errno> {
    if name.starts_with(USER_XATTRS) { Ok(()) } else { Err(Errno::OPNOTSUPP) }
}

/// Checks the records of a batch against the rights of its session, and takes out of them what the
/// session may not set.
pub(super) fn judge<S: Store>(
    access: &mut Access<S>,
    session: u64,
    records: &mut [Record],
) -> Result<(), Errno> {
    for record in &*records {
        if let Record::SetXattr { name, .. } | Record::RemoveXattr { name, .. } = record {
            check_xattr(name)?;
        }
    }
    let rights = access.rights(session);
    if rights.is_full() {
        return Ok(());
    }
    let mut judge = Judge { store: &mut access.store, rights, changed: BTreeMap::new() };
    records.iter_mut().try_for_each(|record| judge.record(record))
}

/// A node during a batch.
#[derive(Clone, Copy)]
struct State {
    kind: NodeKind,
    ownership: Ownership,
}

struct Judge<'a, S> {
    store: &'a mut S,
    rights: Rights,
    /// Nodes that earlier records of the batch have made or changed.
    changed: BTreeMap<Ino, State>,
}

impl<S: Store> Judge<'_, S> {
    fn record(&mut self, record: &mut Record) -> Result<(), Errno> {
        match record {
            Record::Create { parent, ino, node, mode, uid, gid, .. } => {
                let parent = parent.as_ref().map(|(parent, _)| parent.ino);
                self.create(parent, *ino, node, (mode, uid, gid))
            }
            Record::Link { node, parent, .. } => {
                self.change_names(*parent)?;
                let state = self.state(node.ino)?;
                let is_safe = state.kind == NodeKind::File && !has_set_ids(state);
                let is_shared = is_safe && self.permits(node.ino, READ | WRITE)?;
                // Source: Linux, may_linkat with protected_hardlinks.
                if is_shared || self.rights.owns(state.ownership) {
                    Ok(())
                } else {
                    Err(Errno::PERM)
                }
            }
            Record::Unlink { parent, node, .. } | Record::RemoveDirectory { parent, node, .. } => {
                self.remove_name(*parent, *node)
            }
            Record::Rename { from, to, node, replaced, exchange } => {
                self.remove_name(from.0, *node)?;
                match replaced {
                    Some(replaced) => self.remove_name(to.0, *replaced)?,
                    None => self.change_names(to.0)?,
                }
                if from.0.ino != to.0.ino {
                    self.change_parent(*node)?;
                    let other = replaced.filter(|_| *exchange);
                    other.map_or(Ok(()), |other| self.change_parent(other))?;
                }
                Ok(())
            }
            Record::Write { file, .. } | Record::Allocate { file, .. } => self.write(*file),
            Record::CopyRange { from, to, .. } => {
                self.access(*from, READ)?;
                self.write(*to)
            }
            Record::SetAttributes { node, set } => self.set_attributes(*node, set),
            Record::SetXattr { node, .. } | Record::RemoveXattr { node, .. } => {
                self.access(*node, WRITE)
            }
            Record::Close { .. } => Ok(()),
        }
    }

    fn state(&mut self, ino: Ino) -> Result<State, Errno> {
        if let Some(state) = self.changed.get(&ino) {
            return Ok(*state);
        }
        let attributes = self.store.attributes(ino)?;
        Ok(State { kind: attributes.kind, ownership: Ownership::from(&attributes) })
    }

    fn permits(&mut self, ino: Ino, wanted: u16) -> Result<bool, Errno> {
        match self.changed.get(&ino) {
            Some(state) => Ok(self.rights.permits(state.ownership, wanted)),
            None => self.store.permits(ino, &self.rights, wanted),
        }
    }

    fn require(&mut self, ino: Ino, wanted: u16) -> Result<(), Errno> {
        if self.permits(ino, wanted)? { Ok(()) } else { Err(Errno::ACCES) }
    }

    /// Checks an access to contents or extended attributes.
    fn access(&mut self, node: Handle, wanted: u16) -> Result<(), Errno> {
        let state = self.state(node.ino)?;
        if self.rights.owns(state.ownership) { Ok(()) } else { self.require(node.ino, wanted) }
    }

    /// Checks a change of contents. A program with set-id bits loses them first: an honest client's
    /// kernel has sent that.
    fn write(&mut self, file: Handle) -> Result<(), Errno> {
        self.access(file, WRITE)?;
        if has_set_ids(self.state(file.ino)?) { Err(Errno::ACCES) } else { Ok(()) }
    }

    fn change_names(&mut self, directory: Handle) -> Result<(), Errno> {
        self.require(directory.ino, WRITE | EXECUTE)
    }

    fn remove_name(&mut self, directory: Handle, node: Handle) -> Result<(), Errno> {
        self.change_names(directory)?;
        let parent = self.state(directory.ino)?.ownership;
        let node = self.state(node.ino)?.ownership;
        // Source: Linux, __check_sticky.
        let is_free =
            parent.mode & STICKY == 0 || self.rights.owns(parent) || self.rights.owns(node);
        if is_free { Ok(()) } else { Err(Errno::PERM) }
    }

    /// Checks that a node may move to another directory: a directory changes its `..`.
    fn change_parent(&mut self, node: Handle) -> Result<(), Errno> {
        if self.state(node.ino)?.kind == NodeKind::Directory {
            self.require(node.ino, WRITE)?;
        }
        Ok(())
    }

    fn create(
        &mut self,
        parent: Option<Ino>,
        ino: Ino,
        node: &NewNode,
        (mode, uid, gid): (&mut u16, &mut u32, &mut u32),
    ) -> Result<(), Errno> {
        let mut inherited = None;
        if let Some(parent) = parent {
            self.require(parent, WRITE | EXECUTE)?;
            let parent = self.state(parent)?.ownership;
            inherited = Some(parent.gid).filter(|_| parent.mode & SET_GID != 0);
        }
        let kind = match node {
            NewNode::File => NodeKind::File,
            NewNode::Directory => NodeKind::Directory,
            NewNode::Symlink { .. } => NodeKind::Symlink,
            NewNode::Special { kind, device } => {
                let is_device = matches!(kind, NodeKind::CharacterDevice | NodeKind::BlockDevice);
                // Every user may make the character device 0, which is no device.
                let is_whiteout = *kind == NodeKind::CharacterDevice && *device == 0;
                if is_device && !is_whiteout {
                    return Err(Errno::PERM);
                }
                *kind
            }
        };
        (*uid, *gid) = match &self.rights {
            Rights::Full => (*uid, *gid),
            Rights::AnyUser => (squashed(*uid), inherited.unwrap_or_else(|| squashed(*gid))),
            Rights::User(user) => {
                let own = if user.is_member(*gid) { *gid } else { user.gid };
                (user.uid, inherited.unwrap_or(own))
            }
        };
        *mode = self.permitted_mode(*mode, kind, *gid, inherited.is_some());
        let ownership = Ownership { mode: *mode, uid: *uid, gid: *gid };
        self.changed.insert(ino, State { kind, ownership });
        Ok(())
    }

    /// Takes set-id bits out of a mode. On a directory, the bit of the group only passes the group
    /// on.
    fn permitted_mode(&self, mode: u16, kind: NodeKind, gid: u32, is_inherited: bool) -> u16 {
        let keeps_group =
            kind == NodeKind::Directory && (is_inherited || self.rights.is_member(gid));
        let refused = if keeps_group { SET_UID } else { SET_UID | SET_GID };
        mode & !refused
    }

    fn set_attributes(&mut self, node: Handle, set: &mut SetAttributes) -> Result<(), Errno> {
        let mut state = self.state(node.ino)?;
        let is_owner = self.rights.owns(state.ownership);
        if set.size.is_some() {
            self.write(node)?;
        }
        if (set.atime.is_some() || set.mtime.is_some()) && !is_owner {
            self.require(node.ino, WRITE)?;
        }
        if !is_owner && (set.mode.is_some() || set.uid.is_some() || set.gid.is_some()) {
            return Err(Errno::PERM);
        }
        // Only root gives files away.
        set.uid = None;
        set.gid = set.gid.filter(|gid| self.rights.is_member(*gid));
        let ownership = &mut state.ownership;
        ownership.gid = set.gid.unwrap_or(ownership.gid);
        if let Some(mode) = &mut set.mode {
            let has_bit = ownership.mode & SET_GID != 0;
            *mode = self.permitted_mode(*mode, state.kind, ownership.gid, has_bit);
            ownership.mode = *mode;
        }
        self.changed.insert(node.ino, state);
        Ok(())
    }
}

/// Whether a file gives the rights of its owner or of its group to those who run it.
fn has_set_ids(state: State) -> bool {
    state.kind == NodeKind::File && state.ownership.mode & (SET_UID | SET_GID) != 0
}

fn squashed(id: u32) -> u32 {
    if id == 0 { OVERFLOW_ID } else { id }
}
