//! Layers around a sender of calls: retries and hedging, each with a budget.
//!
//! They are services of [`tower_service`] around another one, usually a
//! [`Balance`](crate::Balance):
//!
//! ```
//! use apus_rpc::layers::{Budget, Hedge, Retry};
//! use apus_rpc::{Balance, names};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let endpoint = apus::tokio::Endpoint::client().await?;
//! let servers = names::list(["10.0.0.7:4000".parse()?, "10.0.0.8:4000".parse()?]);
//! let service = Retry::new(Hedge::new(Balance::new(endpoint, servers)));
//! // For a generated client: StoreClient::new(service).
//! # let _ = service;
//! # Ok(())
//! # }
//! ```
//!
//! The execution decides about a retry, not the status code: `NotExecuted` is made again on another
//! server, `Unknown` only for idempotent calls, `Executed` never. A budget of 10 % keeps retries
//! from multiplying an overload. A hedge goes to another server or is not sent, so no server
//! executes a call twice. tower's own retry, hedge and p2c know no executions and cannot avoid
//! earlier servers.

mod budget;
mod hedge;
mod latency;
mod retry;

pub use budget::Budget;
pub use hedge::{Hedge, HedgeCounts};
pub use retry::Retry;
