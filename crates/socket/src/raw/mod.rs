//! The raw IP driver: packets on IP protocol 146, as the Linux Homa module sends them.
//!
//! [`Raw`] is a [`Driver`](apus_driver::Driver) over one raw socket of IP protocol 146. One packet of the engine is
//! one IP packet, never fragmented. It needs the capability CAP_NET_RAW; whoever lacks it gets
//! [`RawOpenError::NotPermitted`], which says how to give it to a program.
//!
//! # Ports
//!
//! There is no UDP here that would have ports. Packets begin with Homa's own, source and destination, two bytes each
//! (reference 1.1), and everything that wants to know ports reads them there: the port of
//! [`Arrival::from`](apus_driver::Arrival::from) and of [`NetworkReport::peer`](apus_driver::NetworkReport::peer) is the
//! peer's Homa port, the one of a [`RawConfig`] is ours. On the way out the port of
//! [`Burst::to`](apus_driver::Burst::to) does not matter: the engine has written it into the header.
//!
//! The system gives every packet of the protocol to every raw socket of the host. So
//!
//! - each socket has a *filter* that lets only its own port pass: nobody is woken by others' packets;
//! - who uses a port *reserves* it, in a table of the system that all processes of the host share and that forgets whoever
//!   ends (`port`);
//! - while one socket of the protocol is open on a host, the system no longer answers "protocol unreachable" there, not even
//!   for ports that nobody has: who calls such a port hears nothing.
//!
//! IPv4 and IPv6 are two protocols with two kinds of sockets. A driver speaks the one of the address that it is bound to:
//! `[::]` is all addresses of IPv6.
//!
//! # Invariants
//!
//! - **R1** The socket is open, and has its filter, before anybody learns the port: the first packet does not find a host without
//!   the protocol (reference 8.2 item 18).
//! - **R2** A port, and a range of RPC ids ([`Raw::first_id`]), belong to one driver of the host (network namespace)
//!   at a time, and nothing of either is left behind, however a process ends.
//! - **R3** No id is given out twice on a host while it runs; see `ids`.
//!
//! How packets are sent, received and reported is in `apus-socket`, whose invariants hold here, too.

mod config;
mod driver;
mod error;
mod filter;
mod ids;
mod name;
mod port;
mod socket;

pub use config::RawConfig;
pub use driver::Raw;
pub use error::RawOpenError;
