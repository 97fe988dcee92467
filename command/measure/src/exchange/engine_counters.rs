//! Counters of the engine, as reported by a side.

use std::collections::BTreeMap;

use apus::Endpoint;

/// Messages that the application received.
pub const MESSAGES: &str = "messages";
/// Number of times that a thread found the core lock held.
pub const LOCK_MISSES: &str = "lock_misses";
/// Messages stolen from another shard.
pub const STEALS: &str = "steals";

/// Returns the counters of an endpoint.
pub fn of(endpoint: &Endpoint) -> BTreeMap<String, u64> {
    let engine = endpoint.metrics().engine;
    let counters =
        [(MESSAGES, engine.messages), (LOCK_MISSES, engine.lock_misses), (STEALS, engine.steals)];
    counters.map(|(name, count)| (name.to_owned(), count)).into()
}
