//! A message transport with low tail latency: the Homa protocol in user space, over plain UDP.
//!
//! An [`Endpoint`] sends requests and serves them. There are no connections: an endpoint talks to
//! any number of peers. Each request and each response is a message of 0 bytes to 64 MB. Short
//! messages stay fast while long ones fill the network, because receivers schedule their senders.
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
//! [`tokio::Endpoint`] has the same methods for async applications, with `.await` on all methods
//! that open, send, receive or reply. [`Endpoint::builder`] sets options; [`EndpointHandle`] has
//! the methods that do not wait: counters, live RPCs, cancellation, corks, shutdown.
//!
//! # Examples
//!
//! Complete programs, in `examples` of the crate's repository:
//!
//! | `cargo run --example …` | |
//! |---|---|
//! | `echo` | the smallest service and its client |
//! | `kv`, `kv-tokio` | a key-value store with threads, and the same with tasks |
//! | `fan-out` | one request to many servers: the first answers count, the other calls are cancelled |
//! | `file` | files of up to 64 MB, each in one message |
//! | `tree-sync` | copies a tree of files, over apus and over TCP, used well and badly |
//!
//! # Guarantees
//!
//! - A request is executed **at most once**, however late its packets arrive or are duplicated. A
//!   failed call reports whether its request may have been executed ([`CallError::execution`]).
//! - Every accepted call **ends**: with a response, with an error that names the cause, or by being
//!   cancelled. Lost packets are retransmitted. A call without a deadline fails after [60
//!   s](EndpointBuilder::call_timeout).
//! - **Everything is bounded.** Every table and buffer has a limit in [`Config`]. At a limit,
//!   callers wait for room, and packets of peers are dropped and counted.
//! - There is **no order** between calls. Packets are sealed (encrypted and authenticated) if the
//!   endpoint has a `security` option, and in the clear otherwise.
//!
//! # Threads
//!
//! Any number of threads may share an endpoint. A thread that waits for a message polls the network
//! itself, so that an unloaded call needs no wake-up. [`Engine`] has the alternatives, and
//! [`PollMode`] sets for how long a thread spins before it sleeps. With [several
//! shards](EndpointBuilder::shards) an endpoint uses several cores.
//!
//! # Features
//!
//! | feature | adds | default |
//! |---|---|---|
//! | `tokio` | [`tokio::Endpoint`] | yes |
//! | `introspection` | counters and live RPCs for other processes: `apus::introspection` | yes |
//! | `metrics` | counters for the recorder of the `metrics` facade: `apus::metrics_bridge` | |
//! | `prometheus` | counters as OpenMetrics text and over HTTP: `apus::prometheus` | |
//! | `tls-ring`, `tls-aws-lc` | sealed packets, with the cryptography of either library: [`security`] | |
//! | `serde` | `Config`, `PollMode` and `Engine` in configuration files | |
//! | `toml` | `Settings`: an endpoint from a file | |
//!
//! # Sources
//!
//! HM `file` `symbol` in comments is that symbol of the Linux kernel's Homa module
//! (PlatformLab/HomaModule, commit 9edb958). `docs/reference` in the repository has the facts, and
//! the figures of papers that are cited.

#![deny(unsafe_code)]

/// Runs the examples of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

pub mod address;
mod arrival;
mod builder;
mod call;
mod client_watch;
mod cork;
mod endpoint;
mod engine;
mod error;
mod handle;
mod interruption;
#[cfg(feature = "introspection")]
pub mod introspection;
#[cfg(feature = "metrics")]
pub mod metrics_bridge;
pub mod local {
    //! Settings of the shared-memory path to peers on the same host (see
    //! [`EndpointBuilder::local_config`](crate::EndpointBuilder::local_config)), and the identities
    //! of such peers.

    pub use apus_local::{Credentials, LocalConfig, LocalLimits, PeerPolicy, RingSizes, udp_owner};
}
mod metrics;
pub mod overload;
#[cfg(feature = "prometheus")]
pub mod prometheus;
mod refusal;
mod request;
pub mod security;
#[cfg(feature = "toml")]
mod settings;
pub mod snapshot;
mod submission;
#[cfg(feature = "tokio")]
pub mod tokio;
pub mod trace;
mod warning;

pub use apus_observe::{EngineMetrics, Metrics, Queues};
pub use apus_proto::{
    CommandError, Config, ConfigBuilder, ConfigError, DropReason, Execution, FailureKind,
    MessageProgress, PARAMETERS, Parameter, Payload, Profile, Refusal, Role, RpcError, RpcInfo,
    RpcState,
};
pub use apus_socket::{RawConfig, RawOpenError, UdpConfig};
pub use arrival::Arrival;
pub use builder::{EndpointBuilder, Engine, ParseEngineError, ParseShardsError, Shards};
pub use bytes::Bytes;
pub use call::{CallId, CallOptions, Completion, OutgoingCall};
pub use client_watch::ClientWatch;
pub use cork::Cork;
pub use endpoint::Endpoint;
pub use engine::waiting::{ParsePollModeError, PollMode};
pub use error::{BindError, CallError, Closed, ReplyError};
pub use handle::EndpointHandle;
pub use request::Request;
#[cfg(feature = "toml")]
pub use settings::{Settings, SettingsError, TraceSettings, UdpSettings};
