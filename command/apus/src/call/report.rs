//! Results of the calls: each call, their summary, and the command's success, as text and JSON.

use std::net::SocketAddr;
use std::time::Duration;

use apus::{Bytes, CallError, FailureKind, RpcError};
use apus_report::result::{Figure, Outcome, Row};
use apus_report::stats::Latencies;
use serde_json::{Map, Value, json};

use super::advice::{Circumstances, advice, execution};
use super::arguments::CallArguments;
use super::route::Route;
use apus_command_line::failure::Failure;

/// One finished call.
#[derive(Debug)]
pub(super) struct Call {
    /// Number of the call; the first is 1.
    number: u64,
    time: Duration,
    end: End,
}

#[derive(Debug)]
enum End {
    Reply {
        bytes: usize,
        /// Offset of the first byte that differs from the request, or the length of the shorter
        /// message.
        differs_at: Option<usize>,
    },
    Failure {
        error: String,
        execution: &'static str,
        advice: String,
    },
}

impl Call {
    /// Compares the reply with the request.
    pub(super) fn new(
        number: u64,
        request: &Bytes,
        result: &Result<Bytes, CallError>,
        facts: &Circumstances,
    ) -> Self {
        let time = facts.waited;
        let end = match result {
            Ok(reply) => End::Reply { bytes: reply.len(), differs_at: difference(request, reply) },
            Err(error) => End::Failure {
                error: error.to_string(),
                execution: execution(error),
                advice: advice_with_cause(error, facts),
            },
        };
        Self { number, time, end }
    }

    /// Returns the line for a reply; for a failure, its line and possibly a line with advice.
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
            End::Failure { error, execution, advice } => json!({
                "error": error,
                "time_us": time_us,
                "outcome": execution,
                "advice": advice,
            }),
        }
    }
}

/// Returns the advice after a failure; for one of trust, with the cause of the failed handshake.
fn advice_with_cause(error: &CallError, facts: &Circumstances) -> String {
    match (error, facts.handshake) {
        (CallError::Failed(RpcError { kind: FailureKind::Untrusted, .. }), Some(cause)) => {
            format!("Cause: {cause}. `apus keys show` shows the keys of each host.")
        }
        _ => advice(error, facts).to_owned(),
    }
}

/// Returns the offset of the first differing byte; `None` if they are equal.
fn difference(request: &[u8], reply: &[u8]) -> Option<usize> {
    if request == reply {
        return None;
    }
    let differs = request.iter().zip(reply).position(|(a, b)| a != b);
    Some(differs.unwrap_or(request.len().min(reply.len())))
}

/// Returns microseconds, rounded to a tenth.
fn micros(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e7).round() / 10.0
}

/// Maximum number of calls listed individually in JSON. Chosen by us: it shows a slow start in a
/// few megabytes; for millions of calls the percentiles are more informative.
const LISTED: u64 = 10_000;

/// The results of all calls.
pub(super) struct Report {
    config: Map<String, Value>,
    /// The first [`LISTED`] calls as JSON, if they are requested.
    calls: Option<Vec<Value>>,
    latencies: Latencies,
    shortest: Duration,
    longest: Duration,
    replies: u64,
    failed: u64,
    identical: u64,
    /// The last failed call.
    failure: Option<Call>,
}

impl Report {
    /// Returns a report without calls.
    pub(super) fn new(arguments: &CallArguments, size: usize) -> Self {
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
            shortest: Duration::MAX,
            longest: Duration::ZERO,
            replies: 0,
            failed: 0,
            identical: 0,
            failure: None,
        }
    }

    /// Adds a call.
    pub(super) fn add(&mut self, call: Call) {
        if let Some(calls) = self.calls.as_mut().filter(|_| call.number <= LISTED) {
            calls.push(call.json());
        }
        match call.end {
            End::Reply { differs_at, .. } => {
                self.replies += 1;
                self.identical += u64::from(differs_at.is_none());
                self.latencies.record(u64::try_from(call.time.as_nanos()).unwrap_or(u64::MAX));
                self.shortest = self.shortest.min(call.time);
                self.longest = self.longest.max(call.time);
            }
            End::Failure { .. } => {
                self.failed += 1;
                self.failure = Some(call);
            }
        }
    }

    /// Returns minimum, median, 99th percentile and maximum of reply times; `None` without a
    /// reply.
    fn times(&self) -> Option<[(&'static str, Duration); 4]> {
        let quantile = |fraction| Duration::from_nanos(self.latencies.quantile(fraction));
        // Percentiles are rounded to a thousandth and may exceed the exact minimum or maximum.
        let rounded = |time: Duration| time.clamp(self.shortest, self.longest);
        (self.replies > 0).then(|| {
            [
                ("min", self.shortest),
                ("p50", rounded(quantile(0.5))),
                ("p99", rounded(quantile(0.99))),
                ("max", self.longest),
            ]
        })
    }

    /// Returns the summary as text.
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

    /// Returns the summary for `--json`, in the form of an experiment's outcome.
    pub(super) fn outcome(&self, route: &Route) -> Outcome {
        let mut row = Row::new("apus")
            .with("calls", Figure::Count(self.replies + self.failed))
            .with("failed", Figure::Count(self.failed))
            .with("identical", Figure::Count(self.identical));
        row = route.add_to(row);
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

    /// Succeeds if all calls succeeded.
    ///
    /// # Errors
    ///
    /// At least one call failed. If it is the only call, the message names its failure, with
    /// advice.
    pub(super) fn verdict(&self, address: SocketAddr) -> Result<(), Failure> {
        match (&self.failure, self.failed) {
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
    fn the_first_different_byte_is_found() {
        assert_eq!(difference(b"abc", b"abc"), None);
        assert_eq!(difference(b"abc", b"abd"), Some(2));
        assert_eq!(difference(b"abc", b"ab"), Some(2));
        assert_eq!(difference(b"abc", b"abcd"), Some(3));
    }
}
