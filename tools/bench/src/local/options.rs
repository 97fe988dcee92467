//! What can be asked of the experiment?

use std::time::Duration;

use apus::PollMode;
use serde_json::{Map, Value, json};

use crate::contest::check_repetition;
use apus_contenders::contender::Plan;
use apus_report::result::named;
use apus_testbed::error::{Error, require};

/// Options of the experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Payload bytes of requests, each size once: 1 to 64 MB. The first one is what rows and ratios are about.
    pub sizes: Vec<usize>,
    /// Small requests under way at the same time: 1 to 65536.
    pub outstanding: usize,
    /// Workers at a time, up to so many: 1 to 1024; 0 leaves them out.
    pub workers: usize,
    /// Clients of one server at a time, up to so many: 1 to 1024; 0 leaves them out.
    pub clients: usize,
    /// Seconds that count, for each contender in each phase of each run: 0.01 to 3600. A tenth of it is
    /// warm-up before.
    pub seconds: f64,
    /// How often everything is repeated: 1 to 1000.
    pub runs: usize,
    /// Where chance begins.
    pub seed: u64,
    /// How both sides wait.
    pub poll: PollMode,
    /// Only these contenders, by name; all if empty.
    pub only: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sizes: vec![100, 500_000],
            outstanding: 64,
            workers: 0,
            clients: 0,
            seconds: 0.5,
            runs: 5,
            seed: 1,
            poll: PollMode::Spin,
            only: Vec::new(),
        }
    }
}

impl Options {
    /// Bytes from which on a message is large. Ours: what one call takes from a stream at most.
    pub const LARGE: usize = 64 << 10;

    /// Large messages under way at most, as in `bench throughput`.
    pub const LARGE_OUTSTANDING: usize = 8;

    /// Most workers, and most clients. Ours: more than the largest hosts have cores.
    const MOST: usize = 1024;

    /// Whether each value is in its range.
    ///
    /// # Errors
    ///
    /// Names the first one that is not, and one that would be.
    pub fn check(&self) -> Result<(), Error> {
        let range = self.sizes.iter().all(|size| (1..=Plan::LARGEST).contains(size));
        require(range, "size", "a message has 1 to 64000000 bytes; try 100")?;
        let mut once = self.sizes.clone();
        once.sort_unstable();
        once.dedup();
        let once = once.len() == self.sizes.len() && !once.is_empty();
        require(once, "size", "there is a size at least, and each once; try 100,500000")?;
        let outstanding = (1..=65_536).contains(&self.outstanding);
        require(outstanding, "outstanding", "1 to 65536 requests may be under way; try 64")?;
        require(self.workers <= Self::MOST, "workers", "there are 1 to 1024 workers; try 2")?;
        require(self.clients <= Self::MOST, "clients", "there are 1 to 1024 clients; try 4")?;
        check_repetition(self.seconds, self.runs)
    }

    /// How many there are at a time, if there are up to `most`: 1, 2, 4 and so on, and `most`.
    pub(super) fn counts(most: usize) -> Vec<usize> {
        let doubled = std::iter::successors(Some(1), |count| Some(count * 2));
        let mut counts: Vec<usize> = doubled.take_while(|count| *count < most).collect();
        counts.extend((most > 0).then_some(most));
        counts
    }

    /// Whether a message of that size is large.
    pub(super) const fn is_large(size: usize) -> bool {
        size >= Self::LARGE
    }

    /// What each side is told when so many messages of that size are under way.
    pub(super) fn plan(&self, size: usize, outstanding: usize, poll: PollMode) -> Plan {
        let measure = Duration::from_secs_f64(self.seconds);
        let settings = apus::Settings::default();
        Plan {
            size,
            outstanding,
            poll,
            settings,
            warmup: measure / 10,
            measure,
            seed: self.seed,
            raw: false,
        }
    }

    /// Messages of that size under way where there are many.
    pub(super) const fn many(&self, size: usize) -> usize {
        if Self::is_large(size) && self.outstanding > Self::LARGE_OUTSTANDING {
            Self::LARGE_OUTSTANDING
        } else {
            self.outstanding
        }
    }

    /// As a result shows it.
    pub(super) fn config(&self) -> Map<String, Value> {
        named([
            ("size", json!(self.sizes[0])),
            ("sizes", json!(self.sizes)),
            ("outstanding", json!(self.outstanding)),
            ("large_outstanding", json!(self.many(Self::LARGE))),
            ("workers", json!(self.workers)),
            ("clients", json!(self.clients)),
            ("seconds", json!(self.seconds)),
            ("runs", json!(self.runs)),
            ("seed", json!(self.seed)),
            ("poll", json!(self.poll)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_in_range() {
        Options::default().check().unwrap();
    }

    #[test]
    fn what_is_out_of_range_is_named_with_something_that_is_not() {
        let good = Options::default;
        let wrong = [
            Options { sizes: vec![100, 0], ..good() },
            Options { sizes: vec![Plan::LARGEST + 1], ..good() },
            Options { sizes: vec![], ..good() },
            Options { sizes: vec![7, 100, 7], ..good() },
            Options { outstanding: 0, ..good() },
            Options { workers: 1025, ..good() },
            Options { clients: 1025, ..good() },
            Options { seconds: 0.0, ..good() },
            Options { runs: 0, ..good() },
        ];
        let messages = wrong.map(|options| options.check().unwrap_err().to_string());
        insta::assert_snapshot!(messages.join("\n"), @r"
        size: a message has 1 to 64000000 bytes; try 100
        size: a message has 1 to 64000000 bytes; try 100
        size: there is a size at least, and each once; try 100,500000
        size: there is a size at least, and each once; try 100,500000
        outstanding: 1 to 65536 requests may be under way; try 64
        workers: there are 1 to 1024 workers; try 2
        clients: there are 1 to 1024 clients; try 4
        seconds: a contender is measured for 0.01 to 3600 seconds; try 1
        runs: there are 1 to 1000 runs; try 5
        ");
    }

    #[test]
    fn numbers_double_up_to_the_last_one() {
        assert_eq!(Options::counts(0), [0; 0]);
        assert_eq!(Options::counts(1), [1]);
        assert_eq!(Options::counts(2), [1, 2]);
        assert_eq!(Options::counts(7), [1, 2, 4, 7]);
        assert_eq!(Options::counts(8), [1, 2, 4, 8]);
    }

    #[test]
    fn fewer_large_messages_are_under_way() {
        let options = Options::default();
        assert_eq!([options.many(65_535), options.many(65_536)], [64, 8]);
        let few = Options { outstanding: 4, ..options };
        assert_eq!([few.many(100), few.many(500_000)], [4, 4]);
    }
}
