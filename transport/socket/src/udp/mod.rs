//! The UDP driver: opens a socket and enables the features that the system offers.
//!
//! [`Udp`] is a [`Driver`](apus_driver::Driver) over one unconnected socket, without privileges;
//! frequent peers have additional connected sockets, which only send. It sends packets of equal
//! size for one peer in one system call (UDP_SEGMENT), receives them merged (UDP_GRO), carries
//! priorities in the traffic class, and turns ICMP errors into reports.
//!
//! ```
//! use apus_driver::{Burst, Driver};
//! use apus_socket::{Udp, UdpConfig};
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
//!     coalesce: 0,
//! };
//! transmit.send(&burst)?;
//! transmit.flush()?;
//! while receive.receive(64)? == 0 { /* or poll(2) on the descriptor */ }
//! receive.drain(&mut |arrival| assert_eq!(arrival.packet, b"headerand payload"));
//! # Ok(())
//! # }
//! ```

mod bpf;
mod coalescing;
mod config;
mod driver;
mod features;
mod socket;
mod spread;

pub use config::UdpConfig;
pub use driver::Udp;
