//! Interface between a fabric and its hosts.
//!
//! A host accepts messages from applications and packets from its link, and returns packets when
//! its link is free. The fabric has no other access to it, so that all transports under comparison
//! have the same conditions.
//!
//! # Contract
//!
//! After any call that passes something to the host, [`Host::poll_outcome`] is called until it
//! returns `None`, [`Host::transmit`] as soon as the link is free, and [`Host::handle_timeout`] at
//! [`Host::next_timeout`].

mod address;
mod apus;
mod frame;
mod interface;
mod module;
mod processes;
mod spray;

pub use address::{PORT, address, host_at};
pub use apus::{Answer, ApusHost, Shared, wire_bytes};
pub use frame::Frame;
pub use interface::Host;

pub use module::{MixedHost, ModuleHost};
pub use processes::ProcessesHost;
pub use spray::SprayPorts;
