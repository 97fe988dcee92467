//! How do two processes of one host exchange requests and responses without the kernel?
//!
//! Through memory that both map, one piece for each client and server, in which messages lie in rings. What the
//! kernel is still needed for: to meet, to sleep, and to notice that the other has died. Linux only.
//!
//! ```
//! use apus_local::{LocalConfig, PairEvent, Local, Lookup, PeerName, ReceiveQuota, PollSet};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let text = format!("doc/{}", std::process::id());
//! # let name = PeerName::new(&text);
//! # let quota = ReceiveQuota::default();
//! // One of them usually lives in another process.
//! let server = Local::new(Some(&name), LocalConfig::default())?;
//! let client = Local::new(None, LocalConfig::default())?;
//!
//! let Lookup::Greeted(attempt) = client.find(&name)? else { panic!("they did not know each other") };
//! let mut sweep = PollSet::default();
//! while server.pairs().is_empty() {
//!     server.poll_sockets(&mut sweep, None)?; // sleeps until somebody comes
//! }
//! let Lookup::Pair(pair) = client.advance(attempt)? else { panic!("it was let in") };
//!
//! pair.send(1, &["hello".into()])?;
//! server.receive(&mut sweep, quota, |pair, arrival| {
//!     if let apus_local::PollEvent::Event(PairEvent::Request { id, payload }) = arrival {
//!         let _ = pair.send(id, &[payload.to_ascii_uppercase().into()]); // the client may have gone
//!     }
//! });
//! let mut events = Vec::new();
//! pair.receive(quota, &mut events)?;
//! assert_eq!(events, [PairEvent::Response { id: 1, payload: "HELLO".into() }]);
//! # Ok(())
//! # }
//! ```
//!
//! # The way of a message
//!
//! ```text
//! Pair::send ─▶ SendBatch ─▶ outbox ─┬ short ─▶ ring ─────────────────┐   (sending lock of the pair)
//!                                └ long ─▶ queue, SRPT ─▶ chunks ─┤
//!               wake: does the other side sleep? ◀────────────────┘
//!                                   │ futex, or a byte into the socket
//!                                   ▼
//! Local::receive ─▶ PollSet ─▶ Pair::receive ─▶ inbox ◀── ring          (receiving lock of the pair)
//! ```
//!
//! These names are modules. `unsafe` is in `memory`, which maps, reads and writes the shared bytes, and in
//! `credentials`, which asks who the peer is. How locks and atomics are used, and in which order, stands at the heads of
//! `link` (a pair), `ring` and `wake` (between processes) and `registry` (all pairs); docs/adr/0024 says why.
//!
//! # What is promised
//!
//! - **At most once.** A ring neither loses nor repeats: each request is handed out once. When the peer dies,
//!   [`Pair::may_have_arrived`] tells which requests were certainly not executed. No acknowledgment travels: how far
//!   the peer has read says it.
//! - **Back-pressure.** A message that finds no room is refused ([`SendError::Full`]), and [`PairEvent::Room`] says when
//!   to try again. What was accepted is sent, unless it is cancelled or the pair ends.
//! - **Bounds.** [`LocalLimits`] of each pair; nothing else grows.
//! - **A peer hurts itself alone**, whatever it writes into the memory, and whenever it dies.
//!
//! Deadlines are the caller's: it cancels ([`Pair::cancel`]).

#![deny(unsafe_code)]

mod close;
#[cfg(not(apus_local_loom))]
mod config;
#[expect(unsafe_code, reason = "SO_PEERCRED")]
#[cfg(not(apus_local_loom))]
mod credentials;
#[cfg(not(apus_local_loom))]
mod doorbell;
mod error;
mod free_list;
#[cfg(not(apus_local_loom))]
mod handshake;
#[cfg(not(apus_local_loom))]
mod hello;
mod inbox;
mod layout;
mod limits;
mod link;
#[cfg(not(apus_local_loom))]
mod local;
mod lock;
#[expect(unsafe_code, reason = "the mapping, and copying into and out of it")]
#[cfg(not(apus_local_loom))]
mod memory;
#[cfg(apus_local_loom)]
#[expect(unsafe_code, reason = "loom's cells are not shared by themselves")]
#[path = "model_memory.rs"]
mod memory;
#[cfg(all(test, apus_local_loom))]
mod model;
#[cfg(not(apus_local_loom))]
mod name;
mod outbox;
#[cfg(not(apus_local_loom))]
mod pair;
mod peek;
#[cfg(not(apus_local_loom))]
mod poll_set;
mod record;
mod registry;
mod ring;
#[cfg(not(apus_local_loom))]
mod segment;
#[cfg(not(apus_local_loom))]
mod socket;
mod sync;
mod wake;

pub use apus_wire::Role;
pub use error::{ConnectError, Disconnected, Rejection, SendError, Violation};
pub use inbox::PairEvent;
pub use layout::RingSizes;
pub use limits::LocalLimits;
pub use lock::LockMisses;
pub use outbox::SendTicket;
#[cfg(not(apus_local_loom))]
pub use {
    config::LocalConfig,
    credentials::{Credentials, PeerPolicy},
    handshake::{Accepting, Connecting, Listener},
    local::{ConnectAttempt, Local, Lookup, PeerState, PollOutcome},
    name::PeerName,
    pair::{Pair, Peer, ReceiveQuota, SendBatch},
    poll_set::{PollEvent, PollSet},
};
