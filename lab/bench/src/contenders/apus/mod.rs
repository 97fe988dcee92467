//! apus as a contender.
//!
//! It is used as in any application: through the public interface of the crate `apus`, with default
//! parameters unless a plan has others, one endpoint and one thread on each side. `client` and
//! `server` hold the loops of the two sides.
//!
//! - [`Apus`]: in `rtt`, `throughput`, `rate` and `local`.
//! - [`Sharded`]: in `rate --shards`.
//! - [`ReceiveMode`]: in `handoff`.
//! - [`TracedApus`]: in `rtt` and `rate` on request, with other time traces than the default.
//! - [`SealedApus`]: in `rtt`, `throughput` and `rate` with `--sealed`.
//! - [`BarePair`]: in `local`, the layer below an endpoint.
//!
//! # Invariants
//!
//! - **CONTENDER-1**: All endpoints of experiments are configured by `builder` (in `path`), which
//!   selects the path of their messages. All experiments except `local` measure the network path:
//!   their endpoints must not use shared memory, the default for peers on the same host.
//! - **CONTENDER-2**: Messages took the path that the result names: the messages that count are
//!   compared with the counters of the endpoint.

mod client;
mod endpoint;
pub mod engine_counters;
mod exchange;
mod pair;
pub mod path;
mod receive_mode;
mod sealed_apus;
pub mod server;
mod sharded;
mod traced_apus;

pub use endpoint::{open, serve_at};
pub use exchange::{Apus, Calls};
pub use pair::BarePair;
pub use pair::both_sides;
pub use path::Path;
pub use path::{builder, configured};
pub use receive_mode::ReceiveMode;
pub use receive_mode::counters;
pub use sealed_apus::SealedApus;
pub use sharded::Sharded;
pub use traced_apus::TracedApus;
