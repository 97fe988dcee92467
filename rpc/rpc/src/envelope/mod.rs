//! The envelope: what precedes the payload of every message of `apus-rpc`, as bytes.
//!
//! The layout is specified in `docs/rpc/envelope.md`, with test vectors. Parsing never panics and never allocates more
//! than the message has; what was parsed and is written again is the same bytes (`tests/envelope.rs`).

mod error;
mod fields;
mod incoming;
mod layout;
mod request;
mod response;
mod stream;

pub use error::EnvelopeError;
pub use incoming::RequestEnvelope;
pub use layout::{FIXED_LEN, MAGIC};
pub use request::CallHead;
pub use response::ResponseHead;
pub use stream::{StreamCommand, StreamHead};
