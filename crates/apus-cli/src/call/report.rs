//! What came of the calls?

use std::net::SocketAddr;
use std::time::Duration;

use apus::{Bytes, CallError};
use apus_lab::result::{Figure, Outcome, Row};
use apus_lab::stats::Latencies;
use serde_json::{Map, Value, json};

use super::Arguments;
use super::advice::{advice, outcome};
use crate::failure::Failure;

/// One call and its end.
#[derive(Debug)]
pub(super) struct Call {
    /// The first one is 1.
    number: u64,
    time: Duration,
    end: End,
}

#[derive(Debug)]
enum End {
    Reply {
        bytes: usize,
        /// Offset of the first byte that is not the request's.
        differs_at: Option<usize>,
    },
    Failure {
        error: String,
        outcome: &'static str,
        advice: &'static str,
    },
}

impl Call {
    /// Compares the reply with the request.
    pub(super) fn new(
        number: u64,
        time: Duration,
        request: &Bytes,
        result: &Result<Bytes, CallError>,
    ) -> Self {
        let end = match result {
            Ok(reply) => End::Reply { bytes: reply.len(), differs_at: difference(request, reply) },
            Err(error) => End::Failure {
                error: error.to_string(),
                outcome: outcome(error),
                advice: advice(error),
            },
        };
        Self { number, time, end }
    }

    /// One line for a reply, and one more with advice for a failure.
    pub(super) fn text(&self, address: SocketAddr) -> String {
        let Self { number, time, end } = self;
        match end {
            End::Reply { bytes, differs_at } => {
                let comparison = match differs_at {
                    None => "identical to the request".to_owned(),
                    Some(offset) => format!("differs from the request at byte {offset}"),
                };
                format!("reply {number} from {address}: {bytes} bytes in {time:.1?}, {comparison}")
            }
            End::Failure { error, advice, .. } => {
                let line = format!("call {number} to {address} failed after {time:.1?}: {error}");
                if advice.is_empty() { line } else { format!("{line}\n{advice}") }
            }
        }
    }

    fn json(&self) -> Value {
        let time_us = micros(self.time);
        match &self.end {
            End::Reply { bytes, differs_at } => json!({
                "bytes": bytes,
                "time_us": time_us,
                "identical": differs_at.is_none(),
                "differs_at": differs_at,
            }),
            End::Failure { error, outcome, advice } => json!({
                "error": error,
                "time_us": time_us,
                "outcome": outcome,
                "advice": advice,
            }),
        }
    }
}

/// Offset of the first byte that the two do not share.
fn difference(request: &[u8], reply: &[u8]) -> Option<usize> {
    if request == reply {
        return None;
    }
    let shared = request.iter().zip(reply).position(|(a, b)| a != b);
    Some(shared.unwrap_or(request.len().min(reply.len())))
}

/// Exact to a tenth.
fn micros(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e7).round() / 10.0
}

/// Calls that are listed one by one in JSON. Ours: enough for a look at a beginning that is slow, in
/// some megabytes; who wants to know about millions wants percentiles.
const LISTED: u64 = 10_000;

/// What came of all calls.
pub(super) struct Report {
    config: Map<String, Value>,
    /// The first ones of them, if that is asked for.
    calls: Option<Vec<Value>>,
    latencies: Latencies,
    least: Duration,
    greatest: Duration,
    replies: u64,
    failed: u64,
    identical: u64,
    /// What the last failure said.
    trouble: Option<Call>,
}

impl Report {
    /// Nothing came of any call yet.
    pub(super) fn new(arguments: &Arguments, size: usize) -> Self {
        let config = [
            ("address", json!(arguments.address.as_str())),
            ("size", json!(size)),
            ("count", json!(arguments.count)),
            ("timeout", json!(arguments.timeout.map(|time| time.as_secs_f64()))),
        ];
        Self {
            config: config.map(|(name, value)| (name.to_owned(), value)).into_iter().collect(),
            calls: (arguments.json && !arguments.quiet).then(Vec::new),
            latencies: Latencies::new(),
            least: Duration::MAX,
            greatest: Duration::ZERO,
            replies: 0,
            failed: 0,
            identical: 0,
            trouble: None,
        }
    }

    /// Takes note of the end of a call.
    pub(super) fn add(&mut self, call: Call) {
        if let Some(calls) = self.calls.as_mut().filter(|_| call.number <= LISTED) {
            calls.push(call.json());
        }
        match call.end {
            End::Reply { differs_at, .. } => {
                self.replies += 1;
                self.identical += u64::from(differs_at.is_none());
                self.latencies.record(u64::try_from(call.time.as_nanos()).unwrap_or(u64::MAX));
                self.least = self.least.min(call.time);
                self.greatest = self.greatest.max(call.time);
            }
            End::Failure { .. } => {
                self.failed += 1;
                self.trouble = Some(call);
            }
        }
    }

    /// Least, median, 99th percentile and greatest; `None` without a reply.
    fn times(&self) -> Option<[(&'static str, Duration); 4]> {
        let quantile = |fraction| Duration::from_nanos(self.latencies.quantile(fraction));
        // Percentiles are exact to a thousandth; they lie between the ends all the same.
        let between = |time: Duration| time.clamp(self.least, self.greatest);
        (self.replies > 0).then(|| {
            [
                ("min", self.least),
                ("p50", between(quantile(0.5))),
                ("p99", between(quantile(0.99))),
                ("max", self.greatest),
            ]
        })
    }

    /// The summary for people.
    pub(super) fn text(&self) -> String {
        let Self { replies, failed, identical, .. } = self;
        let calls = replies + failed;
        let counts =
            format!("{calls} calls: {replies} replies, {identical} identical, {failed} failed");
        let times =
            self.times().into_iter().flatten().map(|(name, time)| format!("{name} {time:.1?}"));
        let times = times.collect::<Vec<_>>().join(", ");
        if times.is_empty() { counts } else { format!("{counts}\n{times}") }
    }

    /// The same for machines, in the form of an experiment's outcome.
    pub(super) fn outcome(&self) -> Outcome {
        let mut row = Row::new("apus")
            .with("calls", Figure::Count(self.replies + self.failed))
            .with("failed", Figure::Count(self.failed))
            .with("identical", Figure::Count(self.identical));
        for (name, time) in self.times().into_iter().flatten() {
            row = row.with(&format!("{name}_us"), Figure::Detail(json!(micros(time))));
        }
        if let Some(calls) = &self.calls {
            row = row.with("by_call", Figure::Detail(json!(calls)));
        }
        let mut outcome = Outcome::new("call", self.config.clone());
        outcome.rows.push(row);
        if self.calls.is_some() && self.replies + self.failed > LISTED {
            outcome.notes.push(format!("by_call holds the first {LISTED} calls"));
        }
        outcome
    }

    /// Whether all calls went well.
    ///
    /// # Errors
    ///
    /// At least one failed: what happened, and what to do.
    pub(super) fn verdict(&self, address: SocketAddr) -> Result<(), Failure> {
        match (&self.trouble, self.failed) {
            (None, _) => Ok(()),
            (Some(call), 1) => Err(Failure::Work(call.text(address))),
            (Some(_), failed) => Err(Failure::Work(format!("{failed} calls failed"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_that_is_not_shared_is_found() {
        assert_eq!(difference(b"abc", b"abc"), None);
        assert_eq!(difference(b"abc", b"abd"), Some(2));
        assert_eq!(difference(b"abc", b"ab"), Some(2));
        assert_eq!(difference(b"abc", b"abcd"), Some(3));
    }
}
