//! The stage of a work: a peer, the directory of a run on it, and the measurement.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use apus_report::stats::Latencies;
use apus_testbed::error::{Doing, Error};

use super::interrupt::Interrupt;
use super::material::Material;
use super::peers::Peer;

/// Cost of a work.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sample {
    pub(super) seconds: f64,
    /// Operations, if the work counts them.
    pub(super) operations: Option<u64>,
    /// Bytes, if the work counts them.
    pub(super) bytes: Option<u64>,
    /// Median and 99th percentile of the time of one operation, in microseconds.
    pub(super) latency: Option<(f64, f64)>,
    /// The 99th percentile without load, in microseconds.
    pub(super) idle_p99: Option<f64>,
    /// Calls to the server.
    pub(super) calls: Option<u64>,
}

/// Whether a time ends when the last operation returns, or when every change is at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    Returned,
    AtServer,
}

/// A peer, ready for a work.
pub(super) struct Stage<'a> {
    pub(super) peer: &'a mut dyn Peer,
    pub(super) material: &'a Material,
    pub(super) interrupt: &'a Interrupt,
    /// Number of the run, which seeds the random choices of a work.
    pub(super) run: u64,
    /// The directory of the run.
    directory: PathBuf,
}

impl<'a> Stage<'a> {
    pub(super) fn new(
        peer: &'a mut dyn Peer,
        material: &'a Material,
        interrupt: &'a Interrupt,
        run: u64,
    ) -> Result<Self, Error> {
        let directory = peer.root().join(format!("run-{run}"));
        std::fs::create_dir_all(&directory).doing(|| format!("create {}", directory.display()))?;
        Ok(Self { peer, material, interrupt, run, directory })
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns a path in the directory of the run.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Drops the client's caches, if that is possible.
    pub(super) fn make_cold(&mut self) -> Result<(), Error> {
        self.peer.settle()?;
        self.peer.make_cold()
    }

    /// Measures `work`.
    pub(super) fn measure(
        &mut self,
        until: Until,
        work: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<Sample, Error> {
        self.peer.settle()?;
        let before = self.peer.calls()?;
        let began = Instant::now();
        work(self)?;
        if until == Until::AtServer {
            self.peer.settle()?;
        }
        let seconds = began.elapsed().as_secs_f64();
        // Calls that the work has caused, and that it did not wait for, are its calls.
        self.peer.settle()?;
        let after = self.peer.calls()?;
        let calls = before.zip(after).map(|(before, after)| after.saturating_sub(before));
        Ok(Sample { seconds, calls, ..Sample::default() })
    }

    /// Measures `count` operations one after another.
    pub(super) fn measure_each(
        &mut self,
        until: Until,
        count: u64,
        mut operation: impl FnMut(u64) -> Result<(), Error>,
    ) -> Result<Sample, Error> {
        let mut latencies = Latencies::new();
        let sample = self.measure(until, |stage| {
            for index in 0..count {
                let began = Instant::now();
                operation(index)?;
                record(&mut latencies, began.elapsed());
                stage.interrupt.check()?;
            }
            Ok(())
        })?;
        Ok(Sample { operations: Some(count), latency: Some(percentiles(&latencies)), ..sample })
    }
}

/// Adds a time.
pub(super) fn record(latencies: &mut Latencies, time: Duration) {
    latencies.record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

/// Returns the median and the 99th percentile in microseconds.
pub(super) fn percentiles(latencies: &Latencies) -> (f64, f64) {
    let us = |fraction| latencies.quantile(fraction) as f64 / 1e3;
    (us(0.5), us(0.99))
}
