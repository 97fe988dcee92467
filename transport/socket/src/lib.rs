//! Packet drivers over sockets: [`Udp`] and [`Raw`].
//!
//! [`Udp`] is a [`Driver`](apus_driver::Driver) over one unconnected UDP socket, or two with
//! receive coalescing ([`UdpConfig::receive_coalescing_usecs`]), plus connected sockets for sends
//! to frequent peers; it needs no privileges. [`Raw`] is a driver over a raw socket of IP protocol
//! 146, the protocol of the Linux Homa module, and needs CAP_NET_RAW. The two open their sockets
//! differently and share the rest: batches of packets per system call, traffic classes, path MTU,
//! and ICMP errors. `carrier` describes the bytes between the IP header and the packet.
//!
//! # The path of a packet
//!
//! ```text
//! transmit ─┬ small ─▶ staging ─▶ group: copied, one per peer, class and size ─ flush ─┐
//!           └ large ─▶ gather: from the borrowed slices ───────────────────────────────┤
//!                                                                                      ▼
//! network ◀── kernel ◀──────────────────────────── submit, or connected for frequent peers
//!
//! network ──▶ kernel ─▶ receive: splits merged datagrams by control data; carrier yields the ports
//!                  └──▶ error_queue ─▶ reports
//! ```
//!
//! These names are modules. `unsafe` occurs only in `kernel`, which makes the system calls.
//!
//! # Invariants
//!
//! - **SOCKET-1** No allocation per packet: buffers grow with the largest batches so far, and are
//!   kept. The number of groups grows only while the system accepts no packets, and then by at most
//!   one burst.
//! - **SOCKET-2** A system call that fails with an error that may stem from ICMP raises the error
//!   signal, in either half; `reports` reads the socket's error queue if and only if the signal is
//!   raised. While an error is queued, poll(2) reports it, so none is lost: see `error_queue`.
//! - **SOCKET-3** A missing system feature costs speed, never correctness. [`UdpConfig`] can switch
//!   each optional feature off, so that tests cover such systems.
//!
//! # Sources
//!
//! HM `file` `symbol` in comments refers to the Linux kernel's Homa module (PlatformLab/HomaModule,
//! commit 9edb958). `docs/reference` in the repository has the facts, and the figures of cited
//! papers.

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
mod fallback;
mod group;
#[allow(unsafe_code)] // The system calls, and nothing else.
mod kernel;
mod link;
mod mtu;
mod open;
pub mod raw;
mod receive;
#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;
mod shared;
mod staging;
mod submit;
#[cfg(test)]
mod testing;
mod transmit;
pub mod udp;

pub use counters::SocketCounters;
pub use open::OpenError;
pub use raw::{AnswerForEnded, EndedNeighbours, EndedPorts, Raw, RawConfig, RawOpenError};
pub use udp::{Udp, UdpConfig};
