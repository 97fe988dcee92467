//! An association: the keys that two endpoints share after a handshake.
//!
//! Each end has a [`Sealer`] for outgoing and an [`Opener`] for incoming packets. They are separate
//! so that one thread can seal while another one opens; the state that they share, [`Phases`], is
//! only touched when keys change.
//!
//! # Generations (SEAL-4)
//!
//! Keys have a generation, 0 after the handshake. Its low bit is the phase in each packet. Packet
//! numbers continue across generations, as in QUIC (RFC 9001 section 6). Only the client of the
//! handshake starts a generation: once either direction has carried enough packets, or after an
//! hour, provided that it has opened a packet of the present generation. The server follows when it
//! opens the first packet of the new one. If both ends could start a generation, two simultaneous
//! starts would look like answers to each other, and one direction would be a generation ahead of
//! its receiver.
//!
//! # Invariants
//!
//! - **PHASE-1** The generations of the two directions differ by at most 1.
//! - **PHASE-2** A key seals no more packets than its confidentiality limit.
//! - **PHASE-3** An earlier key opens no packet once its successor has opened [`crate::WINDOW`]
//!   packets, and never a packet numbered above the successor's first.

mod opener;
mod phases;
mod sealer;

pub use opener::{OpenError, Opener};
pub use phases::Phases;
pub use sealer::{Exhausted, REKEY_AFTER, REKEY_AFTER_PACKETS, Sealer};

use crate::cipher::{KeyPair, KeySchedule};
use std::sync::Arc;
use std::time::Duration;

/// Creates both halves of an association in `session` at `now`, from the keys of generation 0 and
/// the schedule of later generations. `is_client`: this end was the client of the handshake.
#[must_use]
pub fn association(
    session: u64,
    is_client: bool,
    keys: KeyPair,
    schedule: Box<dyn KeySchedule>,
    now: Duration,
) -> (Sealer, Opener) {
    let phases = Arc::new(Phases::new(schedule, is_client));
    let next = phases.next_remote();
    let sealer = Sealer::new(session, keys.local, phases.clone(), now);
    let opener = Opener::new(session, keys.remote, next, phases);
    (sealer, opener)
}
