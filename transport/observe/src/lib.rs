//! Observation of [apus](https://docs.rs/apus) endpoints: counters and their names, exporters for
//! them, and inspection of live processes.
//!
//! ```text
//!   Metrics ──▶ snapshot ──┬──▶ introspection: other processes, over a unix socket
//!   (an endpoint)          ├──▶ prometheus: OpenMetrics text, and over HTTP
//!                          └──▶ metrics_bridge: the recorder of the `metrics` facade
//! ```
//!
//! | module | |
//! |---|---|
//! | (root) | [`Metrics`]: all counters of an endpoint at one moment |
//! | [`snapshot`] | counters by name, of all endpoints of a process: to store, compare and add; the catalogue of names |
//! | `introspection` | counters, live RPCs and traces of live processes (feature `introspection`) |
//! | `prometheus` | OpenMetrics text and an exporter (feature `prometheus`) |
//! | `metrics_bridge` | counters for the recorder of the `metrics` facade (feature `metrics`) |
//!
//! Exporters are independent of the set of counters: they walk the families of the catalogue, so a
//! new counter appears in all of them.
//!
//! Applications find all of this in the crate `apus`. Programs that only read the counters of other
//! processes need only this crate.

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
