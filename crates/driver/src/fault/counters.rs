//! How often was which fault applied?

use std::sync::atomic::{AtomicU64, Ordering};

/// What a [`super::Faulty`] driver has done, in packets.
#[derive(Debug, Default)]
pub struct FaultCounters {
    /// To packets that arrived.
    pub receive: LaneCounters,
    /// To packets that were sent.
    pub transmit: LaneCounters,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident, $count:ident;)*) => {
        /// Faults of one direction.
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

            /// All faults together.
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
    /// Packets lost one by one.
    lost, count_lost;
    /// Packets lost in bursts.
    burst_lost, count_burst_lost;
    /// Copies made.
    duplicated, count_duplicated;
    /// Packets held back.
    reordered, count_reordered;
    /// Packets with a flipped bit.
    corrupted, count_corrupted;
}
