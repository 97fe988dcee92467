//! How much does one turn of a loop do of each kind of work?

/// Kinds of work that take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// Taking packets in. Counted in packets.
    Receive,
    /// Sending. Counted in bytes of payload by an engine; whoever forwards packets may count these.
    Transmit,
    /// Doing what has become due. Counted in timers.
    Timers,
    /// Handing over to the application. Counted in messages, or in what else is handed over.
    Deliveries,
}

impl Work {
    /// All of them, in the order in which a turn does them.
    pub const ALL: [Self; 4] = [Self::Receive, Self::Timers, Self::Transmit, Self::Deliveries];
}

/// The most that one turn does of each kind of work; at least 1 each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// Packets received.
    pub receive: usize,
    /// Bytes sent.
    pub transmit: usize,
    /// Timers.
    pub timers: usize,
    /// Messages handed over.
    pub deliveries: usize,
}

impl Quotas {
    /// - `receive`: 32 packets. Mogul & Ramakrishnan found 5, 10 and 20 all right and 100 too many, and
    ///   recommend 10 to 20 for packets that are taken one by one; a system call here takes many, and 8
    ///   cost more calls while 64 jumbo packets leave the cache before they are copied out.
    /// - `transmit`: 128 KiB, two sends that the kernel cuts into packets. What arrives meanwhile may be
    ///   shorter, and goes first then; with one, the interface runs dry.
    /// - `timers`: 64, twice as many as packets: a round of timers ends although each packet may start one.
    /// - `deliveries`: 64, for the same reason: 32 packets can complete 32 messages.
    pub const DEFAULT: Self = Self { receive: 32, transmit: 1 << 17, timers: 64, deliveries: 64 };

    /// No limit.
    pub const UNLIMITED: usize = usize::MAX;

    /// Nothing is limited: what Mogul & Ramakrishnan call polling without a quota.
    pub const NONE: Self = Self {
        receive: Self::UNLIMITED,
        transmit: Self::UNLIMITED,
        timers: Self::UNLIMITED,
        deliveries: Self::UNLIMITED,
    };

    /// The most of one kind of work.
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

/// What is left of the [`Quotas`] in a turn, and how often nothing was.
#[derive(Clone, Debug)]
pub struct Budget {
    quotas: Quotas,
    /// By number of the kind of work.
    left: [usize; 4],
    exhausted: [u64; 4],
}

impl Budget {
    /// For turns of at most so much; the first one begins.
    #[must_use]
    pub const fn new(quotas: Quotas) -> Self {
        let mut budget = Self { quotas, left: [0; 4], exhausted: [0; 4] };
        budget.begin();
        budget
    }

    /// A turn begins: everything may be done again.
    pub const fn begin(&mut self) {
        self.left = [
            self.quotas.of(Work::Receive),
            self.quotas.of(Work::Transmit),
            self.quotas.of(Work::Timers),
            self.quotas.of(Work::Deliveries),
        ];
    }

    /// How much may still be done in this turn.
    #[must_use]
    pub const fn left(&self, work: Work) -> usize {
        self.left[work as usize]
    }

    /// So much was done; whether more may be. It may have been more than was left, as one send may have
    /// more bytes: the excess is forgiven.
    pub const fn spend(&mut self, work: Work, amount: usize) -> bool {
        let left = &mut self.left[work as usize];
        let had = *left;
        *left = left.saturating_sub(amount);
        if had > 0 && *left == 0 {
            self.exhausted[work as usize] += 1;
        }
        *left > 0
    }

    /// In how many turns so far the quota of this kind was used up: something may have been left over.
    #[must_use]
    pub const fn exhausted(&self, work: Work) -> u64 {
        self.exhausted[work as usize]
    }
}

/// Who is first when several sources of work share one quota? In each turn another one.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin {
    turns: usize,
}

impl RoundRobin {
    /// The numbers of `sources` sources, each once, in the order in which they have their turn now. The next
    /// turn begins one further.
    pub fn turn(&mut self, sources: usize) -> impl Iterator<Item = usize> + use<> {
        let first = if sources == 0 { 0 } else { self.turns % sources };
        self.turns = first + 1;
        (first..sources).chain(0..first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_ends_at_its_quota_and_the_next_one_has_it_again() {
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
    fn each_source_is_first_in_its_turn() {
        let mut robin = RoundRobin::default();
        let mut turn = |sources| robin.turn(sources).collect::<Vec<_>>();
        assert_eq!([turn(3), turn(3), turn(3)], [[0, 1, 2], [1, 2, 0], [2, 0, 1]]);
        assert_eq!(turn(3), [0, 1, 2]);
        assert_eq!(turn(0), [0; 0]);
        assert_eq!((turn(1), turn(2)), (vec![0], vec![1, 0]), "their number may change");
    }
}
