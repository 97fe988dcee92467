//! Baselines: the alternatives to apus that a user has, as fast as we can make them.
//!
//! A baseline that is slower than necessary would make every comparison worthless. Each file lists
//! the settings it uses and the alternatives that were measured.
//!
//! - [`Udp`]: one datagram there and back, the lower bound for every message transport over UDP.
//! - [`UdpGso`]: the highest byte rate of UDP sockets.
//! - [`UdpGsoEcho`]: the highest rate of small packets there and back over UDP sockets.
//! - [`Tcp`]: length-prefixed messages on a TCP connection, the usual solution.
//! - [`Tls`]: the same encrypted.
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
