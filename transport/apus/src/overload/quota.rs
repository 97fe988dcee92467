//! Quotas: bounds for the work of each kind in one pass of a loop.

/// The kinds of work of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// Receiving. Counted in packets.
    Receive,
    /// Sending. The engine counts bytes of payload; a router may count packets.
    Transmit,
    /// Handling timers that are due. Counted in timers.
    Timers,
    /// Delivering to the application. Counted in messages, or in whatever unit is delivered.
    Deliveries,
}

impl Work {
    /// All kinds, in the order of a pass.
    pub const ALL: [Self; 4] = [Self::Receive, Self::Timers, Self::Transmit, Self::Deliveries];
}

/// The most work of each kind in one pass of a loop. 0 counts as 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// Packets received.
    pub receive: usize,
    /// Bytes sent.
    pub transmit: usize,
    /// Timers.
    pub timers: usize,
    /// Messages delivered.
    pub deliveries: usize,
}

impl Quotas {
    /// The quotas of the engine.
    ///
    /// - `receive`: 32 packets. Mogul & Ramakrishnan found 5, 10 and 20 good and 100 too many, and
    ///   recommend 10 to 20 for packets that are received one by one. A system call here receives
    ///   many: 8 cost more calls, and 64 jumbo packets leave the cache before they are copied.
    /// - `transmit`: 128 KiB, two sends that the kernel splits into packets. With one, the
    ///   interface runs dry; with more, a shorter message that arrives during the sends waits
    ///   longer.
    /// - `timers`: 64, twice the number of packets, so that timers are worked off although each
    ///   packet may start one.
    /// - `deliveries`: 64, for the same reason: 32 packets can complete 32 messages.
    pub const DEFAULT: Self = Self { receive: 32, transmit: 1 << 17, timers: 64, deliveries: 64 };

    /// A quota that is never exhausted.
    pub const UNLIMITED: usize = usize::MAX;

    /// No limits: what Mogul & Ramakrishnan call polling without a quota.
    pub const NONE: Self = Self {
        receive: Self::UNLIMITED,
        transmit: Self::UNLIMITED,
        timers: Self::UNLIMITED,
        deliveries: Self::UNLIMITED,
    };

    /// Returns the quota of one kind of work, at least 1.
    #[inline]
    #[must_use]
    pub const fn of(&self, work: Work) -> usize {
        let quota = match work {
            Work::Receive => self.receive,
            Work::Transmit => self.transmit,
            Work::Timers => self.timers,
            Work::Deliveries => self.deliveries,
        };
        if quota == 0 { 1 } else { quota }
    }
}

impl Default for Quotas {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The rest of the [`Quotas`] in the current pass, and counts of exhausted quotas.
#[derive(Clone, Debug)]
pub struct Budget {
    quotas: Quotas,
    /// Indexed by [`Work`].
    left: [usize; 4],
    exhausted: [u64; 4],
}

impl Budget {
    /// Creates a budget for passes with these quotas, and starts the first pass.
    #[inline]
    #[must_use]
    pub const fn new(quotas: Quotas) -> Self {
        let mut budget = Self { quotas, left: [0; 4], exhausted: [0; 4] };
        budget.begin();
        budget
    }

    /// Starts a pass: restores all quotas.
    #[inline]
    pub const fn begin(&mut self) {
        self.left = [
            self.quotas.of(Work::Receive),
            self.quotas.of(Work::Transmit),
            self.quotas.of(Work::Timers),
            self.quotas.of(Work::Deliveries),
        ];
    }

    /// Returns the amount of work that is left in this pass.
    #[inline]
    #[must_use]
    pub const fn left(&self, work: Work) -> usize {
        self.left[work as usize]
    }

    /// Subtracts `amount` from the rest of the quota. Returns whether any is left.
    ///
    /// `amount` may exceed the rest, since one send may have more bytes than that; the excess is
    /// not subtracted from the next pass.
    #[inline]
    pub const fn spend(&mut self, work: Work, amount: usize) -> bool {
        let left = &mut self.left[work as usize];
        let had = *left;
        *left = left.saturating_sub(amount);
        if had > 0 && *left == 0 {
            self.exhausted[work as usize] += 1;
        }
        *left > 0
    }

    /// Returns the number of passes that have exhausted the quota of this kind, and may have left
    /// work undone.
    #[inline]
    #[must_use]
    pub const fn exhausted(&self, work: Work) -> u64 {
        self.exhausted[work as usize]
    }
}

/// Rotates the order of sources that share one quota: each pass starts with another source.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin {
    next: usize,
}

impl RoundRobin {
    /// Returns the indices of `sources` sources in the order of this pass. The next pass starts
    /// with the second of them.
    #[inline]
    pub fn order(&mut self, sources: usize) -> impl Iterator<Item = usize> + use<> {
        let first = if sources == 0 { 0 } else { self.next % sources };
        self.next = first + 1;
        (first..sources).chain(0..first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_ends_at_its_quota_and_the_next_one_has_it_again() {
        let mut budget = Budget::new(Quotas { receive: 5, ..Quotas::default() });
        assert!(budget.spend(Work::Receive, 3));
        assert_eq!(budget.left(Work::Receive), 2);
        assert!(!budget.spend(Work::Receive, 2));
        assert!(!budget.spend(Work::Receive, 1), "it is counted once");
        assert_eq!((budget.left(Work::Receive), budget.exhausted(Work::Receive)), (0, 1));
        budget.begin();
        assert_eq!((budget.left(Work::Receive), budget.exhausted(Work::Receive)), (5, 1));
    }

    #[test]
    fn kinds_of_work_do_not_take_from_each_other() {
        let mut budget = Budget::new(Quotas { transmit: 10, ..Quotas::default() });
        assert!(!budget.spend(Work::Transmit, 1_000), "a long send");
        for work in Work::ALL.into_iter().filter(|work| *work != Work::Transmit) {
            assert_eq!(budget.left(work), Quotas::default().of(work));
            assert_eq!(budget.exhausted(work), 0);
        }
    }

    #[test]
    fn without_limits_nothing_is_ever_exhausted() {
        let mut budget = Budget::new(Quotas::NONE);
        assert!(Work::ALL.into_iter().all(|work| budget.spend(work, 1 << 40)));
    }

    #[test]
    fn a_quota_of_nothing_would_never_end() {
        let mut budget = Budget::new(Quotas { timers: 0, ..Quotas::default() });
        assert_eq!(budget.left(Work::Timers), 1);
        assert!(!budget.spend(Work::Timers, 1));
    }

    #[test]
    fn each_source_is_first_in_turn() {
        let mut robin = RoundRobin::default();
        let mut order = |sources| robin.order(sources).collect::<Vec<_>>();
        assert_eq!([order(3), order(3), order(3)], [[0, 1, 2], [1, 2, 0], [2, 0, 1]]);
        assert_eq!(order(3), [0, 1, 2]);
        assert_eq!(order(0), [0; 0]);
        assert_eq!((order(1), order(2)), (vec![0], vec![1, 0]), "their number may change");
    }
}
