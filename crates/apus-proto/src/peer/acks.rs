//! Which responses have arrived whose server does not know it yet?

use apus_wire::{Ack, AckList, MAX_ACKS};
use smallvec::SmallVec;

/// Acks for one peer, oldest first. Each DATA packet to the peer takes one along (row P-3); when five
/// wait, an ACK packet takes them all (rows P-19, L-8).
#[derive(Debug, Default)]
pub(crate) struct Acks {
    waiting: SmallVec<[Ack; MAX_ACKS]>,
}

impl Acks {
    /// Adds an ack. If the buffer is full, its content is returned instead: it must be sent in an ACK
    /// packet, whose header names the RPC of `ack`, so that nothing stays behind.
    #[must_use = "a full buffer must be sent"]
    pub(crate) fn add(&mut self, ack: Ack) -> Option<AckList> {
        if self.waiting.len() == MAX_ACKS {
            return Some(self.take_list());
        }
        self.waiting.push(ack);
        None
    }

    /// Takes one ack, for a DATA packet.
    pub(crate) fn take_one(&mut self) -> Option<Ack> {
        (!self.waiting.is_empty()).then(|| self.waiting.remove(0))
    }

    /// Takes all acks, for an ACK packet whose header names call `id`.
    pub(crate) fn take_list_beside(&mut self, id: u64) -> AckList {
        self.waiting.retain(|ack| ack.client_id != id);
        self.take_list()
    }

    fn take_list(&mut self) -> AckList {
        let mut list = AckList::EMPTY;
        for ack in self.waiting.drain(..) {
            let pushed = list.push(ack);
            debug_assert!(pushed.is_ok(), "an ACK packet holds as many as the buffer");
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows P-19 and L-8.
    #[test]
    fn the_sixth_ack_sends_the_first_five() {
        let mut acks = Acks::default();
        let ack = |n: u64| Ack { client_id: 2 * n, server_port: 1 };
        for n in 1..=5 {
            assert_eq!(acks.add(ack(n)), None);
        }
        let list = acks.add(ack(6)).unwrap();
        assert_eq!(list.iter().map(|a| a.client_id).collect::<Vec<_>>(), [2, 4, 6, 8, 10]);
        assert_eq!(acks.take_one(), None);
        assert_eq!(acks.add(ack(7)), None);
        assert_eq!((acks.take_one(), acks.take_one()), (Some(ack(7)), None));
    }
}
