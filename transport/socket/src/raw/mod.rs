//! The raw IP driver: packets on IP protocol 146, as the Linux Homa module sends them.
//!
//! [`Raw`] is a [`Driver`](apus_driver::Driver) over one raw socket of IP protocol 146. One packet
//! of the engine is one IP packet, never fragmented. The driver needs the capability CAP_NET_RAW;
//! without it, opening returns [`RawOpenError::NotPermitted`], whose message explains how to grant
//! it to a program.
//!
//! # Ports
//!
//! Without UDP there is no header with ports. Packets start with Homa's own ports, source and
//! destination, two bytes each (docs/reference/homa-module.md, *Common header*), and all code reads
//! the ports there: the port of [`Arrival::from`](apus_driver::Arrival::from) and of
//! [`NetworkReport::peer`](apus_driver::NetworkReport::peer) is the peer's Homa port, the port of a
//! [`RawConfig`] is the driver's own. In transmission the port of
//! [`Burst::to`](apus_driver::Burst::to) is ignored: the engine has written it into the header.
//!
//! The system delivers every packet of the protocol to every raw socket of the host. Therefore
//!
//! - each socket has a *filter* that passes only its own port, so that packets for other drivers do
//!   not wake it;
//! - each driver *reserves* its port, in a system table that all processes of the host share and
//!   that drops the entries of ended processes (`port`);
//! - while one socket of the protocol is open on a host, the system no longer answers "protocol
//!   unreachable" there, not even for unused ports: a call to such a port gets no response.
//!
//! A killed process ends its endpoints without notice: [`EndedPorts`] receives requests that still
//! arrive for them, and [`EndedNeighbours`] answers these.
//!
//! IPv4 and IPv6 are two protocols with two kinds of sockets. A driver uses the protocol of its
//! address: `[::]` means all IPv6 addresses.
//!
//! # Invariants
//!
//! - **RAW-1** The socket is open and has its filter before any peer learns the port, so the first
//!   packet never reaches a host without the protocol (Rules for peers, item 18).
//! - **RAW-2** A port, and a range of RPC ids ([`Raw::first_id`]), belong to one driver of the host
//!   (network namespace) at a time, and are released however a process ends.
//! - **RAW-3** No id is used twice on a host while the host runs; see `ids`.
//!
//! The parts common with UDP, and their invariants, are documented at the root of the crate.

mod abstract_name;
mod config;
mod driver;
mod ended_neighbours;
mod ended_ports;
mod error;
mod filter;
mod ids;
mod port;
mod socket;

pub use config::RawConfig;
pub use driver::Raw;
pub use ended_neighbours::{AnswerForEnded, EndedNeighbours};
pub use ended_ports::EndedPorts;
pub use error::RawOpenError;
