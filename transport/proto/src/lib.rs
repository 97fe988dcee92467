//! The Homa protocol as a state machine that does no IO.
//!
//! One object, [`Transport`], is one endpoint: client and server at once. It takes *commands* from
//! the application, *packets* from the network and the *time*; it returns packets, events and the
//! time at which it must be called again. It never waits, locks, logs or reads a clock, so that the
//! same code runs under an engine with real sockets, under a simulator and under a fuzzer.
//!
//! # The contract
//!
//! Calls may be made in any order; only latency depends on it. One rule must be kept: **after any
//! other call, empty [`Transport::poll_event`] and [`Transport::poll_transmit`], and call
//! [`Transport::handle_timeout`] at [`Transport::next_timeout`].** This is the whole loop, for two
//! endpoints connected by function calls:
//!
//! ```
//! use apus_proto::{Call, Config, Datagram, Event, Instant, Transport};
//! use std::time::Duration;
//!
//! let addresses = ["10.0.0.1:1", "10.0.0.2:2"].map(|a| a.parse().unwrap());
//! let mut ends = [1, 2].map(|port| Transport::new(Config::default(), port, 42 + u128::from(port)));
//! let mut now = Instant::ZERO;
//!
//! let call = Call {
//!     to: addresses[1],
//!     payload: "ping".into(),
//!     cookie: 7,
//!     deadline: None,
//!     idempotent: false,
//! };
//! ends[0].call(now, call).unwrap();
//!
//! let response = 'done: loop {
//!     for i in 0..2 {
//!         // Events, to the application.
//!         while let Some(event) = ends[i].poll_event() {
//!             match event {
//!                 Event::Request { rpc, payload, .. } => {
//!                     ends[i].payload_consumed(payload.len());
//!                     ends[i].reply(now, rpc, "pong".into()).unwrap();
//!                 }
//!                 Event::Response { payload, cookie: 7, .. } => break 'done payload,
//!                 _ => {}
//!             }
//!         }
//!         // Packets, to the network.
//!         let mut packets = Vec::new();
//!         while let Some(transmit) = ends[i].poll_transmit(now) {
//!             let payload: Vec<u8> = transmit.payload().flatten().copied().collect();
//!             packets.push([transmit.headers(), &payload].concat()); // bursts have one packet here
//!         }
//!         for packet in packets {
//!             ends[1 - i].handle_datagram(now, Datagram::new(addresses[i], &packet));
//!         }
//!         // Time.
//!         if ends[i].next_timeout().is_some_and(|(at, _)| at <= now) {
//!             ends[i].handle_timeout(now);
//!         }
//!     }
//!     now += Duration::from_micros(1);
//! };
//! assert_eq!(response, "pong");
//! ```
//!
//! # Families of calls
//!
//! 1. **Commands:** [`Transport::call`], [`Transport::reply`], [`Transport::cancel`],
//!    [`Transport::abandon`].
//! 2. **Inputs:** [`Transport::handle_datagram`], [`Transport::handle_unreachable`],
//!    [`Transport::handle_timeout`].
//! 3. **Outputs:** [`Transport::poll_transmit`], [`Transport::poll_event`],
//!    [`Transport::next_timeout`].
//! 4. **Housekeeping:** [`Transport::payload_consumed`], [`Transport::set_payload_prefix`],
//!    [`Transport::set_birth`], [`Transport::set_packet_limit`], [`Transport::set_link_rate`],
//!    [`Transport::set_serving`], [`Transport::shut_down`], [`Transport::freeze_peers`], [`Transport::observe_neighbours`],
//!    [`Transport::observe_lengths`].
//! 5. **Introspection:** [`Transport::info`], [`Transport::metrics`], [`Transport::config`]; single
//!    RPCs with [`Transport::set_probe_filter`] and [`Transport::poll_probe`] ([`probe`]).
//!
//! # Invariants
//!
//! - **CORE-1** The same calls give the same results, bit for bit, independent of memory addresses,
//!   hash orders, floats and clocks.
//! - **CORE-2** No packet from a peer causes an error or a panic; each is used, or counted as a
//!   [`DropReason`].
//! - **CORE-3** Every call that was accepted ends with exactly one event, unless it is cancelled.
//! - **CORE-4** When all RPCs have ended, no table holds anything but peers and sessions
//!   ([`Metrics::live`]).
//! - **CORE-5** Work per call is bounded: no call visits all RPCs, except when a peer disappears or
//!   the endpoint shuts down.
//!
//! Nothing in this crate reads a clock, blocks, locks, allocates per packet in steady state, or has
//! a type parameter. The requirements that the code obeys are numbered in `docs/spec/`; the layers
//! of its modules are in `tests/layers.rs`.
//!
//! # Hints to inline
//!
//! Functions marked `#[inline(always)]` are steps on the path of every packet. Without the hint
//! LLVM calls some of them, and moves their arguments and results through memory: an exchange of
//! one packet each way then takes 5 % more instructions (lab/log, 2026-11-28). Each
//! `#[inline(never)]` states its own reason.
//!
//! # Sources
//!
//! HM `file` `symbol` in comments is that symbol of the Linux kernel's Homa module
//! (PlatformLab/HomaModule, commit 9edb958). `docs/reference` in the repository has the facts, and
//! the figures of papers that are cited.

#![forbid(unsafe_code)]

mod allowed;
mod budget;
mod config;
mod datagram;
mod drop_reason;
mod error;
mod event;
mod expiry;
mod extent;
mod grant;
pub mod histogram;
mod inbound;
mod lifecycle;
mod limits;
mod message;
mod metrics;
mod neighbours;
mod observation;
mod peer;
mod priority;
pub mod probe;
mod protocol;
mod quota;
mod ranges;
mod rpc;
mod rpc_key;
mod rx;
mod secret;
mod slots;
mod time;
mod timer;
mod transport;
mod tx;
mod unread_bounds;

pub use apus_wire::{Flags, Kind, Profile, Refusal, Role, SenderId, acknowledge_for_ended_client};
pub use config::{Config, ConfigBuilder, ConfigError, PARAMETERS, Parameter};
pub use datagram::Datagram;
pub use drop_reason::DropReason;
pub use error::{CommandError, Execution, FailureKind, Rejected, RpcError};
pub use event::Event;
pub use message::{Payload, PayloadPieces};
pub use metrics::{
    Admission, COARSE_BOUNDS, Calls, CoarseHistogram, DurationHistogram, Exemplar, Exemplars, Live,
    Metadata, Metrics, Progress, Recovery, Scheduling,
};
pub use neighbours::{ArrivingLengths, Neighbours, Published};
pub use peer::Address;
pub use rpc::RpcKey;
pub use time::Instant;
pub use timer::TimeoutReason;
pub use transport::{
    Call, MessageProgress, RpcInfo, RpcState, SenderInfo, Senders, StatedLife, Transport,
    Unreachable,
};
pub use tx::Transmit;
pub use unread_bounds::UnreadBounds;
