//! The phases of the cluster benchmark: link, base, runs.

use std::collections::BTreeMap;
use std::time::Duration;

use apus_workload::Workload;
use serde::{Deserialize, Serialize};

use super::options::{ClusterOptions, Link, Mix};
use super::run::{self, Loaded, Offered, RunResult};
use super::site::Venue;
use super::{auto, offered_load};
use crate::options::Repetition;
use crate::slowdown::{Scale, tenths};
use apus_report::result::{PhaseCounts, Phases as PhaseRecord};
use apus_testbed::error::Error;
use apus_testbed::machine::BackgroundLoad;
use apus_testbed::repeat::Repeater;

/// Duration of the unloaded phase of each transport, unless runs are much shorter than usual.
const UNLOADED: Duration = Duration::from_secs(2);

/// Maximum duration of the unloaded phase, in run lengths.
const UNLOADED_RUNS: f64 = 2.0;

/// Duration of a rate's trial in seconds.
const TRIAL: f64 = 1.5;

/// A rate of the links.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Chosen {
    pub(super) mbps: u64,
    /// The reason for the rate, in words.
    pub(super) how: String,
}

/// The base of all slowdowns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Base {
    /// Minimum time of each size in nanoseconds, and the transport that achieved it.
    pub(super) best: BTreeMap<u32, (u64, String)>,
    /// Notes about it for readers, for a sweep.
    pub(super) notes: Vec<String>,
}

/// Runs of several mixes, in the order of the mixes.
#[derive(Debug)]
pub(super) struct Runs {
    pub(super) mixes: Vec<MixRuns>,
    /// Record of all phases.
    pub(super) record: PhaseRecord,
}

/// The runs of one mix.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct MixRuns {
    /// Runs with a result.
    pub(super) of: Vec<RunResult>,
    /// How many were repeated, disturbed or lost.
    pub(super) counts: PhaseCounts,
    /// Reason for the first lost run.
    pub(super) why_lost: Option<String>,
}

/// The phases for some options.
pub(super) struct Phases<'a> {
    venue: &'a Venue,
    options: &'a ClusterOptions,
    repeater: &'a Repeater,
    /// Text before each step of the progress.
    about: String,
    workload: Workload,
    shares: Vec<(u32, f64)>,
}

impl<'a> Phases<'a> {
    pub(super) fn new(
        venue: &'a Venue,
        options: &'a ClusterOptions,
        repeater: &'a Repeater,
    ) -> Result<Self, Error> {
        let workload = options.workload()?;
        let shares = workload.sizes().iter().collect();
        Ok(Self { venue, options, repeater, about: String::new(), workload, shares })
    }

    /// Sets the prefix of progress messages, which names the options being measured.
    pub(super) fn about(self, about: &str) -> Self {
        Self { about: format!("{about}: "), ..self }
    }

    pub(super) const fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Returns each size of a message and its share.
    pub(super) fn shares(&self) -> &[(u32, f64)] {
        &self.shares
    }

    /// Returns the rate of the links.
    pub(super) fn link(&self) -> Result<Chosen, Error> {
        let start = match self.options.link {
            Link::Rate(rate) => {
                return Ok(Chosen { mbps: rate.mbps(), how: "given".to_owned() });
            }
            Link::Auto => STARTS_AT * apus_report::machine::Machine::here().cpus as u64,
        };
        let scale = self.no_scale();
        let mixes = &self.options.transports;
        let found = auto::search(start, mixes.len(), |index, mbps| {
            let mix = &mixes[index];
            let what = format!("{}which link: {mbps} Mbit/s", self.about);
            self.repeater.progress().note(&format!("{what} with {mix}"));
            let trial = || {
                let watch = BackgroundLoad::watch();
                let trial = self.load(mbps, mix, 0, &scale, (TRIAL, false))?;
                Ok((trial, watch.foreign_time()))
            };
            let Some((trial, foreign)) = self.repeater.attempt(&mix.to_string(), &what, trial)?
            else {
                return Ok(None);
            };
            let idle = trial.idle.ok_or_else(|| Error::Option {
                option: "link",
                problem: "the system does not say how busy the cores are; try 200mbit".to_owned(),
            })?;
            // The processor time of neighbours is unrelated to this rate. Slower links would not
            // free the cores, and the runs would take ten times as long.
            let neighbours = foreign.filter(|_| self.venue.is_here()).map_or(0.0, |it| it.others);
            let idle = (idle + neighbours).min(1.0);
            // A second or two contain fewer long messages than average.
            let carried: f64 = trial.parts.iter().map(|part| part.throughput).sum();
            let fewer = self.throughput(mbps) / carried.max(1.0);
            Ok(Some(((1.0 - idle) * fewer.clamp(0.8, 1.6)).min(1.0)))
        })?;
        let Some(found) = found else { return Err(self.repeater.failure()) };
        let (idle, mix) = (found.idle * 100.0, &mixes[found.hungriest]);
        let how = format!(
            "auto: {idle:.0} % of the cores' time is not needed by {mix}, which needs most of it"
        );
        let mbps = found.mbps;
        Ok(Chosen { mbps, how })
    }

    /// Returns the least time of each size over all transports.
    pub(super) fn base(&self, mbps: u64) -> Result<Base, Error> {
        let mut base = Base { best: BTreeMap::new(), notes: Vec::new() };
        let names = self.options.alone();
        let time =
            UNLOADED.min(Duration::from_secs_f64(UNLOADED_RUNS * self.options.repetition.seconds));
        for name in &names {
            let what = format!("{}best times", self.about);
            self.repeater.progress().step(&format!("{what}: {name}"));
            let times = self.repeater.attempt(name, &what, || {
                run::unloaded(self.venue, self.options, mbps, name, &self.shares, time)
            })?;
            if let Some(times) = times {
                base.take(&times, name);
            }
        }
        if base.best.is_empty() { Err(self.repeater.failure()) } else { Ok(base) }
    }

    /// Returns the base of slowdowns.
    pub(super) fn scale(&self, base: &Base) -> Scale {
        let best = base.best.iter().map(|(&size, &(time, _))| (size, time)).collect();
        Scale { best, ..self.no_scale() }
    }

    /// Groups of sizes, without a base.
    fn no_scale(&self) -> Scale {
        let sizes = self.workload.sizes();
        let best = self.shares.iter().map(|&(size, _)| (size, 1)).collect();
        Scale { best, groups: tenths(sizes), short: sizes.quantile(0.5) }
    }

    /// Returns all runs of each mix. The first mix changes from round to round.
    pub(super) fn runs(&self, mbps: u64, scale: &Scale, mixes: &[Mix]) -> Result<Runs, Error> {
        let mut found = vec![MixRuns::default(); mixes.len()];
        let Repetition { runs: rounds, seconds, .. } = self.options.repetition;
        for run in 0..rounds {
            for turn in 0..mixes.len() {
                let index = (run + turn) % mixes.len();
                let mix = &mixes[index];
                let what = format!("{}run {}", self.about, run + 1);
                self.repeater.progress().step(&format!("{what} of {rounds}: {mix}"));
                let result = self.repeater.attempt(&mix.to_string(), &what, || {
                    self.load(mbps, mix, run, scale, (seconds, self.options.kill_one))
                })?;
                found[index].of.extend(result);
            }
        }
        let record = self.repeater.take();
        for (mix, found) in mixes.iter().zip(&mut found) {
            let name = mix.to_string();
            found.counts = record.of(&name);
            found.why_lost = record.why_lost(&name).map(str::to_owned);
        }
        Ok(Runs { mixes: found, record })
    }

    fn load(
        &self,
        mbps: u64,
        mix: &Mix,
        number: usize,
        scale: &Scale,
        (seconds, kills): (f64, bool),
    ) -> Result<RunResult, Error> {
        let offered = &Offered { shares: self.shares.clone(), rate: self.offered(mbps) };
        let options = self.options;
        Loaded { options, mbps, mix, number, offered, scale, seconds, kills }.run(self.venue)
    }

    /// Payload bits per second that all nodes receive together if everything arrives.
    fn throughput(&self, mbps: u64) -> f64 {
        let messages = 2.0 * self.offered(mbps) * self.options.fabric.nodes as f64;
        messages * self.workload.sizes().mean() * 8.0
    }

    /// Returns the requests per second and node.
    pub(super) fn offered(&self, mbps: u64) -> f64 {
        let ClusterOptions { load, fabric, .. } = self.options;
        offered_load::rate(*load, mbps, fabric.mtu, self.workload.sizes())
    }
}

impl Runs {
    /// Returns whether no mix has a result.
    pub(super) fn are_none(&self) -> bool {
        self.mixes.iter().all(|mix| mix.of.is_empty())
    }
}

impl MixRuns {
    /// No runs, for this reason.
    pub(super) fn none(why: &str) -> Self {
        Self { why_lost: Some(why.to_owned()), ..Self::default() }
    }
}

impl Base {
    /// Unknown, because of this error.
    pub(super) fn unknown(error: &Error) -> Self {
        let note = format!("nothing was measured, because the best times are not known: {error}");
        Self { best: BTreeMap::new(), notes: vec![note] }
    }

    /// Records the times of a transport.
    fn take(&mut self, times: &BTreeMap<u32, u64>, name: &str) {
        for (&size, &time) in times {
            let least = self.best.entry(size).or_insert((u64::MAX, String::new()));
            if time < least.0 {
                *least = (time, name.to_owned());
            }
        }
    }
}

/// Initial rate of the search, in Mbit/s per core. Chosen by us: of the order of the result.
const STARTS_AT: u64 = 20;
