//! Acks that have not been sent: their responses have arrived, and the server does not know it.

use apus_wire::{Ack, AckList, MAX_ACKS, Profile};
use std::collections::VecDeque;

/// Acks for one peer, oldest first. Each DATA packet to the peer takes one along
/// (HM `homa_outgoing.c` `homa_tx_data_pkt_alloc`); when too many wait, an ACK packet takes the oldest ones
/// (HM `homa_incoming.c` `homa_ack_pkt`, `homa_peer.c` `homa_peer_add_ack`, RPC-9).
#[derive(Debug)]
pub(crate) struct Acks {
    waiting: VecDeque<Ack>,
    limit: usize,
}

/// Acks that may wait in the udp profile.
///
/// The kernel keeps five (HM `homa_peer.c` `homa_peer_add_ack`). Chosen by us: as many as one receive batch holds,
/// since a client that receives 64 responses at once is about to send 64 requests, which can take all 64 acks along.
const LIMIT_UDP: usize = 64;

impl Acks {
    pub(crate) const fn new(profile: Profile) -> Self {
        let limit = match profile {
            Profile::Kernel => MAX_ACKS,
            Profile::Udp => LIMIT_UDP,
        };
        Self { waiting: VecDeque::new(), limit }
    }

    /// Adds an ack. If the buffer is full, the oldest ones are returned instead: they must be sent in
    /// an ACK packet, whose header names the RPC of `ack`.
    #[must_use = "what does not fit must be sent"]
    pub(crate) fn add(&mut self, ack: Ack) -> Option<AckList> {
        if self.waiting.len() >= self.limit {
            return Some(self.take_list());
        }
        self.waiting.push_back(ack);
        None
    }

    /// Takes one ack, for a DATA packet.
    pub(crate) fn take_one(&mut self) -> Option<Ack> {
        self.waiting.pop_front()
    }

    /// Takes as many acks as an ACK packet holds whose header names call `id`.
    pub(crate) fn take_list_beside(&mut self, id: u64) -> AckList {
        self.waiting.retain(|ack| ack.client_id != id);
        self.take_list()
    }

    fn take_list(&mut self) -> AckList {
        let mut list = AckList::EMPTY;
        while !list.is_full()
            && let Some(ack) = self.waiting.pop_front()
        {
            let pushed = list.push(ack);
            debug_assert!(pushed.is_ok(), "there was room");
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(n: usize) -> Ack {
        Ack { client_id: 2 * n as u64, server_port: 1 }
    }

    fn ids(list: AckList) -> Vec<u64> {
        list.iter().map(|ack| ack.client_id).collect()
    }

    /// Source: HM `homa_incoming.c` `homa_ack_pkt`, `homa_peer.c` `homa_peer_add_ack`.
    #[test]
    fn what_does_not_fit_sends_the_oldest_five() {
        for (profile, limit) in [(Profile::Kernel, 5), (Profile::Udp, 64)] {
            let mut acks = Acks::new(profile);
            for n in 1..=limit {
                assert_eq!(acks.add(ack(n)), None);
            }
            assert_eq!(acks.add(ack(limit + 1)).map(ids), Some(vec![2, 4, 6, 8, 10]));
            let next = if limit > 5 { Some(ack(6)) } else { None };
            assert_eq!(acks.take_one(), next);
        }
    }

    #[test]
    fn an_ack_packet_does_not_name_its_own_rpc_twice() {
        let mut acks = Acks::new(Profile::Udp);
        for n in 1..=7 {
            assert_eq!(acks.add(ack(n)), None);
        }
        assert_eq!(ids(acks.take_list_beside(4)), [2, 6, 8, 10, 12]);
        assert_eq!(ids(acks.take_list_beside(4)), [14]);
    }
}
