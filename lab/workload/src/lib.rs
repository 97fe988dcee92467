//! Message sizes and arrival times of experiments.
//!
//! Two independent random processes describe the load on a message transport:
//!
//! - [`SizeDistribution`]: message sizes, as in the published workloads W1 to W5, of one fixed
//!   size, or from a file. [`Workload`] is such a distribution with the name that selects it.
//! - [`Arrivals`]: the submission times of messages. They are Poisson and never wait for the
//!   transport (open loop), so a slow transport cannot hide its delays.
//!
//! [`PacketOverhead`] connects the two: the size of a message on the wire converts 80 % of a link's
//! rate into a rate of messages.
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
//! - **WORKLOAD-1**: All randomness comes from a generator that the caller seeds with [`rng`].
//!   Equal seeds give equal messages, on every machine and with every release.
//! - **WORKLOAD-2**: A message is at least one packet on the wire, also if its size is 0.

#![forbid(unsafe_code)]

mod arrivals;
mod cdf;
pub mod csv_table;
mod overhead;
mod published;
mod random;
mod size_distribution;
pub mod time;
pub mod units;
mod workload;

pub use arrivals::Arrivals;
pub use cdf::CdfError;
pub use overhead::PacketOverhead;
pub use random::{Stream, rng};
pub use size_distribution::SizeDistribution;
pub use time::{Nanos, Rate};
pub use workload::{Workload, WorkloadError};
