//! Options of both experiments.

use crate::contender::Contender;
use crate::error::Error;
use apus_report::experiment::config;
use apus_report::findings::Findings;
use clap::{Parser, Subcommand};
use serde::Serialize;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::Duration;

/// Typed services and tonic over apus, beside tonic over HTTP/2 and tarpc
///
/// `call` is a bare call of a tokio endpoint; `service` a method of `#[apus_rpc::service]`;
/// `tonic-apus` and `tonic-http2` a unary call of one generated client; `tarpc` a method of tarpc
/// over TCP with bincode and TCP_NODELAY. Each echoes its payload. p50 and p99 are of one call at a
/// time, krps of many outstanding. Contenders take turns in each run; every figure is a median over
/// the runs, and ratios are computed inside each run.
///
/// With --hedging: two servers, each of which stalls at random, called without and with hedging.
#[derive(Clone, Debug, Parser, Serialize)]
#[command(
    name = "apus-lab bench rpc",
    version,
    after_help = "Examples:
  apus-lab bench rpc
  apus-lab bench rpc --only tonic-apus,tonic-http2 --seconds 3
  apus-lab bench rpc --hedging --json"
)]
pub(crate) struct RpcOptions {
    /// Payload bytes of requests and responses: 0 to 1000000
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    pub(crate) size: usize,
    /// Calls outstanding at a time where rates are measured: 1 to 4096
    #[arg(long, value_name = "CALLS", default_value_t = 64)]
    pub(crate) outstanding: usize,
    /// Only these contenders, with commas between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) only: Vec<Contender>,
    /// Measure hedging instead
    #[arg(long)]
    pub(crate) hedging: bool,
    /// Percentage of calls in which a server stalls for 100 ms, with --hedging: 0 to 100
    #[arg(long, value_name = "PERCENT", default_value_t = 2)]
    pub(crate) stalls: u32,
    /// Seconds of each measurement; a tenth of it is warm-up before
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    pub(crate) seconds: f64,
    /// Runs; the median over them is reported
    #[arg(long, value_name = "RUNS", default_value_t = 5)]
    pub(crate) runs: usize,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print one JSON object instead of tables
    #[arg(long)]
    #[serde(skip)]
    pub(crate) json: bool,
    /// Also write a page with the result
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub(crate) html: Option<PathBuf>,
    #[command(subcommand)]
    #[serde(skip)]
    pub(crate) command: Option<RpcCommand>,
}

/// What a server's process does.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum RpcCommand {
    /// One side of a measurement
    #[command(hide = true)]
    Serve {
        /// The contender
        contender: Contender,
    },
    /// A server that stalls
    #[command(hide = true)]
    ServeStalling {
        /// Seed of the stalls
        seed: u64,
        /// Percentage of calls that stall
        percent: u32,
    },
}

impl RpcOptions {
    /// Checks that each value is in its range; the error names the first invalid value and a valid
    /// one.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let require = |holds, message| if holds { Ok(()) } else { Err(message) };
        require(self.size <= 1_000_000, "--size: 0 to 1000000 bytes; try 100")?;
        let outstanding = (1..=4_096).contains(&self.outstanding);
        require(outstanding, "--outstanding: 1 to 4096 calls; try 64")?;
        require(self.stalls <= 100, "--stalls: 0 to 100 percent; try 2")?;
        let seconds = self.seconds > 0.0 && self.seconds <= 3_600.0;
        require(seconds, "--seconds: more than 0 and at most 3600; try 1")?;
        require((1..=1_000).contains(&self.runs), "--runs: 1 to 1000; try 5")
    }

    /// Returns the time of a measurement.
    pub(crate) fn period(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// Returns the options as a result shows them.
    pub(crate) fn config(&self) -> Map<String, Value> {
        config(self)
    }

    /// Shows a result.
    pub(crate) fn show(&self, findings: &Findings) -> Result<(), Error> {
        if let Some(path) = &self.html {
            std::fs::write(path, findings.html())
                .map_err(|error| format!("--html {}: {error}", path.display()))?;
        }
        if self.json {
            println!("{}", findings.outcome.json());
        } else {
            print!("{findings}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_in_range_and_what_is_not_is_named() {
        let parse = |arguments: &[&str]| {
            let command = ["apus-bench-rpc"].into_iter().chain(arguments.iter().copied());
            RpcOptions::try_parse_from(command).unwrap()
        };
        parse(&[]).check().unwrap();
        for (name, value) in [
            ("--size", "1000001"),
            ("--outstanding", "0"),
            ("--stalls", "101"),
            ("--seconds", "0"),
            ("--runs", "0"),
        ] {
            let message = parse(&[name, value]).check().unwrap_err();
            assert!(message.starts_with(name), "{message}");
        }
    }
}
