//! The finished requests of a client host in the kernel profile.
//!
//! In the kernel profile a counter numbers the calls of a whole host (HM `homa_rpc.c`
//! `homa_rpc_alloc_client`), or of one endpoint of apus; a server receives few of them. Finished
//! ids therefore do not form ranges: between two there are calls to other servers, and possibly a
//! call to this one that has not arrived yet. The two are indistinguishable, but the counter shows
//! how long ago an id was issued. Memory is therefore bounded by the advance of the counter, not by
//! the number of gaps: finished ids are kept in *blocks* of [`BLOCK`] ids, a bit for each, and the
//! oldest block is closed when there are too many. An id is refused unseen only when its host has
//! made [`MAX_ID_BLOCKS`] times [`BLOCK`] calls more, 262,144, or many more if few of them arrive
//! here: a module that makes a million a second needs a quarter of a second for that, and gives up
//! a call whose server has been silent for 100 ms (HM `homa_timer.c` `homa_timer_check_rpc`).
//!
//! Endpoints of apus start in separate ranges (ADR 12), far from each other and from the module.
//! The highest bits distinguish the counters, so that a busy one does not close unfinished ids of a
//! quiet one.
//!
//! A counter may restart: [`HostLives`](super::HostLives) recognises that, and decides which ids
//! are forgotten.
//!
//! # Invariants
//!
//! - **SPARSE-1** An id that was finished stays finished until it is forgotten (requirement AMO-2).
//! - **SPARSE-2** There are at most [`MAX_ID_BLOCKS`] blocks, over all counters (CAP-11).
//! - **SPARSE-3** The block that is closed is the oldest one of the counter that has most of them.

use std::collections::{BTreeMap, VecDeque};

use crate::limits::MAX_ID_BLOCKS;
use crate::time::Instant;

/// Ids of a block. Chosen by us: bits of a word.
const BLOCK: u64 = u64::BITS as u64;

/// Bits of an id below the bits that name its counter: the ranges of raw drivers start there (ADR
/// 12). At most 4096 counters follow, each with at least two words.
const COUNTER_BITS: u32 = 52;

/// Memory of a counter without blocks, in its map.
const COUNTER_MEMORY: usize = 2 * (size_of::<u64>() + size_of::<Counter>());

/// Returns the counter of an id.
pub(super) const fn counter_of(id: u64) -> u64 {
    id >> COUNTER_BITS
}

/// A set of even ids that grows, and forgets only on demand.
#[derive(Clone, Debug, Default)]
pub(crate) struct SparseIds {
    counters: BTreeMap<u64, Counter>,
    /// Blocks of all counters.
    blocks: usize,
}

/// Finished ids of one counter.
#[derive(Clone, Debug, Default)]
struct Counter {
    /// All blocks below this one are closed: their ids count as finished.
    low: u64,
    /// When a block was closed last.
    closed: Instant,
    /// The others that have finished ids, in order.
    blocks: VecDeque<Block>,
}

/// Ids with neighbouring numbers.
#[derive(Clone, Copy, Debug)]
struct Block {
    number: u64,
    /// A bit for each id that is finished.
    bits: u64,
    /// When an id of it was last finished, or received again after its end.
    touched: Instant,
}

/// The block of an id, and its bit there.
const fn place(id: u64) -> (u64, u64) {
    let half = id / 2;
    (half / BLOCK, 1 << (half % BLOCK))
}

impl SparseIds {
    /// Whether `id` is finished.
    pub(crate) fn contains(&self, id: u64) -> bool {
        self.counters.get(&counter_of(id)).is_some_and(|counter| counter.contains(id))
    }

    /// Adds `id`, which was finished, or received again, at `now`. Returns whether that takes memory.
    pub(crate) fn insert(&mut self, id: u64, now: Instant) -> bool {
        let is_new_block = self.counters.entry(counter_of(id)).or_default().insert(id, now);
        self.blocks += usize::from(is_new_block);
        if self.blocks > MAX_ID_BLOCKS {
            self.close_oldest(now);
        }
        is_new_block
    }

    /// The memory of all blocks and counters, in bytes.
    pub(super) fn memory(&self) -> usize {
        // Queues double when they grow.
        2 * self.blocks * size_of::<Block>() + self.counters.len() * COUNTER_MEMORY
    }

    /// Closes the older half of the blocks of each counter: their ids count as finished.
    pub(super) fn close_half(&mut self, now: Instant) {
        self.counters.values_mut().for_each(|counter| counter.close(counter.blocks.len() / 2, now));
        self.count_blocks();
    }

    /// All ids up to the highest finished one of each counter count as finished.
    pub(super) fn close_gaps(&mut self, now: Instant) {
        for counter in self.counters.values_mut() {
            counter.close(counter.blocks.len().saturating_sub(1), now);
            if let Some(last) = counter.blocks.back_mut() {
                last.bits = u64::MAX >> last.bits.leading_zeros();
                (counter.low, counter.closed) = (last.number, now);
            }
        }
        self.count_blocks();
    }

    fn count_blocks(&mut self) {
        self.blocks = self.counters.values().map(|counter| counter.blocks.len()).sum();
    }

    /// Forgets all ids of `counter`.
    pub(super) fn forget(&mut self, counter: u64) {
        let forgotten = self.counters.remove(&counter);
        self.blocks -= forgotten.map_or(0, |counter| counter.blocks.len());
    }

    /// Forgets ids of `counter` that were finished before `limit`, by whole blocks.
    pub(super) fn forget_before(&mut self, counter: u64, limit: Instant) {
        let Some(counter) = self.counters.get_mut(&counter) else { return };
        let before = counter.blocks.len();
        counter.blocks.retain(|block| block.touched >= limit);
        if counter.closed < limit {
            counter.low = 0;
        }
        self.blocks -= before - counter.blocks.len();
    }

    /// SPARSE-3: ids that are neither finished nor known are given up; they will be refused.
    fn close_oldest(&mut self, now: Instant) {
        let most = self.counters.values_mut().max_by_key(|counter| counter.blocks.len());
        if let Some(counter) = most
            && let Some(block) = counter.blocks.pop_front()
        {
            counter.low = block.number + 1;
            counter.closed = now;
            self.blocks -= 1;
        }
    }
}

impl Counter {
    /// Closes the oldest `blocks` blocks.
    fn close(&mut self, blocks: usize, now: Instant) {
        if let Some(last) = self.blocks.drain(..blocks).next_back() {
            self.low = last.number + 1;
            self.closed = now;
        }
        self.blocks.shrink_to_fit();
    }

    fn contains(&self, id: u64) -> bool {
        let (number, bit) = place(id);
        number < self.low || self.find(number).is_ok_and(|index| self.blocks[index].bits & bit != 0)
    }

    /// Whether a block was made for it.
    fn insert(&mut self, id: u64, now: Instant) -> bool {
        let (number, bit) = place(id);
        if number < self.low {
            return false;
        }
        match self.find(number) {
            Ok(index) => {
                let block = &mut self.blocks[index];
                block.bits |= bit;
                block.touched = now;
                false
            }
            Err(index) => {
                self.blocks.insert(index, Block { number, bits: bit, touched: now });
                true
            }
        }
    }

    /// Where the block is, or would be.
    fn find(&self, number: u64) -> Result<usize, usize> {
        self.blocks.binary_search_by_key(&number, |block| block.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Number of ids that have passed when the first is closed, if no block is left out.
    const WINDOW: u64 = MAX_ID_BLOCKS as u64 * BLOCK;

    /// A client of many servers: one of eight of its calls arrives here. (4096 ranges were full
    /// after 32,768 calls of the host; a first packet that had to be sent again arrived too late.)
    #[test]
    fn gaps_stay_open_until_the_counter_has_gone_far() {
        let mut ids = SparseIds::default();
        let late = 2 * BLOCK + 2;
        for call in (0..WINDOW).step_by(8) {
            ids.insert(2 * call, Instant::ZERO);
            assert!(!ids.contains(late), "after {call} calls of the host");
        }
        assert_eq!(ids.blocks, MAX_ID_BLOCKS);
        ids.insert(2 * WINDOW, Instant::ZERO);
        assert!(ids.contains(2) && !ids.contains(late), "the oldest block is closed, no other");
        ids.insert(2 * (WINDOW + BLOCK), Instant::ZERO);
        assert!(ids.contains(late));
        assert_eq!(ids.blocks, MAX_ID_BLOCKS, "SPARSE-2");
    }

    /// Even if hardly a call of the host arrives here.
    #[test]
    fn as_many_requests_as_there_are_blocks_pass_first() {
        let mut ids = SparseIds::default();
        for call in 0..MAX_ID_BLOCKS as u64 {
            ids.insert(2 * 1_000 * (call + 1), Instant::ZERO);
            assert!(!ids.contains(2));
        }
        ids.insert(2 * 1_000 * (MAX_ID_BLOCKS as u64 + 1), Instant::ZERO);
        assert!(ids.contains(2));
    }

    /// CAP-22.
    #[test]
    fn ids_of_an_idle_host_take_a_block_for_each_counter() {
        const FIRST: u64 = 1 << 62;
        let mut ids = SparseIds::default();
        for call in 0..10_000 {
            let _ = ids.insert(FIRST + 512 * call, Instant::ZERO);
        }
        let highest = FIRST + 512 * 9_999;
        ids.close_half(Instant::ZERO);
        assert_eq!(ids.blocks, MAX_ID_BLOCKS / 2);
        assert!(ids.contains(FIRST + 2) && !ids.contains(highest - 2));
        ids.close_gaps(Instant::ZERO);
        assert!(ids.blocks == 1 && ids.memory() < 400, "{}", ids.memory());
        assert!(ids.contains(highest - 2) && ids.contains(highest) && !ids.contains(highest + 2));
    }

    /// Two endpoints of one host, and the module's own counter. (The lowest ids were closed for the
    /// sake of the highest: a request of the quiet endpoint that was overtaken was refused.)
    #[test]
    fn a_busy_counter_leaves_the_others_alone() {
        let mut ids = SparseIds::default();
        let quiet = [2, 1 << 63];
        quiet.iter().for_each(|id| _ = ids.insert(id + 8, Instant::ZERO));
        for call in 0..2 * WINDOW {
            ids.insert((1 << 63 | 1 << 52) + 2 * call, Instant::ZERO);
        }
        assert!(ids.blocks <= MAX_ID_BLOCKS, "SPARSE-2");
        for id in quiet {
            assert!(!ids.contains(id) && ids.contains(id + 8));
        }
        assert!(ids.contains(1 << 63 | 1 << 52));
    }

    #[test]
    fn a_request_that_ends_late_is_closed_already() {
        let mut ids = SparseIds::default();
        for call in 0..WINDOW + BLOCK {
            ids.insert(2 * (call + 1), Instant::ZERO);
        }
        let blocks = ids.blocks;
        ids.insert(0, Instant::ZERO);
        assert_eq!((ids.contains(0), ids.blocks), (true, blocks));
    }

    /// AMO-10: ids received again stay; a counter that has lost its oldest blocks may restart in
    /// them.
    #[test]
    fn old_ids_are_forgotten_by_blocks() {
        let at = Instant::from_nanos;
        let mut ids = SparseIds::default();
        ids.insert(2, at(1));
        ids.insert(2 * BLOCK, at(2));
        ids.insert(4 * BLOCK, at(3));
        ids.insert(2, at(4));
        ids.forget_before(0, at(3));
        assert_eq!([2, 2 * BLOCK, 4 * BLOCK].map(|id| ids.contains(id)), [true, false, true]);
        for call in 0..2 * WINDOW {
            ids.insert(2 * call, at(5));
        }
        assert!(ids.contains(8));
        ids.forget_before(0, at(6));
        assert!(!ids.contains(8) && !ids.contains(2 * WINDOW));
        assert_eq!(ids.blocks, 0, "SPARSE-2");
        ids.insert(1 << COUNTER_BITS, at(7));
        ids.insert(2, at(7));
        ids.forget(0);
        assert!(!ids.contains(2) && ids.contains(1 << COUNTER_BITS));
        assert_eq!(ids.blocks, 1, "SPARSE-2");
    }

    proptest! {
        /// The model is the plain set of the ids.
        #[test]
        fn behaves_like_a_set(
            halves in proptest::collection::vec((0u64..3, 0u64..400), 0..200),
        ) {
            let mut ids = SparseIds::default();
            let mut model = BTreeSet::new();
            for (counter, half) in halves {
                let id = (counter << COUNTER_BITS) | (half * 2);
                ids.insert(id, Instant::ZERO);
                model.insert(id);
            }
            for (counter, half) in (0..3).flat_map(|counter| (0..400).map(move |half| (counter, half))) {
                let id = (counter << COUNTER_BITS) | (half * 2);
                prop_assert_eq!(ids.contains(id), model.contains(&id), "{:x}", id);
            }
        }
    }
}
