//! Generated [tonic] clients and servers over [`apus`](apus_rpc), unchanged, instead of HTTP/2.
//!
//! Generated clients can use any service of HTTP requests, and generated servers are such services.
//! Therefore no HTTP/2 is involved: a call is a call of [`apus_rpc`], with its methods, metadata,
//! deadlines, statuses and streams.
//!
//! A server changes one line, a client another:
//!
//! ```text
//! - use tonic::transport::Server;
//! + use apus_tonic::Server;
//!   Server::builder().add_service(GreeterServer::new(greeter)).serve(address).await?;
//!
//! - let mut client = GreeterClient::connect("http://10.0.0.7:50051").await?;
//! + let mut client = GreeterClient::new(apus_tonic::Channel::connect("10.0.0.7:50051".parse()?).await?);
//! ```
//!
//! `cargo run -p apus-tonic --example helloworld` is that program.
//!
//! # Similarities and differences
//!
//! - Unary calls and the three kinds of streams, metadata, `grpc-timeout`, statuses with details,
//!   compression, interceptors, health and reflection services work as over HTTP/2. A unary call is
//!   one call of the transport.
//! - Deadlines are inherited: a call made by a handler ends no later than the call that it serves.
//! - A failed call states whether it was executed: [`execution`].
//! - Metadata takes at most 32 kB ([`apus_rpc::Metadata::MAX_ENCODED`]).
//! - There are no connections, so there is no reconnecting. Encryption is an option of the endpoint
//!   ([`Channel::new`] takes a channel over a sealed one).
//! - Both sides must use this crate: peers with gRPC over HTTP/2 cannot be reached.

#![deny(unsafe_code)]

mod body;
mod channel;
mod handler;
mod headers;
mod server;
mod status;
mod timeout;

pub use channel::Channel;
pub use handler::{PeerAddr, handler};
pub use server::{Router, ServeError, Server};
pub use status::{EXECUTION, execution};
