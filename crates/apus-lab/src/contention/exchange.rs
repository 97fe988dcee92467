//! What is an operation, and what is seen of its locks?
//!
//! A message of one byte, written into a pair and read from it by the same worker: no switch to another task, and
//! nothing that has to be waited for but locks.
//!
//! # How waits are seen without making them longer
//!
//! Who looks at the clock between letting a lock go and wanting it again gives others the time to take it: seen like
//! that, waits are several times as long as Little's law allows. So the clock is read while the lock is held, just
//! before it is let go and just after it was taken again, and what that takes a worker which is by itself is subtracted.

use crate::clock;
use crate::error::Error;
use crate::stats::Latencies;

/// Somebody's way to write a byte and to read it.
pub(super) trait Exchange {
    /// One operation.
    ///
    /// # Errors
    ///
    /// The message did not come, or another one did.
    fn operate(&mut self) -> Result<(), Error>;

    /// Two operations, with looks at the clock. Gives the time of the last one.
    ///
    /// # Errors
    ///
    /// As for [`Exchange::operate`].
    fn observe(&mut self, seen: &mut Seen) -> Result<u64, Error>;

    /// From here on locks are shared with others; before, each worker is by itself.
    ///
    /// # Errors
    ///
    /// What is shared cannot be found.
    fn join(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// What was seen of the locks of two operations, in nanoseconds of the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// To have a lock, from two places in an operation.
    pub(super) waits: [u64; 2],
    /// From having it to letting it go.
    pub(super) holds: [u64; 2],
}

/// All looks. They are worked up afterwards: that takes longer than an operation.
#[derive(Debug, Default)]
pub(super) struct Seen {
    looks: Vec<Look>,
}

/// What a look takes if there is nothing to see.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alone {
    /// Instead of a wait: own work, and taking a free lock.
    waits: [u64; 2],
    /// What the clock adds to anything.
    clock: u64,
}

/// Looks at the clock of which the least one is what it costs, and looks of a worker that is by itself.
const LOOKS: usize = 1000;

impl Seen {
    /// Takes note.
    #[inline]
    pub(super) fn note(&mut self, look: Look) {
        self.looks.push(look);
    }

    /// Forgets all of it.
    pub(super) fn clear(&mut self) {
        self.looks.clear();
    }

    /// How long locks were waited for, and how long held.
    pub(super) fn latencies(&self, alone: &Alone) -> [Latencies; 2] {
        let (mut wait, mut hold) = (Latencies::new(), Latencies::new());
        for Look { waits, holds } in &self.looks {
            for (value, own) in waits.iter().zip(alone.waits) {
                wait.record(value.saturating_sub(own));
            }
            for value in holds {
                hold.record(value.saturating_sub(alone.clock));
            }
        }
        [wait, hold]
    }
}

impl Alone {
    /// Of a worker that has not joined the others.
    pub(super) fn watch(exchange: &mut impl Exchange) -> Result<Self, Error> {
        let mut seen = Seen::default();
        for _ in 0..LOOKS {
            exchange.observe(&mut seen)?;
        }
        let mut waits = [0, 1].map(|at| {
            let mut values: Vec<u64> = seen.looks.iter().map(|look| look.waits[at]).collect();
            values.sort_unstable();
            values
        });
        let between = |_| {
            let before = clock::now();
            clock::now() - before
        };
        Ok(Self {
            waits: waits
                .each_mut()
                .map(|values| values.get(values.len() / 2).copied().unwrap_or(0)),
            clock: (0..LOOKS).map(between).min().unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Locks that are waited for 10 and 20 ns by somebody alone, and 5 more once others are there.
    struct Steady {
        others: u64,
    }

    impl Exchange for Steady {
        fn operate(&mut self) -> Result<(), Error> {
            Ok(())
        }

        fn observe(&mut self, seen: &mut Seen) -> Result<u64, Error> {
            seen.note(Look { waits: [10 + self.others, 20 + self.others], holds: [1_000; 2] });
            Ok(0)
        }

        fn join(&mut self) -> Result<(), Error> {
            self.others = 5;
            Ok(())
        }
    }

    #[test]
    fn a_wait_is_what_comes_on_top_of_being_alone() {
        let mut exchange = Steady { others: 0 };
        let alone = Alone::watch(&mut exchange).unwrap();
        let mut seen = Seen::default();
        exchange.observe(&mut seen).unwrap();
        let [wait, hold] = seen.latencies(&alone);
        assert_eq!((wait.len(), wait.quantile(1.0), hold.len()), (2, 0, 2));
        assert!(hold.quantile(1.0) <= 1_000);
        seen.clear();
        exchange.join().unwrap();
        exchange.observe(&mut seen).unwrap();
        let [wait, _] = seen.latencies(&alone);
        assert_eq!((wait.quantile(0.0), wait.quantile(1.0)), (5, 5));
    }

    #[test]
    fn where_there_is_nothing_to_see_there_are_no_waits() {
        struct Blind;
        impl Exchange for Blind {
            fn operate(&mut self) -> Result<(), Error> {
                Ok(())
            }
            fn observe(&mut self, _: &mut Seen) -> Result<u64, Error> {
                Ok(0)
            }
        }
        let alone = Alone::watch(&mut Blind).unwrap();
        let [wait, hold] = Seen::default().latencies(&alone);
        assert!(wait.is_empty() && hold.is_empty());
    }
}
