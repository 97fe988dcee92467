//! Sealed packets for the apus transport: every packet encrypted and authenticated, control packets
//! too.
//!
//! The crate performs no IO and reads no clock. [`Handshakes`] is a state machine that takes
//! packets and time and returns packets and events. A complete handshake yields a [`Sealer`] and an
//! [`Opener`] for the peer, which the driver's halves own (`apus_driver::seal`). Handshakes are TLS
//! 1.3 through the interface that rustls has for QUIC; no cryptography is defined here.
//! Requirements `SEAL-n` in `docs/spec/sealing.md` and `handshakes.md`; the threat model is in
//! `docs/security.md`.
//!
//! ```text
//!   packets of a handshake ──▶ Handshakes ──▶ packets of a handshake
//!                                  │  Established
//!            outgoing ──▶ Sealer ──┴── Opener ◀── arriving
//! ```
//!
//! # Invariants
//!
//! - **KEY-1** A nonce is used once per key ([`PacketNumbers`] cannot be cloned).
//! - **KEY-2** No Debug output, log or error shows a key.

#![forbid(unsafe_code)]

mod association;
mod cipher;
mod counters;
mod failure;
mod handshake;
mod identity;
mod negotiation;
mod number;
#[cfg(feature = "stub")]
pub mod stub;
#[cfg(feature = "tls")]
pub mod tls;
mod window;

pub use association::{
    Exhausted, OpenError, Opener, Phases, REKEY_AFTER, REKEY_AFTER_PACKETS, Sealer, association,
};
pub use cipher::{KeyPair, KeySchedule, PacketCipher, TAG_LEN};
pub use counters::{Counter, SealCounters};
pub use failure::{Failure, FoundBy, HandshakeError};
pub use handshake::{Datagram, Established, Handshakes, Limits, Refusals, SealEvent, ServerLife};
pub use identity::{Identity, IdentityKind, PeerRole};
pub use negotiation::{KeyChange, Life, Negotiation, Negotiator};
pub use number::{MAX_NUMBER, PacketNumbers};
pub use window::{ReplayWindow, Stale, WINDOW};
