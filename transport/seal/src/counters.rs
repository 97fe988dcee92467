//! Counters of sealing.

use crate::failure::Failure;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of sealing since the endpoint was opened. Any thread may read them.
        #[derive(Debug, Default)]
        pub struct SealCounters {
            $($(#[$doc])* pub $name: Counter,)*
            /// Failed handshakes, by cause.
            failures: [Counter; Failure::ALL.len()],
        }

        impl SealCounters {
            /// Returns the name and value of each counter, always in the same order.
            #[must_use]
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                let mut all = vec![$((concat!("seal_", stringify!($name)), self.$name.get()),)*];
                let failures = Failure::ALL.iter().zip(FAILURE_NAMES);
                all.extend(failures.map(|(cause, name)| (name, self.failures(*cause))));
                all
            }
        }
    };
}

counters! {
    /// Handshakes started by this end.
    handshakes_begun,
    /// Handshakes completed as client.
    handshakes_as_client,
    /// Handshakes completed as server.
    handshakes_as_server,
    /// Completed handshakes that resumed an earlier one.
    handshakes_resumed,
    /// RETRY packets sent: clients that must repeat their HELLO with a cookie.
    cookies_sent,
    /// HELLO packets dropped for lack of room or because of the rate limit.
    hellos_dropped,
    /// Packets opened.
    packets_opened,
    /// Packets sealed.
    packets_sealed,
    /// Packets dropped because their number had been used.
    replays,
    /// Packets dropped because they were late: the peer uses newer keys, and the packet's session
    /// has ended.
    late,
    /// Packets dropped because their tag was wrong.
    forgeries,
    /// Packets dropped because there are no keys for their sender.
    without_key,
    /// Cleartext packets dropped.
    clear_packets,
    /// Outgoing packets not sent for lack of a key.
    unsent,
    /// NO_KEY packets sent.
    no_keys_sent,
    /// NO_KEY packets that led to a new handshake.
    no_keys_believed,
    /// Replacements of sealing keys by the next generation.
    rekeys,
    /// Peers removed because they are no longer trusted.
    peers_revoked,
}

/// Names of the counters of failures, in the order of [`Failure::ALL`].
const FAILURE_NAMES: [&str; Failure::ALL.len()] = [
    "seal_failures_expired",
    "seal_failures_not_yet_valid",
    "seal_failures_unknown_ca",
    "seal_failures_name_mismatch",
    "seal_failures_not_allowed",
    "seal_failures_unknown_key",
    "seal_failures_revoked",
    "seal_failures_bad_certificate",
    "seal_failures_no_certificate",
    "seal_failures_incompatible",
    "seal_failures_protocol",
    "seal_failures_timeout",
    "seal_failures_overloaded",
    "seal_failures_internal",
];

impl SealCounters {
    /// Returns the number of handshakes that failed for `cause`.
    #[must_use]
    pub fn failures(&self, cause: Failure) -> u64 {
        self.failures[cause as usize].get()
    }

    /// Counts a failed handshake.
    pub fn count_failure(&self, cause: Failure) {
        self.failures[cause as usize].add(1);
    }
}

/// A counter with one writer at a time and any number of readers.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    #[inline]
    pub fn add(&self, n: u64) {
        // No locked instruction is needed: there is one writer at a time.
        self.0.store(self.0.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }

    /// Returns the value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_the_names_of_their_causes() {
        for (cause, name) in Failure::ALL.iter().zip(FAILURE_NAMES) {
            assert_eq!(name, format!("seal_failures_{}", cause.name()));
        }
    }
}
