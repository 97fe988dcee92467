//! What do drivers that use sockets have in common?
//!
//! Everything but how a socket is opened: batches of packets in one system call, traffic classes, path
//! MTU, and ICMP errors. `apus-udp` and `apus-raw` open a socket each in its own way, say what lies
//! between IP header and packet ([`Carrier`]), and hand it to [`SocketTransmit`] and [`SocketReceive`]. Nobody
//! else needs this crate.
//!
//! # The way of a packet
//!
//! ```text
//! transmit ─┬ small ─▶ staging ─▶ group: copied, one per peer, class and size ─ flush ─┐
//!           └ large ─▶ gather: from the borrowed slices ───────────────────────────────┤
//!                                                                                      ▼
//! network ◀── kernel ◀──────────────────────────────────────────────────────────────── submit
//!
//! network ──▶ kernel ─▶ receive: cut apart by what cmsg tells, ports from where carrier says
//!                  └──▶ error_queue ─▶ reports
//! ```
//!
//! These names are modules. `unsafe` is in `kernel` only, which makes the system calls.
//!
//! # Invariants
//!
//! - **U1** No allocation per packet: what the halves need is allocated when the socket is opened.
//!   Staging grows only when the system takes no more packets, and then by one burst at most.
//! - **U2** A system call that fails with an error which may stem from ICMP raises the error signal,
//!   whichever half made it; `reports` looks at the socket's error queue if and only if the signal is
//!   up. As long as an error waits in the queue, poll(2) reports it, so none is lost: see
//!   `error_queue`.

#![deny(unsafe_code)]

mod address;
mod batch;
mod carrier;
mod class;
mod cmsg;
#[cfg(test)]
mod corpus;
mod counters;
mod error_queue;
mod errors;
mod group;
#[allow(unsafe_code)] // The system calls, and nothing else.
mod kernel;
mod link;
mod mtu;
mod open;
mod receive;
mod shared;
mod staging;
mod submit;
#[cfg(test)]
mod testing;
mod transmit;

pub use address::{Family, canonical, is_wildcard};
pub use carrier::Carrier;
pub use counters::Counters;
pub use group::MAX_SEGMENTS;
pub use kernel::{option, set_option};
pub use link::mbps;
pub use mtu::{MINIMUM, PacketLimit};
pub use open::{OpenError, forbid_fragments, size_buffers};
pub use receive::SocketReceive;
pub use shared::Shared;
pub use transmit::{Abilities, SocketTransmit};
