//! The counters of [apus](https://docs.rs/apus) endpoints: their names and meanings, snapshots of a process, and the text
//! for Prometheus.
//!
//! | module | |
//! |---|---|
//! | (root) | [`Metrics`]: all counters of an endpoint at one moment |
//! | `introspection` | counters, live RPCs and traces of live processes, over a unix socket (feature `introspection`) |
//! | [`snapshot`] | the same by name, of all endpoints of a process: to store, compare and add |
//! | `prometheus` | OpenMetrics text (feature `prometheus`) |
//! | `metrics_bridge` | counters for the recorder of the `metrics` facade (feature `metrics`) |
//!
//! Applications find all of this in the crate `apus`. Programs that only read the counters of others need no more than
//! this crate.

#![forbid(unsafe_code)]

mod endpoint;
mod engine;
#[cfg(feature = "introspection")]
pub mod introspection;
#[cfg(feature = "metrics")]
pub mod metrics_bridge;
#[cfg(feature = "prometheus")]
pub mod prometheus;
mod read_time;
mod sealing;
pub mod snapshot;

pub use apus_proto::histogram::SizeHistogram;
pub use endpoint::{Metrics, Queues};
pub use engine::EngineMetrics;
pub use read_time::ReadTime;
pub use sealing::SEALING;
