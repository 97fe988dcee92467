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

mod budget;
mod hedge;
mod latency;
mod retry;

pub use budget::Budget;
pub use hedge::{Hedge, HedgeCounts};
pub use retry::Retry;
