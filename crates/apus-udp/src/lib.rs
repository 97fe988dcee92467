//! How do packets travel over plain UDP, at the least cost per packet?
//!
//! [`Udp`] is a [`Driver`](apus_driver::Driver) over one unconnected socket that needs no privileges.
//! It sends packets of equal size for one peer in one system call (UDP_SEGMENT), receives them merged
//! (UDP_GRO), carries priorities in the traffic class, and turns ICMP errors into reports.
//!
//! ```
//! use apus_driver::{Burst, Driver};
//! use apus_udp::{Udp, UdpConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let driver = Udp::open(&UdpConfig::bound_to("127.0.0.1:0".parse()?))?;
//! let to = driver.local_addr();
//! let (mut transmit, mut receive) = Box::new(driver).split();
//! let burst = Burst {
//!     to,
//!     from: None,
//!     traffic_class: 0,
//!     headers: b"header",
//!     header_len: 6,
//!     payload: &[b"and ", b"payload"],
//!     segment: 11,
//! };
//! transmit.send(&burst)?;
//! transmit.flush()?;
//! while receive.receive(64)? == 0 { /* or poll(2) on the descriptor */ }
//! receive.drain(&mut |arrival| assert_eq!(arrival.packet, b"headerand payload"));
//! # Ok(())
//! # }
//! ```
//!
//! # The way of a packet
//!
//! ```text
//! transmit ─┬ small ─▶ staging ─▶ group: copied, one per peer, class and size ─ flush ─┐
//!           └ large ─▶ gather: from the borrowed slices ───────────────────────────────┤
//!                                                                                      ▼
//! network ◀── kernel ◀──────────────────────────────────────────────────────────────── submit
//!
//! network ──▶ kernel ─▶ receive: cut apart by what cmsg tells
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
//! - **U3** What the system lacks costs speed and never correctness. Each missing feature can be
//!   played through [`UdpConfig`].

#![deny(unsafe_code)]

mod address;
mod batch;
mod class;
mod cmsg;
mod config;
#[cfg(test)]
mod corpus;
mod counters;
mod detect;
mod error_queue;
mod errors;
mod group;
#[allow(unsafe_code)] // The system calls, and nothing else.
mod kernel;
mod link;
mod mtu;
mod receive;
mod shared;
mod socket;
mod staging;
mod submit;
mod transmit;
mod udp;

pub use config::UdpConfig;
pub use counters::Counters;
pub use socket::OpenError;
pub use udp::Udp;
