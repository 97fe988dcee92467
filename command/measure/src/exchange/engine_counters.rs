//! Counters of the engine, as a side reports them.

use std::collections::BTreeMap;

use apus::{Endpoint, Settings, UdpConfig};

/// Messages that the application received.
pub const MESSAGES: &str = "messages";
/// Number of failed attempts to take the core lock.
pub const LOCK_MISSES: &str = "lock_misses";
/// Messages that were stolen from another shard.
pub const STEALS: &str = "steals";

/// Datagrams that the system dropped because the buffer of the endpoint's socket was full.
pub const OVERFLOWED: &str = "datagrams_overflowed";

/// Returns the counters of an endpoint.
pub fn of(endpoint: &Endpoint) -> BTreeMap<String, u64> {
    let metrics = endpoint.metrics();
    let engine = &metrics.engine;
    let driver = metrics.driver.iter().filter(|(name, _)| *name == OVERFLOWED);
    let overflowed = driver.map(|(_, count)| *count).sum();
    let counters = [
        (MESSAGES, engine.messages),
        (LOCK_MISSES, engine.lock_misses),
        (STEALS, engine.steals),
        (OVERFLOWED, overflowed),
    ];
    counters.map(|(name, count)| (name.to_owned(), count)).into()
}

/// Returns a note with the repair if the sides with these counters have lost `overflowed`
/// datagrams at full buffers; `None` without a loss. `name` is their name in the result.
#[must_use]
pub fn overflow_note(name: &str, overflowed: u64, settings: &Settings) -> Option<String> {
    if overflowed == 0 {
        return None;
    }
    let enough = UdpConfig::default().receive_buffer;
    let file = match settings.udp.receive_buffer {
        Some(bytes) if bytes < enough => {
            format!(
                "set `receive_buffer = {enough}` under [udp] of the configuration, which has {bytes}, and "
            )
        }
        _ => String::new(),
    };
    Some(format!(
        "{name}: {overflowed} datagrams met a full receive buffer, and their messages waited for the RESEND: {file}run \
         `sysctl -w net.core.rmem_max={enough}`; `apus doctor` measures the loss"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_buffer_is_noted_with_its_repair() {
        let settings = |text: &str| text.parse().unwrap();
        assert_eq!(overflow_note("apus", 0, &settings("")), None);
        let note = overflow_note("apus", 5_214, &settings("")).unwrap();
        assert!(note.starts_with("apus: 5214 datagrams met a full receive buffer"), "{note}");
        assert!(note.contains("net.core.rmem_max=4194304") && !note.contains("[udp]"), "{note}");
        let small = settings("[udp]\nreceive_buffer = 32768");
        let note = overflow_note("apus", 1, &small).unwrap();
        assert!(note.contains("`receive_buffer = 4194304`") && note.contains("32768"), "{note}");
    }

    #[test]
    fn the_counter_of_the_driver_exists() {
        let endpoint = Endpoint::client().unwrap();
        let driver = endpoint.metrics().driver;
        assert!(driver.iter().any(|(name, _)| *name == OVERFLOWED), "{driver:?}");
    }
}
