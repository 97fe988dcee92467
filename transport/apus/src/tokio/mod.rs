//! The endpoint for async applications: the methods of [`crate::Endpoint`], with `.await` on all
//! methods that open, send, receive, reply or drain. Methods that never wait have none: the methods
//! of [`EndpointHandle`](crate::EndpointHandle), `builder`, and `try_recv_…`.
//!
//! ```
//! use apus::tokio::Endpoint;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Endpoint::bind("127.0.0.1:0").await?;
//! let address = server.local_addr();
//! tokio::spawn(async move {
//!     while let Ok(request) = server.recv_request().await {
//!         let shout = request.payload().to_ascii_uppercase();
//!         let _ = request.reply(shout).await;
//!     }
//! });
//!
//! let client = Endpoint::client().await?;
//! assert_eq!(client.call(address, "hello").await?, "HELLO");
//! # Ok(())
//! # }
//! ```
//!
//! A task of the runtime runs the endpoint's loop; the endpoint is closed when the runtime ends.
//! The runtime needs IO and time enabled, as `#[tokio::main]` has them.
//!
//! In turns with the other tasks, that task polls the network for 50 µs after the last message
//! before it sleeps; [`PollMode`](crate::PollMode) sets the time, and `Block` has it sleep at once.
//! Messages that other tasks of its thread send leave when they have run, in few system calls. So a
//! task that computes for long delays the messages of the tasks before it: it should yield, as for
//! any other socket of the runtime.
//!
//! Dropping a future cancels its operation; the server is notified of a cancelled call.

mod builder;
mod endpoint;
mod request;

pub use builder::EndpointBuilder;
pub use endpoint::Endpoint;
pub use request::Request;
