//! Rights of a client: whose files it may read and change.
//!
//! A client's kernel checks each of its users. The server does not rely on that: it allows a client
//! no more than the system would allow a process of the same user on the server's host.

use std::sync::Arc;

use crate::wire::Attributes;

/// A user of the server's host, with its groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// All other groups.
    pub groups: Vec<u32>,
}

impl User {
    /// Returns a user without groups, except the group of the same number.
    pub const fn alone(uid: u32) -> Self {
        Self { uid, gid: uid, groups: Vec::new() }
    }

    /// Returns whether the user belongs to a group.
    pub fn is_member(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }
}

/// What a client may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rights {
    /// Everything that the server may do.
    #[default]
    Full,
    /// Everything that some user other than root may do: the client is another host, which names
    /// its users itself.
    AnyUser,
    /// Everything that one user may do.
    User(Arc<User>),
}

/// Kinds of access, as bits of a mode.
pub mod access {
    /// Reads contents, or names of a directory.
    pub const READ: u16 = 4;
    /// Writes contents, or changes names of a directory.
    pub const WRITE: u16 = 2;
    /// Reaches the names of a directory.
    pub const EXECUTE: u16 = 1;
}

/// The owner that replaces root where root is squashed, and its group. Source: Linux
/// `DEFAULT_OVERFLOWUID`.
pub const OVERFLOW_ID: u32 = 65_534;

/// The attributes of a node that decide on access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// Permission bits.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl From<&Attributes> for Ownership {
    fn from(attributes: &Attributes) -> Self {
        Self { mode: attributes.mode, uid: attributes.uid, gid: attributes.gid }
    }
}

impl Rights {
    /// Returns whether these are all rights of the server.
    pub const fn is_full(&self) -> bool {
        matches!(self, Self::Full)
    }

    /// Returns the user, if it is a single one.
    pub fn uid(&self) -> Option<u32> {
        match self {
            Self::User(user) => Some(user.uid),
            Self::Full | Self::AnyUser => None,
        }
    }

    /// Returns whether both are rights of one client. The groups of a user may have changed.
    pub fn is_same_client(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::User(one), Self::User(other)) => one.uid == other.uid,
            (Self::Full, Self::Full) | (Self::AnyUser, Self::AnyUser) => true,
            _ => false,
        }
    }

    /// Returns whether the client is the owner of a node.
    pub fn owns(&self, node: Ownership) -> bool {
        match self {
            Self::Full => true,
            Self::AnyUser => node.uid != 0,
            Self::User(user) => node.uid == user.uid,
        }
    }

    /// Returns whether the client belongs to a group.
    pub fn is_member(&self, gid: u32) -> bool {
        match self {
            Self::Full => true,
            Self::AnyUser => gid != 0,
            Self::User(user) => user.is_member(gid),
        }
    }

    /// Returns whether the mode of a node permits all of `wanted`.
    pub fn permits(&self, node: Ownership, wanted: u16) -> bool {
        let Ownership { mode, uid, gid } = node;
        let class = match self {
            Self::Full => return true,
            // Each user has its own class. Root's classes are no user's.
            Self::AnyUser => {
                let owner = if uid == 0 { 0 } else { mode >> 6 };
                let group = if gid == 0 { 0 } else { mode >> 3 };
                owner | group | mode
            }
            Self::User(user) if user.uid == uid => mode >> 6,
            Self::User(user) if user.is_member(gid) => mode >> 3,
            Self::User(_) => mode,
        };
        class & wanted == wanted
    }
}

#[cfg(test)]
mod tests {
    use super::access::{EXECUTE, READ, WRITE};
    use super::*;

    const fn node(mode: u16, uid: u32, gid: u32) -> Ownership {
        Ownership { mode, uid, gid }
    }

    #[test]
    fn the_class_of_the_user_decides() {
        let user = Rights::User(Arc::new(User { uid: 1_000, gid: 100, groups: vec![27] }));
        assert!(user.permits(node(0o600, 1_000, 0), READ | WRITE));
        // The owner's class counts even where others may more.
        assert!(!user.permits(node(0o077, 1_000, 0), READ));
        assert!(
            user.permits(node(0o060, 0, 27), WRITE) && user.permits(node(0o060, 0, 100), WRITE)
        );
        assert!(!user.permits(node(0o707, 0, 27), READ));
        assert!(user.permits(node(0o701, 0, 0), EXECUTE));
        assert!(!user.permits(node(0o700, 0, 0), EXECUTE));
        assert!(user.owns(node(0, 1_000, 0)) && !user.owns(node(0o777, 0, 0)));
    }

    #[test]
    fn any_user_is_not_root() {
        let any = Rights::AnyUser;
        assert!(!any.permits(node(0o600, 0, 0), READ) && !any.permits(node(0o660, 0, 0), READ));
        assert!(any.permits(node(0o640, 0, 4), READ) && !any.permits(node(0o640, 0, 4), WRITE));
        assert!(any.permits(node(0o600, 7, 0), READ | WRITE) && any.owns(node(0, 7, 0)));
        assert!(any.permits(node(0o604, 0, 0), READ) && !any.owns(node(0o666, 0, 0)));
        assert!(any.is_member(4) && !any.is_member(0));
    }

    #[test]
    fn a_user_is_the_same_with_other_groups() {
        let of = |uid, groups| Rights::User(Arc::new(User { uid, gid: uid, groups }));
        assert!(of(1, vec![]).is_same_client(&of(1, vec![2])));
        assert!(!of(1, vec![]).is_same_client(&of(2, vec![])));
        assert!(!of(1, vec![]).is_same_client(&Rights::Full));
        assert!(!Rights::AnyUser.is_same_client(&Rights::Full));
    }
}
