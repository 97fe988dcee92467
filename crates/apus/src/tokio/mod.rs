//! The endpoint for async applications: the names of [`crate::Endpoint`], with `.await` behind them.
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
//! let client = Endpoint::client()?;
//! assert_eq!(client.call(address, "hello").await?, "HELLO");
//! # Ok(())
//! # }
//! ```
//!
//! A task of the runtime turns the endpoint's loop. Dropping a future cancels what it waits for: a call
//! that is dropped is cancelled at the server too.

mod endpoint;
mod request;

pub use endpoint::Endpoint;
pub use request::Request;
