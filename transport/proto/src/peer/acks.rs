//! Unsent acks: the responses have arrived, and the server has not been notified.

use crate::time::Instant;
use apus_wire::{Ack, AckList, MAX_ACKS, Profile};
use std::collections::VecDeque;

/// Acks for one peer, oldest first. Each DATA packet to the peer carries one (HM `homa_outgoing.c`
/// `homa_tx_data_pkt_alloc`); when too many wait, an ACK packet carries the oldest ones (HM
/// `homa_incoming.c` `homa_ack_pkt`, `homa_peer.c` `homa_peer_add_ack`, RPC-9). Without DATA for a
/// while, they leave in separate ACK packets (RPC-18).
#[derive(Debug)]
pub(crate) struct Acks {
    /// Each ack, and when its response was complete.
    waiting: VecDeque<(Ack, Instant)>,
    limit: usize,
    /// Whether the timer watches the peer ([`crate::timer::IdleAcks`]).
    pub(crate) is_watched: bool,
}

/// Acks that may wait in the udp profile.
///
/// The kernel keeps five (HM `homa_peer.c` `homa_peer_add_ack`). Chosen by us: as many as one
/// receive batch holds, since a client that receives 64 responses at once is about to send 64
/// requests, which can take all 64 acks along.
const LIMIT_UDP: usize = 64;

impl Acks {
    pub(crate) const fn new(profile: Profile) -> Self {
        let limit = match profile {
            Profile::Kernel => MAX_ACKS,
            Profile::Udp => LIMIT_UDP,
        };
        Self { waiting: VecDeque::new(), limit, is_watched: false }
    }

    /// Adds the ack of a response completed at `now`. If the buffer is full, returns the oldest
    /// acks instead: they must be sent in an ACK packet whose header names the RPC of `ack`.
    #[must_use = "what does not fit must be sent"]
    pub(crate) fn add(&mut self, ack: Ack, now: Instant) -> Option<AckList> {
        if self.waiting.len() >= self.limit {
            return Some(self.take_list());
        }
        self.waiting.push_back((ack, now));
        None
    }

    /// Takes one ack, for a DATA packet.
    #[inline(always)]
    pub(crate) fn take_one(&mut self) -> Option<Ack> {
        self.waiting.pop_front().map(|(ack, _)| ack)
    }

    /// Returns since when the oldest ack waits.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.waiting.front().map(|(_, since)| *since)
    }

    /// Takes the acks for one ACK packet: the oldest, which its header names, and others of the
    /// same server port. In the kernel profile a peer is a host, and its endpoints have no access
    /// to each other's RPCs.
    pub(crate) fn take_packet(&mut self) -> Option<(Ack, AckList)> {
        let first = self.take_one()?;
        let mut list = AckList::EMPTY;
        self.waiting
            .retain(|(ack, _)| ack.server_port != first.server_port || list.push(*ack).is_err());
        Some((first, list))
    }

    /// Takes as many acks as an ACK packet holds whose header names call `id`.
    pub(crate) fn take_list_beside(&mut self, id: u64) -> AckList {
        self.waiting.retain(|(ack, _)| ack.client_id != id);
        self.take_list()
    }

    fn take_list(&mut self) -> AckList {
        let mut list = AckList::EMPTY;
        while !list.is_full()
            && let Some(ack) = self.take_one()
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
                assert_eq!(acks.add(ack(n), Instant::ZERO), None);
            }
            assert_eq!(
                acks.add(ack(limit + 1), Instant::ZERO).map(ids),
                Some(vec![2, 4, 6, 8, 10])
            );
            let next = if limit > 5 { Some(ack(6)) } else { None };
            assert_eq!(acks.take_one(), next);
        }
    }

    #[test]
    fn an_ack_packet_does_not_name_its_own_rpc_twice() {
        let mut acks = Acks::new(Profile::Udp);
        for n in 1..=7 {
            assert_eq!(acks.add(ack(n), Instant::ZERO), None);
        }
        assert_eq!(ids(acks.take_list_beside(4)), [2, 6, 8, 10, 12]);
        assert_eq!(ids(acks.take_list_beside(4)), [14]);
    }

    /// RPC-18: an endpoint of apus frees only RPCs of its own port (RPC-10).
    #[test]
    fn an_ack_packet_holds_acks_of_one_port() {
        let mut acks = Acks::new(Profile::Udp);
        for n in 1..=9 {
            let ack = Ack { client_id: 2 * n, server_port: if n % 2 == 1 { 7 } else { 8 } };
            assert_eq!(acks.add(ack, Instant::from_nanos(n)), None);
        }
        assert_eq!(acks.oldest(), Some(Instant::from_nanos(1)));
        let mut packets = Vec::new();
        while let Some((first, list)) = acks.take_packet() {
            packets.push((first.server_port, first.client_id, ids(list)));
        }
        let expected = [(7, 2, vec![6, 10, 14, 18]), (8, 4, vec![8, 12, 16])];
        assert_eq!(packets, expected);
        for n in 1..=7 {
            assert_eq!(acks.add(ack(n), Instant::ZERO), None);
        }
        assert_eq!(acks.take_packet().map(|(_, list)| ids(list)), Some(vec![4, 6, 8, 10, 12]));
        assert_eq!(acks.take_packet().map(|(first, _)| first.client_id), Some(14));
        assert_eq!((acks.take_packet(), acks.oldest()), (None, None));
    }
}
