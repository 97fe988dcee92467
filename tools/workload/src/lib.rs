//! How large are messages, and when do they arrive?
//!
//! Load on a message transport is described by two things that are drawn independently of each
//! other:
//!
//! - [`Sizes`], a distribution of message sizes: the published workloads W1 to W5, one fixed size,
//!   or a file ([`Workload`] is the name by which people ask for one of them);
//! - [`Arrivals`], the instants at which messages are handed to the transport. They are Poisson and
//!   never wait for the transport (open loop), so that a slow one cannot hide its own delays.
//!
//! [`PacketOverhead`] connects the two: a load of 80 % of a link is a rate of messages only when it is
//! known what a message costs on the wire.
//!
//! ```
//! use apus_workload::{Arrivals, PacketOverhead, Stream, Workload, rng};
//! use rand::distr::Distribution;
//!
//! let workload: Workload = "w4".parse()?;
//! let sizes = workload.sizes().truncated(1_000_000);
//!
//! let mean_wire_bytes = PacketOverhead::UDP_OVER_ETHERNET.mean_wire_bytes(&sizes);
//! let arrivals = Arrivals::at_load(0.8, 10e9, mean_wire_bytes, rng(1, Stream::Arrivals));
//!
//! let mut rng = rng(1, Stream::Sizes);
//! for at in arrivals.take(3) {
//!     println!("{at:?}: {} bytes", sizes.sample(&mut rng));
//! }
//! # Ok::<(), apus_workload::WorkloadError>(())
//! ```
//!
//! # Invariants
//!
//! - **L1** Everything random comes from a generator that the caller seeds with [`rng`]; equal seeds
//!   give equal messages, on every machine and with every release.
//! - **L2** No message is empty: the protocol has no empty messages, so every size is at least 1.

#![forbid(unsafe_code)]

mod arrivals;
mod cdf;
mod overhead;
mod sizes;
mod stream;
mod tables;
pub mod time;
pub mod units;
mod workload;

pub use arrivals::Arrivals;
pub use cdf::CdfError;
pub use overhead::PacketOverhead;
pub use sizes::Sizes;
pub use stream::{Stream, rng};
pub use time::{Nanos, Rate};
pub use workload::{Workload, WorkloadError};
