//! A message transport with low tail latency: the Homa protocol in user space, over plain UDP.
//!
//! An [`Endpoint`] sends requests and serves them. There are no connections: it talks to any number of
//! peers, each request is a message of 1 byte to 64 MB, and short messages stay fast while long ones
//! fill the network, because receivers grant them their share.
//!
//! ```
//! use apus::Endpoint;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Endpoint::bind("127.0.0.1:0")?;
//! let address = server.local_addr();
//! std::thread::spawn(move || {
//!     while let Ok(request) = server.recv_request() {
//!         let shout = request.payload().to_ascii_uppercase();
//!         let _ = request.reply(shout);
//!     }
//! });
//!
//! let client = Endpoint::client()?;
//! assert_eq!(client.call(address, "hello")?, "HELLO");
//! # Ok(())
//! # }
//! ```
//!
//! The same with tokio is in [`tokio`]: same names, `.await` behind them.
//!
//! # What is promised
//!
//! - A request is executed **at most once**, however late its packets are duplicated. A failed call
//!   says whether its request may have been executed ([`CallError::execution`]).
//! - A call that was accepted **ends**: with a response, with an error that says what happened, or by
//!   being cancelled. Lost packets are asked for again.
//! - **Nothing grows without bound.** Every table and buffer has a limit in [`Config`]; callers wait
//!   for room, peers' packets are dropped and counted.
//! - There is **no order** between calls, and no authentication or encryption.
//!
//! # Threads
//!
//! Any number of threads may share an endpoint. Whoever waits for a message polls the network itself,
//! so that an unloaded call needs no wake-up; see [`Engine`] for the alternatives and [`PollMode`] for how
//! long a thread spins before it sleeps.

#![deny(unsafe_code)]

/// The lines in the README are run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

mod builder;
mod call;
mod cork;
mod endpoint;
mod engine;
mod error;
#[cfg(feature = "introspection")]
pub mod introspection;
#[cfg(feature = "metrics")]
pub mod metrics_bridge;
pub mod local {
    //! How is the way through memory to peers of the same host set up?

    pub use apus_local::{LocalConfig, LocalLimits, PeerPolicy, RingSizes};
}
pub mod overload;
#[cfg(feature = "prometheus")]
pub mod prometheus;
mod request;
#[cfg(feature = "toml")]
mod settings;
pub mod snapshot;
mod submit;
#[cfg(feature = "tokio")]
pub mod tokio;
pub mod trace;

pub use apus_proto::{
    CommandError, Config, ConfigBuilder, ConfigError, DropReason, Execution, FailureKind,
    PARAMETERS, Parameter, Payload, Profile, Refusal, Role, RpcError, RpcInfo, RpcState,
};
pub use apus_socket::UdpConfig;
pub use apus_socket::{RawConfig, RawOpenError};
pub use builder::{EndpointBuilder, Engine, ParseEngineError};
pub use bytes::Bytes;
pub use call::{CallId, CallOptions, Completion};
pub use cork::Cork;
pub use endpoint::{Endpoint, Metrics, Queues};
pub use engine::metrics::EngineMetrics;
pub use engine::poll_mode::{ParsePollModeError, PollMode};
pub use error::{BindError, CallError, Closed, ReplyError};
pub use request::Request;
#[cfg(feature = "toml")]
pub use settings::{Settings, SettingsError, TraceSettings, UdpSettings};
