//! Identity of the process at the other end of a unix socket.
//!
//! SO_PEERCRED returns the credentials that the kernel recorded when the peer connected or started
//! to listen. They cannot be forged.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

use super::users::names_one_user;

/// A process at the other end of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Process id. `None` if it is not visible here: the peer lives in another PID namespace, as
    /// the containers of one pod do.
    pub pid: Option<u32>,
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
}

/// Which peers are accepted.
///
/// In a user namespace, users that are not mapped there all have the overflow uid (65534). A policy
/// that names users does not accept that id then, not even as the own one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeerPolicy {
    /// Processes of this process's own effective user.
    #[default]
    SameUser,
    /// Processes of this process's own effective user and of these users.
    Users(Vec<u32>),
    /// All processes of this network namespace.
    Anyone,
}

impl PeerPolicy {
    /// Returns whether a process of user `uid` is accepted.
    #[must_use]
    pub fn allows(&self, uid: u32) -> bool {
        let own = uid == rustix::process::geteuid().as_raw();
        match self {
            Self::SameUser => own && names_one_user(uid),
            Self::Users(users) => (own || users.contains(&uid)) && names_one_user(uid),
            Self::Anyone => true,
        }
    }
}

impl Credentials {
    /// Returns the credentials of the peer of `socket`.
    ///
    /// # Errors
    ///
    /// Any error of getsockopt(2).
    pub fn of_peer(socket: impl AsFd) -> Result<Self, Errno> {
        let mut raw = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut len = size_of_val(&raw) as libc::socklen_t;
        let fd = socket.as_fd().as_raw_fd();
        // SAFETY: The kernel writes at most `len` bytes, which is the size of `raw`, and every byte
        // pattern is a valid `ucred`.
        let result = unsafe {
            libc::getsockopt(
                fd,
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut raw).cast(),
                &raw mut len,
            )
        };
        if result < 0 {
            let error = std::io::Error::last_os_error();
            return Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL));
        }
        let pid = u32::try_from(raw.pid).ok().filter(|pid| *pid != 0);
        Ok(Self { pid, uid: raw.uid, gid: raw.gid })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_of_a_socket_is_known() {
        let (one, _two) = std::os::unix::net::UnixStream::pair().unwrap();
        let peer = Credentials::of_peer(&one).unwrap();
        assert_eq!(peer.pid, Some(std::process::id()));
        assert_eq!(peer.uid, rustix::process::geteuid().as_raw());
    }

    #[test]
    fn other_users_are_accepted_only_if_the_policy_allows_them() {
        let own = rustix::process::geteuid().as_raw();
        let other = own + 1;
        assert!(PeerPolicy::SameUser.allows(own) && !PeerPolicy::SameUser.allows(other));
        assert!(
            PeerPolicy::Users(vec![other]).allows(other) && PeerPolicy::Users(vec![]).allows(own)
        );
        assert!(!PeerPolicy::Users(vec![other]).allows(other + 1));
        assert!(PeerPolicy::Anyone.allows(other));
    }
}
