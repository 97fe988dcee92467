//! Requests and responses between processes of one host, through shared memory.
//!
//! Each client and server share one memory segment, whose rings carry the messages. The kernel is
//! needed only to connect, to sleep, and to detect the death of the peer. Linux only.
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
//! let Lookup::Started(attempt) = client.find(&name)? else { panic!("no pair exists yet") };
//! let mut poll_set = PollSet::default();
//! while server.pairs().is_empty() {
//!     server.poll_sockets(&mut poll_set, None)?; // sleeps until a client connects
//! }
//! let Lookup::Pair(pair) = client.advance(attempt)? else { panic!("the server has accepted") };
//!
//! pair.send(1, &["hello".into()])?;
//! server.receive(&mut poll_set, quota, |pair, event| {
//!     if let apus_local::PollEvent::Event(PairEvent::Request { id, payload }) = event {
//!         // Fails if the client has disconnected.
//!         let _ = pair.send(id, &[payload.to_ascii_uppercase().into()]);
//!     }
//! });
//! let mut events = Vec::new();
//! pair.receive(quota, &mut events)?;
//! assert_eq!(events, [PairEvent::Response { id: 1, payload: "HELLO".into() }]);
//! # Ok(())
//! # }
//! ```
//!
//! # Path of a message
//!
//! ```text
//! Pair::send ─▶ SendBatch ─▶ outbox ─┬ short ─▶ ring ───────────────┐   (sending lock of the pair)
//!                                    └ long ─▶ queue, SRPT ─▶ chunks ┤
//!               sleep: does the peer sleep? ◀───────────────────────┘
//!                                   │ futex, or a byte into the socket
//!                                   ▼
//! Local::receive ─▶ PollSet ─▶ Pair::receive ─▶ inbox ◀── ring          (receiving lock of the pair)
//! ```
//!
//! These names are modules. The folders are layers, from the bottom to the top: `memory` (mapping
//! and layout), `ring` (records), `socket` (meeting and credentials), `page` (memory of many
//! processes), `pair` (messages), `handshake`, `endpoint` (all pairs); `tests/layers.rs` holds the
//! imports that are allowed between them.
//!
//! `unsafe` is confined to `memory::mapping`, which maps, reads and writes the shared bytes, and to
//! `socket::credentials`, which reads the peer's identity from the kernel. The use and order of
//! locks and atomics is documented at the heads of `pair::link` (one pair), `ring` and
//! `pair::sleep` (between processes) and `endpoint::registry` (all pairs); docs/adr/0011 gives the
//! reasons.
//!
//! # Guarantees
//!
//! - **At most once.** A ring neither loses nor repeats records: each request is delivered once.
//!   When the peer dies, [`Pair::may_have_arrived`] identifies the requests that were certainly not
//!   executed. No acknowledgments are sent: the peer's read position serves as one.
//! - **Back-pressure.** A message without room is refused ([`SendError::Full`]), and
//!   [`PairEvent::Room`] reports when to retry. An accepted message is sent, unless it is cancelled
//!   or the pair ends.
//! - **Bounds.** [`LocalLimits`] bounds everything that a pair stores.
//! - **A faulty peer harms only itself**, whatever it writes into the memory and whenever it dies.
//!
//! Deadlines belong to the caller, which cancels a call with [`Pair::cancel`].

#![deny(unsafe_code)]

#[cfg(not(apus_local_loom))]
mod config;
mod endpoint;
mod error;
#[cfg(not(apus_local_loom))]
mod handshake;
mod lock;
mod memory;
#[cfg(all(test, apus_local_loom))]
mod model;
#[cfg(not(apus_local_loom))]
mod page;
mod pair;
mod poll_balance;
mod ring;
#[cfg(not(apus_local_loom))]
mod socket;
mod sync;

pub use apus_wire::Role;
pub use error::{ConnectError, Disconnected, Rejection, SendError, Violation};
pub use lock::LockMisses;
pub use memory::layout::RingSizes;
pub use pair::inbox::PairEvent;
pub use pair::limits::LocalLimits;
pub use pair::outbox::SendTicket;
pub use poll_balance::PollBalance;
#[cfg(not(apus_local_loom))]
pub use {
    config::LocalConfig,
    endpoint::local::{ConnectAttempt, Local, Lookup, PeerState, PollOutcome},
    endpoint::poll_set::{Arrivals, PollEvent, PollSet},
    handshake::{Accepting, Connecting, Listener},
    page::{Membership, SharedPage},
    pair::side::{Pair, Peer, ReceiveQuota, SendBatch},
    socket::credentials::{Credentials, PeerPolicy},
    socket::peer_name::PeerName,
    socket::udp_owner::udp_owner,
};
