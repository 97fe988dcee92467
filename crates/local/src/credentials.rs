//! Who is at the other end of a unix socket?
//!
//! SO_PEERCRED: what the kernel noted when the peer connected, or began to listen. It cannot be forged.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

/// A process at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Its process id. `None` if it is not visible here: it lives in another PID namespace, as the containers
    /// of one pod do.
    pub pid: Option<u32>,
    /// Its effective user id.
    pub uid: u32,
    /// Its effective group id.
    pub gid: u32,
}

/// Which peers are let in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeerPolicy {
    /// Those of this process's own effective user.
    #[default]
    SameUser,
    /// Those, and these users'.
    Users(Vec<u32>),
    /// All processes of this network namespace.
    Anyone,
}

impl PeerPolicy {
    /// Whether a process of user `uid` is let in.
    #[must_use]
    pub fn allows(&self, uid: u32) -> bool {
        let own = || uid == rustix::process::geteuid().as_raw();
        match self {
            Self::SameUser => own(),
            Self::Users(users) => own() || users.contains(&uid),
            Self::Anyone => true,
        }
    }
}

impl Credentials {
    /// Those of the peer of `socket`.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn of_peer(socket: impl AsFd) -> Result<Self, Errno> {
        let mut raw = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut len = size_of_val(&raw) as libc::socklen_t;
        let fd = socket.as_fd().as_raw_fd();
        // SAFETY: The kernel writes at most `len` bytes, all of `raw`, in which any bytes are valid.
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
    fn a_peer_is_known() {
        let (one, _two) = std::os::unix::net::UnixStream::pair().unwrap();
        let peer = Credentials::of_peer(&one).unwrap();
        assert_eq!(peer.pid, Some(std::process::id()));
        assert_eq!(peer.uid, rustix::process::geteuid().as_raw());
    }

    #[test]
    fn others_are_let_in_only_if_allowed() {
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
