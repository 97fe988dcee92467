//! Services over [`apus`]: named methods, metadata, propagated deadlines, statuses, and streams.
//!
//! # A typed service
//!
//! [`service`] turns a trait into a service: it generates a client, and a handler for servers.
//!
//! ```
//! use apus_rpc::{Channel, Server, Streaming};
//!
//! #[apus_rpc::service]
//! trait Greeter {
//!     #[idempotent]
//!     async fn greet(&self, name: String) -> String;
//!     async fn count(&self, to: u32) -> Streaming<u32>;
//! }
//!
//! struct English;
//!
//! impl Greeter for English {
//!     async fn greet(&self, name: String) -> String {
//!         format!("Hello, {name}!")
//!     }
//!
//!     async fn count(&self, to: u32) -> Streaming<u32> {
//!         Streaming::from_items(1..=to)
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let endpoint = apus::tokio::Endpoint::bind("127.0.0.1:0").await?;
//! let address = endpoint.local_addr();
//! tokio::spawn(Server::new(endpoint).add_service(GreeterServer::new(English)).serve());
//!
//! let client = GreeterClient::new(Channel::connect(address).await?);
//! assert_eq!(client.greet("World".into()).await?, "Hello, World!");
//! let mut numbers = client.count(2).await?;
//! assert_eq!(numbers.next().await.transpose()?, Some(1));
//! # Ok(())
//! # }
//! ```
//!
//! Arguments and results are owned types that implement serde's traits. Other types are a compile
//! error:
//!
//! ```compile_fail,E0277
//! struct Key;
//!
//! #[apus_rpc::service]
//! trait Store {
//!     async fn get(&self, key: Key) -> String;
//! }
//! ```
//!
//! `docs/rpc/services.md` in the repository describes how a service may evolve.
//!
//! # Below types
//!
//! A [`Server`] receives the calls of an endpoint and passes them to [`Handler`]s; a [`Channel`]
//! sends calls to a server. A [`Request`] consists of a method, options and a [`Body`]; a failed
//! call returns a [`Status`], whose [`execution`](Status::execution) states whether the request may
//! have been executed.
//!
//! ```
//! use apus_rpc::{BoxFuture, Channel, Handler, Request, Response, Server, Status};
//!
//! struct Shout;
//!
//! impl Handler for Shout {
//!     fn service(&self) -> &str {
//!         "example.Shout"
//!     }
//!
//!     fn call(&self, request: Request) -> BoxFuture<Result<Response, Status>> {
//!         Box::pin(async move {
//!             let text = request.into_body().into_bytes(1_000).await?;
//!             Ok(Response::new(text.to_ascii_uppercase()))
//!         })
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let endpoint = apus::tokio::Endpoint::bind("127.0.0.1:0").await?;
//! let address = endpoint.local_addr();
//! tokio::spawn(Server::new(endpoint).add_service(Shout).serve());
//!
//! let channel = Channel::connect(address).await?;
//! let response = channel.call(Request::new("example.Shout/shout", b"hello".to_vec())).await?;
//! assert_eq!(response.into_body().into_bytes(1_000).await?, "HELLO");
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! - **Deadlines are propagated.** The server receives the time left, executes no expired call, and
//!   ends a handler at its deadline. Calls made by a handler inherit its deadline and its trace
//!   ([`Context`]).
//! - A failure states **whether the request was executed**. If it was not, it may be retried at
//!   another server.
//! - A panic in a handler fails only that call.
//! - **Everything is bounded**: metadata, concurrent calls and streams, outstanding steps of a
//!   stream. The reader limits the length of a message.
//! - A stream has **credit**: a reader that pauses stops its writer.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `json` | `Json`, a self-describing format for arguments and results |
//! | `dns` | servers from DNS: `names::dns` and `names::dns_at` |
//! | `discover` | servers for tower balancers: `names::Discover` |
//! | `opentelemetry` | spans for clients and servers: `telemetry` |
//!
//! `docs/rpc/envelope.md` in the repository specifies the wire format.

#![deny(unsafe_code)]

mod balance;
mod body;
mod byte_str;
mod client;
mod code;
mod context;
pub mod envelope;
mod handler;
pub mod layers;
mod limits;
mod message;
mod metadata;
mod notifications;
mod pieces;
mod server;
mod status;
#[cfg(feature = "opentelemetry")]
pub mod telemetry;
mod trace_context;
pub mod typed;

pub use apus;
pub use apus::{BindError, Execution};
pub use apus_macros::service;
pub use balance::{Balance, names};
pub use body::{Body, Frame};
pub use byte_str::ByteStr;
pub use client::{BlockingChannel, Channel};
pub use code::Code;
pub use context::Context;
pub use handler::{BoxFuture, Handler, from_service};
pub use message::{Request, Response};
pub use metadata::{Metadata, MetadataError};
pub use notifications::{NotificationCounts, Notifications};
pub use server::{HEALTH_METHOD, Health, Server, ServerControl};
pub use status::Status;
pub use trace_context::TraceContext;
#[cfg(feature = "json")]
pub use typed::Json;
pub use typed::{Postcard, ServiceError, Streaming};
