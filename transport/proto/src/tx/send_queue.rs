//! The order in which messages transmit.
//!
//! Shortest remaining first (SEND-2; SIGCOMM 2018 section 3.2), and of each 1000 bytes a share to
//! the oldest message (HM `homa_qdisc.c` `homa_qdisc_get_deferred_homa`, SEND-5). Messages shorter
//! than `defer_min_bytes` have a lane of their own that is served first and never throttled (HM
//! `homa_qdisc.c` `homa_qdisc_enqueue`, SEND-3): inserting and removing one costs no comparison,
//! which makes millions of small messages a second possible.
//!
//! # Invariants
//!
//! - **SENDQUEUE-1** `Rpc::queued` is set exactly while the RPC is in the lane or in the order; in
//!   the order it is the key.
//! - **SENDQUEUE-2** `by_remaining` and `by_birth` hold the same RPCs.
//! - **SENDQUEUE-3** `short_live` is the number of RPCs in the lane; the lane is at most twice as
//!   long plus [`MAX_ENDED`].
//! - **SENDQUEUE-4** [`Shortest::first`] precedes all others; without it the order is empty.

use crate::config::Config;
use crate::message::MessageOut;
use crate::rpc::{Rpc, RpcKey, Rpcs};
use std::collections::{BTreeSet, VecDeque};

/// Messages with bytes that may be sent for the first time.
#[derive(Debug)]
pub(crate) struct SendQueue {
    /// Short messages, first come first served. May hold RPCs that have ended; they are skipped.
    short: VecDeque<RpcKey>,
    /// Number of live entries (SENDQUEUE-3).
    short_live: usize,
    by_remaining: Shortest,
    by_birth: BTreeSet<(u64, RpcKey)>,
    /// Messages that send one packet before their turn (SEND-11), first come first served. May hold
    /// messages that have no bytes left to send; they are skipped.
    early: VecDeque<RpcKey>,
    /// Whether there are any.
    informs: bool,
    /// Least bytes that the first message has left when another one may precede it:
    /// `informed_incoming`.
    early_from: u64,
    /// Whether the last burst of the order left before its turn, early or for age: the next one is
    /// not early.
    was_out_of_turn: bool,
    defer_min: u32,
    fifo_per_mille: i64,
    /// Bytes that the oldest message has earned, times 1000; negative if its last packet was
    /// longer.
    fifo_credit: i64,
}

/// Bytes that are left, order of creation, RPC.
type Place = (u32, u64, RpcKey);

/// The order, the first message apart from the tree of the others: a message that transmits is
/// nearly always the first and stays it, so that its packets change no tree.
#[derive(Debug, Default)]
struct Shortest {
    first: Option<Place>,
    others: BTreeSet<Place>,
}

impl Shortest {
    fn insert(&mut self, place: Place) {
        if self.first.is_some_and(|first| first < place) {
            self.others.insert(place);
        } else {
            self.others.extend(self.first.replace(place));
        }
    }

    fn remove(&mut self, place: Place) {
        if self.first == Some(place) {
            self.first = self.others.pop_first();
        } else {
            self.others.remove(&place);
        }
    }

    fn change(&mut self, from: Place, to: Place) {
        if self.first == Some(from) && to < from {
            self.first = Some(to);
        } else {
            self.remove(from);
            self.insert(to);
        }
    }

    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }
}

/// A message chosen from the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) rpc: RpcKey,
    /// Whether it was chosen as the oldest and not as the shortest.
    pub(crate) oldest: bool,
    /// Whether it precedes its turn, with one packet (SEND-11).
    pub(crate) early: bool,
    /// Bytes that it may send now; at least one packet in any case. The oldest message may send
    /// what it has earned.
    pub(crate) most: u32,
}

impl SendQueue {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            short: VecDeque::new(),
            short_live: 0,
            by_remaining: Shortest::default(),
            by_birth: BTreeSet::new(),
            early: VecDeque::new(),
            informs: config.informs(),
            early_from: config.informed_incoming(),
            was_out_of_turn: false,
            defer_min: config.defer_min_bytes() as u32,
            fifo_per_mille: config.pacer_fifo_fraction() as i64,
            fifo_credit: 0,
        }
    }

    /// Moves `rpc` to the place of its outgoing message, or removes it if no bytes may be sent.
    #[inline(always)]
    pub(crate) fn update(&mut self, rpcs: &mut Rpcs, rpc: RpcKey) {
        let entry = &mut rpcs[rpc];
        let sendable = entry.outgoing.as_ref().filter(|message| message.is_sendable());
        let wanted = sendable.map(MessageOut::remaining);
        if wanted == entry.queued {
            return;
        }
        if let (Some(before), Some(remaining)) = (entry.queued, wanted)
            && before.min(remaining) >= self.defer_min
        {
            entry.queued = wanted;
            let place = |left| (left, entry.birth, rpc);
            self.by_remaining.change(place(before), place(remaining));
            return;
        }
        self.remove(rpc, entry);
        if let Some(remaining) = wanted {
            self.make_room(rpcs);
            self.add(rpc, &mut rpcs[rpc], remaining);
        }
    }

    /// Removes ended messages, if there are too many of them for one more (SENDQUEUE-3).
    #[inline(always)]
    pub(crate) fn make_room(&mut self, rpcs: &Rpcs) {
        if self.short.len() > 2 * self.short_live + MAX_ENDED {
            self.forget_ended(rpcs);
        }
    }

    /// Adds `rpc`, which is not queued, and for which there is room: `remaining` bytes of its
    /// message have never left, and some may.
    #[inline(always)]
    pub(crate) fn add(&mut self, rpc: RpcKey, entry: &mut Rpc, remaining: u32) {
        entry.queued = Some(remaining);
        if remaining < self.defer_min {
            self.short.push_back(rpc);
            self.short_live += 1;
        } else {
            self.add_long(remaining, entry.birth, rpc);
        }
    }

    // Not needed by short messages, whose path stays short.
    #[inline(never)]
    fn add_long(&mut self, remaining: u32, birth: u64, rpc: RpcKey) {
        self.by_remaining.insert((remaining, birth, rpc));
        self.by_birth.insert((birth, rpc));
    }

    /// Removes short messages that have ended: while the network accepts no packets, they are not
    /// skipped.
    #[cold]
    fn forget_ended(&mut self, rpcs: &Rpcs) {
        let is_short = |remaining| remaining < self.defer_min;
        self.short
            .retain(|rpc| rpcs.get(*rpc).is_some_and(|entry| entry.queued.is_some_and(is_short)));
    }

    /// Takes `rpc`, whose state is `entry`, out.
    #[inline(always)]
    pub(crate) fn remove(&mut self, rpc: RpcKey, entry: &mut Rpc) {
        if let Some(remaining) = entry.queued {
            self.remove_queued(rpc, entry, remaining);
        }
    }

    fn remove_queued(&mut self, rpc: RpcKey, entry: &mut Rpc, remaining: u32) {
        entry.queued = None;
        if remaining < self.defer_min {
            self.short_live -= 1;
        } else {
            self.by_remaining.remove((remaining, entry.birth, rpc));
            self.by_birth.remove(&(entry.birth, rpc));
        }
        debug_assert_eq!(self.by_remaining.len(), self.by_birth.len(), "SENDQUEUE-2");
    }

    /// Takes the RPC with the next short message.
    pub(crate) fn pop_short(&mut self, rpcs: &mut Rpcs) -> Option<RpcKey> {
        while let Some(rpc) = self.short.pop_front() {
            if let Some(entry) = rpcs.get_mut(rpc)
                && entry.queued.is_some_and(|remaining| remaining < self.defer_min)
            {
                entry.queued = None;
                self.short_live -= 1;
                return Some(rpc);
            }
        }
        None
    }

    /// Whether a message precedes a retransmission of a message with `left` bytes to send.
    pub(super) fn goes_before(&self, left: u32) -> bool {
        let shortest = self.by_remaining.first.map(|(remaining, ..)| remaining);
        self.short_live > 0 && left >= self.defer_min
            || shortest.is_some_and(|shortest| shortest < left)
    }

    /// `rpc`'s message has been granted bytes. If others go first, it sends one packet before its
    /// turn, which tells its receiver how much waits (SEND-11).
    pub(crate) fn announce(&mut self, rpcs: &Rpcs, rpc: RpcKey) {
        let is_first = self.by_remaining.first.is_some_and(|(.., first)| first == rpc);
        let may_wait = self.informs && self.early.len() < MAX_EARLY && !self.early.contains(&rpc);
        if !is_first && may_wait && self.is_in_order(rpcs, rpc) {
            self.early.push_back(rpc);
        }
    }

    /// Whether `rpc` is in the order.
    fn is_in_order(&self, rpcs: &Rpcs, rpc: RpcKey) -> bool {
        let queued = rpcs.get(rpc).and_then(|entry| entry.queued);
        queued.is_some_and(|remaining| remaining >= self.defer_min)
    }

    /// The message that transmits next, short ones aside; it stays in the order.
    pub(crate) fn choose(&mut self, rpcs: &Rpcs) -> Option<Choice> {
        while !self.was_out_of_turn
            && u64::from(self.by_remaining.first?.0) >= self.early_from
            && let Some(rpc) = self.early.front().copied()
        {
            if self.is_in_order(rpcs, rpc) {
                return Some(Choice { rpc, oldest: false, early: true, most: 1 });
            }
            self.early.pop_front();
        }
        let (_, _, shortest) = self.by_remaining.first?;
        let oldest = self.by_birth.first().map(|(_, rpc)| *rpc)?;
        if oldest != shortest && self.fifo_credit >= FIFO_STEP {
            let most = (self.fifo_credit / 1_000) as u32;
            return Some(Choice { rpc: oldest, oldest: true, early: false, most });
        }
        Some(Choice { rpc: shortest, oldest: false, early: false, most: u32::MAX })
    }

    /// Accounts for `bytes` sent of a chosen message.
    pub(crate) fn sent(&mut self, choice: Choice, bytes: u32) {
        self.was_out_of_turn = choice.early || choice.oldest;
        if self.early.front() == Some(&choice.rpc) {
            self.early.pop_front();
        }
        let bytes = i64::from(bytes);
        if choice.oldest {
            self.fifo_credit -= bytes * 1_000;
        } else if self.by_remaining.len() > 1 {
            let most = (EARNED_FOR * self.fifo_per_mille).max(FIFO_STEP);
            self.fifo_credit = (self.fifo_credit + bytes * self.fifo_per_mille).min(most);
        }
    }

    /// Whether the order, short messages aside, is empty.
    pub(crate) fn has_long(&self) -> bool {
        !self.by_birth.is_empty()
    }

    /// Messages in the queue.
    pub(crate) fn len(&self) -> usize {
        self.short_live + self.by_remaining.len()
    }
}

/// Ended messages that the queue of short ones may hold in addition to as many as there are live
/// ones. Chosen by us: the queue is searched at most once per this number of messages.
const MAX_ENDED: usize = 64;

/// Messages that may queue for a packet before their turn. Chosen by us: a backlog that is not
/// reported now is reported with the next GRANT.
const MAX_EARLY: usize = 64;

/// Credit at which the oldest message is chosen: a packet of 1.5 kB, times 1000. Chosen by us: the
/// finest step that keeps the share exact.
const FIFO_STEP: i64 = 1_500_000;
/// Bytes of others for which credit accumulates: one burst. While the oldest message is the
/// shortest, too, it continues anyway and spends nothing; its accumulated credit would later hold
/// up the next shorter one, for 13 ms if it were a burst on a link of 40 Mbit/s.
const EARNED_FOR: i64 = 64_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, Instant, Transport};
    use proptest::prelude::*;
    use slotmap::SlotMap;

    proptest! {
        /// The model is a tree of all.
        #[test]
        fn the_order_behaves_like_one_tree(
            steps in proptest::collection::vec((0usize..6, 0u32..8), 1..60),
        ) {
            let mut slots = SlotMap::<RpcKey, ()>::with_key();
            let rpcs: Vec<RpcKey> = (0..6).map(|_| slots.insert(())).collect();
            let mut places: [Option<Place>; 6] = [None; 6];
            let (mut order, mut model) = (Shortest::default(), BTreeSet::new());
            for (which, left) in steps {
                let to = (left > 0).then_some((left, which as u64, rpcs[which]));
                match (places[which], to) {
                    (Some(from), Some(to)) => order.change(from, to),
                    (Some(from), None) => order.remove(from),
                    (None, Some(to)) => order.insert(to),
                    (None, None) => {}
                }
                if let Some(from) = places[which] {
                    model.remove(&from);
                }
                model.extend(to);
                places[which] = to;
                prop_assert_eq!(order.first, model.first().copied(), "SENDQUEUE-4");
                prop_assert_eq!(order.len(), model.len());
            }
        }
    }

    /// SENDQUEUE-3: while the network accepts no packets, calls that start and end leave no entries
    /// behind.
    #[test]
    fn the_lane_does_not_grow_with_messages_that_end() {
        let mut transport = Transport::new(Config::default(), 1, 1);
        let now = Instant::from_nanos(1);
        let call = |transport: &mut Transport| {
            let to = ([10, 0, 0, 2], 2).into();
            let call =
                Call { to, payload: "x".into(), cookie: 0, deadline: None, idempotent: false };
            transport.call(now, call).unwrap()
        };
        let kept = [call(&mut transport), call(&mut transport)];
        for _ in 0..1_000 {
            let rpc = call(&mut transport);
            transport.cancel(now, rpc).unwrap();
            let SendQueue { short, short_live, .. } = transport.send_queue();
            assert_eq!(*short_live, kept.len());
            assert!(short.len() <= 2 * kept.len() + MAX_ENDED + 1, "{}", short.len());
        }
    }

    /// SEND-5. (A packet's worth of credit used to buy the oldest message a whole burst.)
    #[test]
    fn the_oldest_message_gets_its_share_and_no_more() {
        let config = Config::builder().unsched_bytes(1_000_000).pacer_fifo_fraction(100);
        let mut transport = Transport::new(config.build().unwrap(), 1, 1);
        let now = Instant::from_nanos(1);
        for (cookie, length) in [(0, 600_000), (1, 400_000)] {
            let (to, payload) = (([10, 0, 0, 2], 2).into(), vec![0; length].into());
            let call = Call { to, payload, cookie, deadline: None, idempotent: false };
            transport.call(now, call).unwrap();
        }
        let (mut oldest, mut shortest) = (0, 0);
        while shortest < 350_000 {
            let burst = transport.poll_transmit(now).unwrap();
            // Bytes 28 to 31: the message's length.
            let of_oldest = burst.headers()[28..32] == 600_000_u32.to_be_bytes();
            let sum = if of_oldest { &mut oldest } else { &mut shortest };
            *sum += burst.payload_len();
            assert!(oldest * 10 <= shortest, "{oldest} bytes beside {shortest}");
        }
        assert!(oldest * 10 >= shortest - 100_000, "{oldest} bytes beside {shortest}");
    }

    /// SEND-5. (All bytes that the oldest message earned while it was also the shortest, up to
    /// 64,000, used to leave before the next short one.)
    #[test]
    fn a_short_message_does_not_wait_for_what_the_oldest_has_saved_up() {
        let config = Config::builder().unsched_bytes(1_000_000).build().unwrap();
        let mut transport = Transport::new(config, 1, 1);
        let now = Instant::from_nanos(1);
        let call = |transport: &mut Transport, cookie, length| {
            let (to, payload) = (([10, 0, 0, 2], 2).into(), vec![0; length].into());
            let call = Call { to, payload, cookie, deadline: None, idempotent: false };
            transport.call(now, call).unwrap();
        };
        call(&mut transport, 0, 900_000);
        call(&mut transport, 1, 1_000_000);
        let mut sent = 0;
        while sent < 800_000 {
            sent += transport.poll_transmit(now).unwrap().payload_len();
        }
        call(&mut transport, 2, 5_000);
        let mut before = 0;
        loop {
            let burst = transport.poll_transmit(now).unwrap();
            if burst.headers()[28..32] == 5_000_u32.to_be_bytes() {
                break;
            }
            before += burst.payload_len();
        }
        assert!(before <= 64_000 * 50 / 1_000, "{before} bytes");
    }
}
