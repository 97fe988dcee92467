//! Options of the local experiment.

use std::time::Duration;

use apus::PollMode;
use clap::Args;
use serde_json::{Map, Value, json};

use crate::options::Repetition;
use apus_measure::plan::Plan;
use apus_report::experiment::{config, defaults};
use apus_report::result::named;
use apus_testbed::error::{Error, require};

/// Processes of one host: shared memory beside unix sockets and TCP
///
/// `apus-local` are endpoints, which take the path through shared memory by themselves when their
/// peer is on the same host; `apus-local-pair` is the pair of rings below them, without an
/// endpoint. `bare` is a bare exchange of as many cache lines as a message takes, and its krps that
/// of the pair. `unix` is the faster kind of unix socket, figure by figure in each run: of
/// `unix-stream` (SOCK_STREAM) and `unix-seqpacket` (SOCK_SEQPACKET), whose packets are as long as
/// a socket's buffer at most. `tcp` is a connection over loopback with TCP_NODELAY, `apus-udp`
/// endpoints over loopback without shared memory. Sockets carry a length before each message, one
/// send for each, and readers take what has arrived; but servers of many clients use epoll and
/// answer what is ready in one send. All wait as --poll says.
///
/// p50 and p99: one request and its echo at a time. krps: with --outstanding of them outstanding.
/// Messages of 64 KiB and more are large: at most 8 are outstanding, their replies are short, and
/// gbps is what the server receives. Rows and ratios show the first size, and gbps the largest one.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(
    mut_arg("seconds", |argument| argument.default_value("0.5")),
    after_help = "Examples:
  apus-lab bench local
  apus-lab bench local --size 1,100,4096,65536,1000000 --poll block
  apus-lab bench local --workers 8 --clients 16 --only apus-local,unix,tcp --json"
)]
pub struct LocalOptions {
    /// Payload bytes of requests, with commas between them: 1 to 64000000 each
    #[arg(
        long = "size",
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "100,500000",
        allow_negative_numbers = true
    )]
    pub sizes: Vec<usize>,
    /// Small requests that are outstanding at a time: 1 to 65536
    #[arg(long, value_name = "REQUESTS", default_value_t = 64, allow_negative_numbers = true)]
    pub outstanding: usize,
    /// Also 1, 2, 4 … up to `WORKERS` workers at a time, each with a connection of its own: a byte
    /// written and read by the same task, as unix1_processes of will-it-scale does it (kops: writes
    /// that were read), and a ping-pong of a byte between two tasks; 1 to 1024
    #[arg(long, value_name = "WORKERS", allow_negative_numbers = true)]
    pub workers: Option<usize>,
    /// Also 1, 2, 4 … up to `CLIENTS` clients of one server, with --outstanding requests in sum: 1
    /// to 1024
    #[arg(long, value_name = "CLIENTS", allow_negative_numbers = true)]
    pub clients: Option<usize>,
    /// Only these contenders, by the names of their rows, with commas between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Length, seed and waiting of each phase; a tenth of the seconds is warm-up before.
    #[command(flatten)]
    pub repetition: Repetition,
}

impl Default for LocalOptions {
    fn default() -> Self {
        defaults()
    }
}

impl LocalOptions {
    /// Minimum length of a large message. Chosen by us: the maximum that one call reads from a
    /// stream.
    pub const LARGE: usize = 64 << 10;

    /// Maximum outstanding large messages, as in `bench throughput`.
    pub const LARGE_OUTSTANDING: usize = 8;

    /// Maximum number of workers and of clients. Chosen by us: more than the cores of the largest
    /// hosts.
    const MOST: usize = 1024;

    /// Checks that each value is in its range.
    ///
    /// # Errors
    ///
    /// Names the first option that is out of range, and a valid value.
    pub fn check(&self) -> Result<(), Error> {
        let range = self.sizes.iter().all(|size| (1..=Plan::LARGEST).contains(size));
        require(
            range,
            "size",
            "a message has 1 to 64000000 bytes, as streams have no empty ones; try 100",
        )?;
        let mut once = self.sizes.clone();
        once.sort_unstable();
        once.dedup();
        let once = once.len() == self.sizes.len() && !once.is_empty();
        require(once, "size", "there is a size at least, and each once; try 100,500000")?;
        let outstanding = (1..=65_536).contains(&self.outstanding);
        require(outstanding, "outstanding", "1 to 65536 requests are outstanding; try 64")?;
        let in_range = |count: Option<usize>| count.is_none_or(|it| (1..=Self::MOST).contains(&it));
        require(in_range(self.workers), "workers", "there are 1 to 1024 workers; try 2")?;
        require(in_range(self.clients), "clients", "there are 1 to 1024 clients; try 4")?;
        self.repetition.check()
    }

    /// Returns the measured counts up to `most`: 1, 2, 4 and so on, and `most`.
    pub(super) fn counts(most: Option<usize>) -> Vec<usize> {
        let Some(most) = most else { return Vec::new() };
        let doubled = std::iter::successors(Some(1), |count| Some(count * 2));
        let mut counts: Vec<usize> = doubled.take_while(|count| *count < most).collect();
        counts.push(most);
        counts
    }

    /// Returns whether a message of `size` bytes is large.
    pub(super) const fn is_large(size: usize) -> bool {
        size >= Self::LARGE
    }

    /// Returns the plan of both sides for `outstanding` messages of `size` bytes.
    pub(super) fn plan(&self, size: usize, outstanding: usize, poll: PollMode) -> Plan {
        let measure = Duration::from_secs_f64(self.repetition.seconds);
        let settings = apus::Settings::default();
        Plan {
            size,
            outstanding,
            poll,
            settings,
            warmup: measure / 10,
            measure,
            seed: self.repetition.seed,
            raw: false,
            keys: None,
        }
    }

    /// Returns the number of outstanding messages of `size` bytes in the phases with many.
    pub(super) const fn many(&self, size: usize) -> usize {
        if Self::is_large(size) && self.outstanding > Self::LARGE_OUTSTANDING {
            Self::LARGE_OUTSTANDING
        } else {
            self.outstanding
        }
    }

    /// Returns the options as a result shows them.
    pub(super) fn config(&self) -> Map<String, Value> {
        let own = named([
            ("size", json!(self.sizes[0])),
            ("sizes", json!(self.sizes)),
            ("outstanding", json!(self.outstanding)),
            ("large_outstanding", json!(self.many(Self::LARGE))),
            ("workers", json!(self.workers.unwrap_or(0))),
            ("clients", json!(self.clients.unwrap_or(0))),
        ]);
        own.into_iter().chain(config(&self.repetition)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_in_range() {
        LocalOptions::default().check().unwrap();
    }

    #[test]
    fn what_is_out_of_range_is_named_with_something_that_is_not() {
        let good = LocalOptions::default;
        let wrong = [
            LocalOptions { sizes: vec![100, 0], ..good() },
            LocalOptions { sizes: vec![Plan::LARGEST + 1], ..good() },
            LocalOptions { sizes: vec![], ..good() },
            LocalOptions { sizes: vec![7, 100, 7], ..good() },
            LocalOptions { outstanding: 0, ..good() },
            LocalOptions { workers: Some(1025), ..good() },
            LocalOptions { clients: Some(0), ..good() },
            LocalOptions { repetition: Repetition { seconds: 0.0, ..good().repetition }, ..good() },
            LocalOptions { repetition: Repetition { runs: 0, ..good().repetition }, ..good() },
        ];
        let messages = wrong.map(|options| options.check().unwrap_err().to_string());
        insta::assert_snapshot!(messages.join("\n"), @r"
        size: a message has 1 to 64000000 bytes, as streams have no empty ones; try 100
        size: a message has 1 to 64000000 bytes, as streams have no empty ones; try 100
        size: there is a size at least, and each once; try 100,500000
        size: there is a size at least, and each once; try 100,500000
        outstanding: 1 to 65536 requests are outstanding; try 64
        workers: there are 1 to 1024 workers; try 2
        clients: there are 1 to 1024 clients; try 4
        seconds: a contender is measured for 0.01 to 3600 seconds; try 1
        runs: there are 1 to 1000 runs; try 5
        ");
    }

    #[test]
    fn numbers_double_up_to_the_last_one() {
        assert_eq!(LocalOptions::counts(None), [0; 0]);
        assert_eq!(LocalOptions::counts(Some(1)), [1]);
        assert_eq!(LocalOptions::counts(Some(2)), [1, 2]);
        assert_eq!(LocalOptions::counts(Some(7)), [1, 2, 4, 7]);
        assert_eq!(LocalOptions::counts(Some(8)), [1, 2, 4, 8]);
    }

    #[test]
    fn fewer_large_messages_are_under_way() {
        let options = LocalOptions::default();
        assert_eq!([options.many(65_535), options.many(65_536)], [64, 8]);
        let few = LocalOptions { outstanding: 4, ..options };
        assert_eq!([few.many(100), few.many(500_000)], [4, 4]);
    }
}
