//! What the shards of an endpoint know of each other: the bytes that each has granted and not received (GRANT-14).
//!
//! Each publishes its own, as the engine's shards do (`crates/apus/src/engine/siblings.rs`).

use std::cell::RefCell;
use std::rc::Rc;

/// A shard's place among its siblings.
#[derive(Clone, Debug)]
pub(super) struct SharedBudget {
    all: Rc<RefCell<Vec<u64>>>,
    place: usize,
}

impl SharedBudget {
    /// Returns the places of `count` shards.
    pub(super) fn among(count: usize) -> Vec<Self> {
        let all = Rc::new(RefCell::new(vec![0; count]));
        (0..count).map(|place| Self { all: Rc::clone(&all), place }).collect()
    }

    /// Publishes the bytes that this shard has granted and not received.
    pub(super) fn publish(&self, incoming: u64) {
        self.all.borrow_mut()[self.place] = incoming;
    }

    /// Returns the number of shards, and the bytes of the others.
    pub(super) fn elsewhere(&self) -> (usize, u64) {
        let all = self.all.borrow();
        (all.len(), all.iter().sum::<u64>() - all[self.place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_learns_of_all_others() {
        let shards = SharedBudget::among(3);
        for (shard, bytes) in shards.iter().zip([1, 20, 300]) {
            shard.publish(bytes);
        }
        assert_eq!(shards[1].elsewhere(), (3, 301));
        shards[2].publish(0);
        assert_eq!(shards[1].elsewhere(), (3, 1));
    }
}
