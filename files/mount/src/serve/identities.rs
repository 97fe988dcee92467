//! Identities of clients: which rights the sender of a request has.
//!
//! | the request comes | from | with the rights of |
//! |---|---|---|
//! | through shared memory | the process that the kernel names (`SO_PEERCRED`) | its user |
//! | from an address of this host | the owner of the UDP socket, which the kernel names | its user |
//! | from another host | users that only that host knows | all users but root |
//!
//! A sender on this host that the kernel does not name is not served. The socket's owner is asked
//! for with each request: its port may belong to another user a moment later.
//!
//! A server that does not run as root has one user's rights, and gives them to this user, to root,
//! and to the networks that `--trust` names.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use apus::Request;
use apus::local::udp_owner;
use apus_fs_core::rights::{Rights, User};
use apus_fs_core::server::ServerSettings;

use super::users;
use crate::trust::is_here;

/// Time for which an answer of the system holds. Chosen by us: addresses and groups change rarely,
/// and a server that runs for months must notice it.
const VALID: Duration = Duration::from_secs(1);

/// Number of answers that are remembered.
const REMEMBERED: usize = 1_024;

/// Where the sender of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A user of this host.
    Here(u32),
    /// Another host.
    Elsewhere,
}

/// Why a sender has no rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnknownClient {
    /// Its user is not served.
    User,
    /// This kernel does not name the owners of sockets. A client of the same user is served once it
    /// is connected by shared memory.
    Unnamed,
}

impl fmt::Display for UnknownClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "this server does not serve its user",
            Self::Unnamed => "this kernel does not name its user (module udp_diag)",
        })
    }
}

/// Finds out the rights of senders.
#[derive(Debug)]
pub(super) struct Identities {
    own: u32,
    /// Whether the kernel names the owners of sockets.
    has_names: bool,
    addresses: HashMap<IpAddr, (Duration, bool)>,
    users: HashMap<u32, (Duration, Arc<User>)>,
}

impl Identities {
    /// Returns identities as seen by the user that runs the server at an address.
    pub(super) fn new(server: SocketAddr) -> Self {
        Self {
            own: rustix::process::geteuid().as_raw(),
            has_names: udp_owner(server).is_some(),
            addresses: HashMap::new(),
            users: HashMap::new(),
        }
    }

    /// Returns the rights of a request's sender at an export with these settings.
    ///
    /// # Errors
    ///
    /// [`UnknownClient`]: it has none.
    pub(super) fn rights(
        &mut self,
        now: Duration,
        request: &Request,
        settings: &ServerSettings,
    ) -> Result<Rights, UnknownClient> {
        let origin = match request.peer_credentials() {
            Ok(Some(credentials)) => Some(Origin::Here(credentials.uid)),
            Ok(None) => self.origin(now, request.peer_addr()),
            // The process has ended, so the port that it named says nothing.
            Err(_) => return Err(UnknownClient::User),
        };
        let unknown = if self.has_names { UnknownClient::User } else { UnknownClient::Unnamed };
        self.rights_of(now, origin.ok_or(unknown)?, settings).ok_or(UnknownClient::User)
    }

    fn origin(&mut self, now: Duration, peer: SocketAddr) -> Option<Origin> {
        let ip = peer.ip().to_canonical();
        let is_here = remembered(&mut self.addresses, now, ip, || is_here(peer));
        if !is_here {
            return Some(Origin::Elsewhere);
        }
        udp_owner(SocketAddr::new(ip, peer.port())).map(Origin::Here)
    }

    fn rights_of(
        &mut self,
        now: Duration,
        origin: Origin,
        settings: &ServerSettings,
    ) -> Option<Rights> {
        if self.own != 0 {
            let is_served = match origin {
                Origin::Here(uid) => uid == self.own || uid == 0 || settings.squash.is_some(),
                Origin::Elsewhere => true,
            };
            return is_served.then_some(Rights::Full);
        }
        if let Some(uid) = settings.squash {
            return Some(Rights::User(Arc::new(User::alone(uid))));
        }
        Some(match origin {
            Origin::Here(0) => Rights::Full,
            Origin::Here(uid) => {
                let find = || Arc::new(users::find(uid));
                Rights::User(remembered(&mut self.users, now, uid, find))
            }
            Origin::Elsewhere if settings.trusts_root => Rights::Full,
            Origin::Elsewhere => Rights::AnyUser,
        })
    }
}

/// Returns an answer that is remembered, or asks for it.
fn remembered<K: std::hash::Hash + Eq, V: Clone>(
    answers: &mut HashMap<K, (Duration, V)>,
    now: Duration,
    key: K,
    ask: impl FnOnce() -> V,
) -> V {
    if let Some((at, answer)) = answers.get(&key)
        && now < *at + VALID
    {
        return answer.clone();
    }
    if answers.len() >= REMEMBERED {
        answers.clear();
    }
    let answer = ask();
    answers.insert(key, (now, answer.clone()));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identities(own: u32) -> Identities {
        Identities { own, ..Identities::new("127.0.0.1:9".parse().unwrap()) }
    }

    fn rights(own: u32, origin: Origin, settings: &ServerSettings) -> Option<Rights> {
        identities(own).rights_of(Duration::ZERO, origin, settings)
    }

    #[test]
    fn root_here_is_root_and_root_elsewhere_is_not() {
        let settings = ServerSettings::default();
        assert_eq!(rights(0, Origin::Here(0), &settings), Some(Rights::Full));
        let user = rights(0, Origin::Here(12_345), &settings).unwrap();
        assert_eq!(user.uid(), Some(12_345));
        assert_eq!(rights(0, Origin::Elsewhere, &settings), Some(Rights::AnyUser));
        let trusting = ServerSettings { trusts_root: true, ..settings };
        assert_eq!(rights(0, Origin::Elsewhere, &trusting), Some(Rights::Full));
    }

    #[test]
    fn everybody_is_squashed_also_root_of_this_host() {
        let settings =
            ServerSettings { squash: Some(7), trusts_root: true, ..ServerSettings::default() };
        for origin in [Origin::Here(0), Origin::Here(5), Origin::Elsewhere] {
            assert_eq!(rights(0, origin, &settings).unwrap().uid(), Some(7), "{origin:?}");
        }
    }

    #[test]
    fn a_server_of_an_ordinary_user_serves_this_user_and_root() {
        let settings = ServerSettings::default();
        assert_eq!(rights(5, Origin::Here(5), &settings), Some(Rights::Full));
        assert_eq!(rights(5, Origin::Here(0), &settings), Some(Rights::Full));
        assert_eq!(rights(5, Origin::Here(6), &settings), None);
        assert_eq!(rights(5, Origin::Elsewhere, &settings), Some(Rights::Full));
        let open = ServerSettings { squash: Some(7), ..settings };
        assert_eq!(rights(5, Origin::Here(6), &open), Some(Rights::Full));
    }

    #[test]
    fn the_owner_of_a_socket_on_this_host_is_known() {
        let own = rustix::process::geteuid().as_raw();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        if udp_owner(address).is_none() {
            eprintln!("SKIPPED: this kernel does not say who owns UDP sockets");
            return;
        }
        let mut identities = identities(0);
        assert_eq!(identities.origin(Duration::ZERO, address), Some(Origin::Here(own)));
        // Addresses for documentation (RFC 5737) belong to no host.
        let other = "192.0.2.1:9".parse().unwrap();
        assert_eq!(identities.origin(Duration::ZERO, other), Some(Origin::Elsewhere));
        drop(socket);
        assert_eq!(identities.origin(Duration::ZERO, address), None, "no socket is there");
    }
}
