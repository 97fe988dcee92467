//! Unix sockets: how processes find, identify and signal each other.

#[expect(unsafe_code, reason = "SO_PEERCRED")]
pub(crate) mod credentials;
pub(crate) mod peer_name;
pub(crate) mod stream;
pub(crate) mod udp_owner;
mod users;
