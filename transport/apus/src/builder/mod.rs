//! Options of an endpoint, and how it is opened and started.
//!
//! | file | content |
//! |---|---|
//! | `endpoint_builder` | the builder, generic over the endpoint that it opens: a setter for each option |
//! | `engine` | the option for the threads that run the loop |
//! | `shards` | the option for the number of shards |
//! | `options` | the collected settings, and the start of an endpoint from them |
//! | `blocking` | how a blocking endpoint is opened; `tokio/builder.rs` has the same for an async one |

mod blocking;
mod endpoint_builder;
mod engine;
mod options;
mod shards;

pub use endpoint_builder::EndpointBuilder;
pub use engine::{Engine, ParseEngineError};
#[cfg(feature = "tokio")]
pub(crate) use options::Ports;
pub use shards::{ParseShardsError, Shards};
