//! The deadlines of calls.

use crate::rpc::RpcKey;
use crate::time::Instant;
use std::collections::BTreeSet;

/// Deadlines of calls, earliest first (RPC-8).
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    order: BTreeSet<(Instant, RpcKey)>,
}

impl Deadlines {
    pub(crate) fn insert(&mut self, at: Instant, rpc: RpcKey) {
        self.order.insert((at, rpc));
    }

    pub(crate) fn remove(&mut self, at: Instant, rpc: RpcKey) {
        let removed = self.order.remove(&(at, rpc));
        debug_assert!(removed, "a live call's deadline is listed");
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// A call whose deadline has passed; it stays until it is removed.
    pub(crate) fn expired(&self, now: Instant) -> Option<RpcKey> {
        self.order.first().filter(|(at, _)| *at <= now).map(|(_, rpc)| *rpc)
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use slotmap::SlotMap;
    use std::collections::BTreeMap;

    proptest! {
        /// The model is a map from call to deadline that is searched from end to end.
        #[test]
        fn behaves_like_a_list_that_is_searched(
            steps in proptest::collection::vec((0usize..8, 0u64..50, any::<bool>()), 0..80),
        ) {
            let mut slots: SlotMap<RpcKey, ()> = SlotMap::with_key();
            let ids: Vec<RpcKey> = (0..8).map(|_| slots.insert(())).collect();
            let mut deadlines = Deadlines::default();
            let mut model: BTreeMap<RpcKey, Instant> = BTreeMap::new();
            for (which, at, expire) in steps {
                let (rpc, at) = (ids[which], Instant::from_nanos(at));
                if expire {
                    while let Some(rpc) = deadlines.expired(at) {
                        let deadline = model.remove(&rpc).unwrap();
                        prop_assert!(deadline <= at);
                        deadlines.remove(deadline, rpc);
                    }
                    prop_assert!(model.values().all(|deadline| *deadline > at));
                } else {
                    if let Some(old) = model.insert(rpc, at) {
                        deadlines.remove(old, rpc);
                    }
                    deadlines.insert(at, rpc);
                }
                prop_assert_eq!(deadlines.next(), model.values().min().copied());
                prop_assert_eq!(deadlines.len(), model.len());
            }
        }
    }
}
