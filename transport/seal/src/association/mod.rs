//! An association: the keys that two endpoints share after a handshake.
//!
//! Each end has a [`Sealer`] for what it sends and an [`Opener`] for what arrives. They are apart, so that one thread seals while
//! another one opens; what they share, [`Phases`], is touched when keys change.
//!
//! # Generations (SEAL-4)
//!
//! Keys have a generation, 0 after the handshake. Its low bit is the phase in each packet. Packet numbers go on from one
//! generation to the next, as in QUIC (RFC 9001 section 6). Only the end that was the client of the handshake begins a
//! generation: when either direction has carried enough packets, or after an hour, and it has opened a packet of the present one. The
//! other end follows when it opens the first packet of the new one. If both could begin one, two beginnings that cross would be
//! taken for an answer to each other, and one direction would be a generation ahead of what its receiver can open.
//!
//! # Invariants
//!
//! - **PHASE-1** The generations of the two directions differ by at most 1.
//! - **PHASE-2** A key seals no more packets than its confidentiality limit.
//! - **PHASE-3** An earlier key opens nothing after [`crate::WINDOW`] packets of its successor, and nothing with a number above
//!   the first of its successor.

mod opener;
mod phases;
mod sealer;

pub use opener::{OpenError, Opener};
pub use phases::Phases;
pub use sealer::{Exhausted, REKEY_AFTER_NANOS, REKEY_AFTER_PACKETS, Sealer};

use crate::cipher::{KeyPair, KeySchedule};
use std::sync::Arc;

/// Makes both halves of an association in `session`, with the keys of generation 0 and the schedule of later ones, at `now` in
/// nanoseconds. `is_client`: this end was the client of the handshake.
#[must_use]
pub fn association(
    session: u64,
    is_client: bool,
    keys: KeyPair,
    schedule: Box<dyn KeySchedule>,
    now: u64,
) -> (Sealer, Opener) {
    let phases = Arc::new(Phases::new(schedule, is_client));
    let next = phases.next_remote();
    let sealer = Sealer::new(session, keys.local, phases.clone(), now);
    let opener = Opener::new(session, keys.remote, next, phases);
    (sealer, opener)
}
