//! The envelope: the bytes before the payload of every message of `apus-rpc`.
//!
//! The layout is specified in `docs/rpc/envelope.md`, with test vectors. Parsing never panics and
//! never allocates more than the message's length; a parsed envelope is written as the same bytes
//! (`tests/envelope`).

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
