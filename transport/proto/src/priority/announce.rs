//! When a peer receives this endpoint's cutoffs.

use super::OwnCutoffs;
use crate::peer::Peer;
use crate::time::{Instant, USEC};
use apus_wire::{Cutoffs, Profile};

/// Cutoffs are sent to a peer at most once in this time (HM `homa_incoming.c` `homa_data_pkt`: once
/// per jiffy).
const INTERVAL: u64 = 1_000 * USEC;

/// PRIO-6: the CUTOFFS packet for `peer`, whose packet had other cutoffs; `None` if one was sent to
/// it a moment ago.
pub(crate) fn announcement(
    own: &OwnCutoffs,
    peer: &mut Peer,
    profile: Profile,
    now: Instant,
) -> Option<Cutoffs> {
    let never = peer.cutoffs_sent == Instant::ZERO;
    if !never && now.since(peer.cutoffs_sent) < INTERVAL {
        return None;
    }
    peer.cutoffs_sent = now;
    let announced = *own.announced();
    Some(if profile == Profile::Kernel { announced.with_signed_lengths() } else { announced })
}
