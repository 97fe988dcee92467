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
//! Here is how the socket is opened; the way of a packet is in `apus-socket`.
//!
//! # Invariants
//!
//! - **U3** What the system lacks costs speed and never correctness. Each missing feature can be
//!   played through [`UdpConfig`].

#![forbid(unsafe_code)]

mod config;
mod detect;
mod socket;
mod udp;

pub use apus_socket::{Counters, OpenError};
pub use config::UdpConfig;
pub use udp::Udp;
