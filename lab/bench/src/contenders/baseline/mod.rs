//! Baselines: a user's alternatives to apus, as fast as we can make them.
//!
//! An unnecessarily slow baseline would make every comparison worthless. Each file lists its
//! settings and the measured alternatives.
//!
//! - [`Udp`]: one datagram in each direction, the lower bound for every message transport over UDP.
//! - [`UdpGso`]: the highest byte rate of UDP sockets.
//! - [`UdpGsoEcho`]: the highest round trip rate of small packets over UDP sockets.
//! - [`Tcp`]: length-prefixed messages on a TCP connection, the usual solution.
//! - [`Tls`]: length-prefixed messages on a TLS connection.
//! - [`Unix`]: length-prefixed messages on a unix socket, the usual solution within a host.
//! - [`CacheLines`]: a bare exchange of cache lines, the lower bound within a host.

mod cache_lines;
pub mod stream;
pub mod tcp;
mod tls;
mod udp;
#[allow(unsafe_code, reason = "a system call that rustix lacks")]
mod udp_gso;
mod udp_gso_echo;
pub mod unix;
pub mod waiter;

pub use cache_lines::CacheLines;
pub use stream::SendMode;
pub use tcp::Tcp;
pub use tls::Tls;
pub use udp::Udp;
pub use udp_gso::UdpGso;
pub use udp_gso_echo::UdpGsoEcho;
pub use unix::{Unix, UnixKind};
