//! Typed services: what the code that `#[apus_rpc::service]` generates calls.
//!
//! The traits and types are public because generated code names them. Applications use [`Streaming`], [`ServiceError`]
//! and the codecs.

pub mod blocking;
mod call;
mod codec;
mod error;
mod framing;
mod method;
mod options;
mod serve;
mod shape;
mod streaming;

pub use call::{
    Service, request, request_with_stream, response, response_or_error, send, stream,
    stream_or_error,
};
#[cfg(feature = "json")]
pub use codec::Json;
pub use codec::{Codec, CodecError, Message, Postcard};
pub use error::ServiceError;
pub use method::{Method, Shape};
pub use options::ClientOptions;
pub use serve::{
    arguments, arguments_with_stream, reply, reply_or_error, reply_stream, reply_stream_or_error,
    unknown_method,
};
pub use streaming::{Sender, Streaming};
