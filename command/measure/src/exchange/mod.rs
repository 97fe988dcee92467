//! An exchange: requests and replies between two endpoints on this machine, each in its own
//! process.
//!
//! The endpoints are used as in any application: through the public interface of the crate `apus`,
//! with default parameters unless the plan overrides them, one endpoint and one thread on each
//! side.
//!
//! ```text
//!   pair               starts both sides, and returns their figures; optionally their time traces
//!   sides              the server and the client, for one or many outstanding calls
//!   client, server     the loops of both sides
//!   endpoint, path     opening of endpoints; the path of their messages
//!   engine_counters    counters of an endpoint, reported by a side
//! ```
//!
//! # Invariants
//!
//! - **EXCHANGE-1**: All endpoints of experiments are configured by `builder` (in `path`), which
//!   selects the path of their messages. All experiments except `local` measure the network path:
//!   their endpoints must not use shared memory, the default for peers on the same host.
//! - **EXCHANGE-2**: Messages took the path named in the result: the number of measured messages is
//!   compared with the counters of the endpoint.

pub mod client;
pub mod endpoint;
pub mod engine_counters;
mod pair;
pub mod path;
pub mod server;
mod sides;

pub use endpoint::{open, serve_at};
pub use pair::{JOBS, Pair, Recording};
pub use path::{Path, builder, configured};
pub use sides::{Calls, Exchange};
