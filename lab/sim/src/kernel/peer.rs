//! The module's state about another host.

use apus_wire::{Ack, AckList, Cutoffs, MAX_ACKS};

use super::parameters::HIGHEST;
use apus_workload::time::Nanos;

/// Another host.
#[derive(Debug)]
pub(super) struct Peer {
    /// Acks waiting for a DATA packet, at most five (HM `homa_peer.c` `homa_peer_add_ack`).
    acks: Vec<Ack>,
    /// Longest message of each level; before CUTOFFS all messages use level 6
    /// (HM `homa_peer.c` `homa_peer_alloc`).
    cutoffs: [u32; 8],
    pub(super) cutoff_version: u16,
    /// Tick of the last CUTOFFS to it.
    pub(super) cutoffs_tick: Option<Nanos>,
}

impl Default for Peer {
    fn default() -> Self {
        let mut cutoffs = [0; 8];
        cutoffs[6] = u32::MAX;
        Self { acks: Vec::new(), cutoffs, cutoff_version: 0, cutoffs_tick: None }
    }
}

impl Peer {
    /// Adds an ack. Without room, returns the waiting acks, to be sent in an ACK packet about the
    /// RPC of `ack`.
    pub(super) fn add(&mut self, ack: Ack) -> Option<AckList> {
        if self.acks.len() == MAX_ACKS {
            return Some(self.take_list());
        }
        self.acks.push(ack);
        None
    }

    pub(super) fn take_one(&mut self) -> Option<Ack> {
        self.acks.pop()
    }

    pub(super) fn take_list(&mut self) -> AckList {
        let mut list = AckList::EMPTY;
        for ack in self.acks.drain(..) {
            list.push(ack).expect("no more than an ACK packet holds");
        }
        list
    }

    /// Stores CUTOFFS. The lengths are signed in the module, and level 0 accepts all.
    pub(super) fn set_cutoffs(&mut self, cutoffs: &Cutoffs) {
        self.cutoffs = cutoffs.unscheduled.map(|length| i32::try_from(length).unwrap_or(0) as u32);
        self.cutoffs[0] = u32::MAX;
        self.cutoff_version = cutoffs.version;
    }

    /// Returns the level of the unscheduled packets of a message.
    pub(super) fn level(&self, length: u32) -> u8 {
        let fits = |level: &u8| self.cutoffs[usize::from(*level)] >= length;
        (0..=HIGHEST).rev().find(fits).unwrap_or(0)
    }
}
