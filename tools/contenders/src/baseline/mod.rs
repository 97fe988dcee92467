//! What is apus compared with?
//!
//! Baselines are what a user could have instead, as fast as we know how to make it: a baseline that
//! is weaker than it could be makes every figure of ours worthless. Each file says which settings it
//! uses and what was tried to make it faster.
//!
//! - [`Udp`]: a bare datagram there and back, the floor under every message transport over UDP.
//! - [`UdpGso`]: as many bytes per second as UDP sockets carry.
//! - [`Tcp`]: length-prefixed messages on a TCP connection, what most users have.
//! - [`Unix`]: the same on a unix socket, what users of one host have.

pub mod stream;
pub mod tcp;
mod udp;
mod udp_gso;
pub mod unix;
pub mod wait;

pub use stream::Sends;
pub use tcp::Tcp;
pub use udp::Udp;
pub use udp_gso::UdpGso;
pub use unix::{Boundaries, Unix};
