//! Counters of applied faults.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a [`super::Faulty`] driver, in packets.
#[derive(Debug, Default)]
pub struct FaultCounters {
    /// Faults applied to received packets.
    pub receive: LaneCounters,
    /// Faults applied to sent packets.
    pub transmit: LaneCounters,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident, $count:ident;)*) => {
        /// Counters of one direction.
        #[derive(Debug, Default)]
        pub struct LaneCounters { $($name: AtomicU64,)* }

        impl LaneCounters {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(&self) -> u64 {
                    self.$name.load(Ordering::Relaxed)
                }

                pub(super) fn $count(&self) {
                    self.$name.fetch_add(1, Ordering::Relaxed);
                }
            )*

            /// Returns the sum of all counters.
            #[must_use]
            pub fn total(&self) -> u64 {
                [$(self.$name()),*].iter().sum()
            }
        }

        impl Clone for LaneCounters {
            fn clone(&self) -> Self {
                Self { $($name: AtomicU64::new(self.$name()),)* }
            }
        }
    };
}

counters! {
    /// Returns the number of packets lost one by one.
    lost, count_lost;
    /// Returns the number of packets lost in bursts.
    burst_lost, count_burst_lost;
    /// Returns the number of duplicates made.
    duplicated, count_duplicated;
    /// Returns the number of packets delayed for reordering.
    reordered, count_reordered;
    /// Returns the number of packets with a flipped bit.
    corrupted, count_corrupted;
}
