//! Options of an endpoint, and how it is opened and started.
//!
//! | file | content |
//! |---|---|
//! | `endpoint_builder` | the builder, generic over the endpoint that it opens: a setter for each option |
//! | `engine` | the option that says which threads run the loop |
//! | `options` | what the builder has collected, and what that opens and starts |
//! | `blocking` | how a blocking endpoint is opened; `tokio/builder.rs` has the same for an async one |

mod blocking;
mod endpoint_builder;
mod engine;
mod options;

pub use endpoint_builder::EndpointBuilder;
pub use engine::{Engine, ParseEngineError};
