//! The phases of the cluster benchmark: link, base, runs.

use std::collections::BTreeMap;
use std::time::Duration;

use apus_workload::Workload;
use serde::{Deserialize, Serialize};

use super::options::{Link, Mix, Options};
use super::run::{self, Loaded, Offered, RunResult};
use super::site::Venue;
use super::{auto, offered_load};
use crate::options::Repetition;
use crate::slowdown::{Scale, tenths};
use apus_report::progress::Progress;
use apus_testbed::error::Error;

/// Duration of the unloaded phase of each transport, unless runs are much shorter than usual.
const UNLOADED: Duration = Duration::from_secs(2);

/// Lengths of a run that this takes at most.
const UNLOADED_RUNS: f64 = 2.0;

/// Seconds for which a rate is tried.
const TRIAL: f64 = 1.5;

/// Runs that may fail one after the other before the rest is given up. Chosen by us: what fails so often is no
/// accident, and each failure may take as long as a timeout.
const PATIENCE: usize = 3;

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
    /// The least time of each size in nanoseconds, and which transport reached it.
    pub(super) best: BTreeMap<u32, (u64, String)>,
    /// Transports that were not able to show theirs, and why.
    pub(super) notes: Vec<String>,
}

/// Runs of several mixes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Runs {
    /// Those that succeeded of each mix, in the order of the mixes.
    pub(super) of: Vec<Vec<RunResult>>,
    /// Failed runs, and why.
    pub(super) notes: Vec<String>,
}

/// The phases for some options.
pub(super) struct Phases<'a> {
    venue: &'a Venue,
    options: &'a Options,
    progress: &'a Progress,
    /// Text before each step of the progress.
    about: String,
    workload: Workload,
    shares: Vec<(u32, f64)>,
}

impl<'a> Phases<'a> {
    pub(super) fn new(
        venue: &'a Venue,
        options: &'a Options,
        progress: &'a Progress,
    ) -> Result<Self, Error> {
        let workload = options.workload()?;
        let shares = workload.sizes().iter().collect();
        Ok(Self { venue, options, progress, about: String::new(), workload, shares })
    }

    /// Sets the text before each step of the progress, which says which options are measured.
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
            self.progress.note(&format!("{}which link: {mbps} Mbit/s with {mix}", self.about));
            let trial = self.load(mbps, mix, 0, &scale, TRIAL)?;
            let idle = trial.idle.ok_or_else(|| Error::Option {
                option: "link",
                problem: "the system does not say how busy the cores are; try 200mbit".to_owned(),
            })?;
            // A second or two do not contain as many long messages as there are on average.
            let carried: f64 = trial.parts.iter().map(|part| part.throughput).sum();
            let fewer = self.throughput(mbps) / carried.max(1.0);
            Ok(((1.0 - idle) * fewer.clamp(0.8, 1.6)).min(1.0))
        })?;
        let (idle, mix) = (found.idle * 100.0, &mixes[found.hungriest]);
        let how = format!(
            "auto: {idle:.0} % of the cores' time is left with {mix}, which needs most of it"
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
        let mut failures = Vec::new();
        for name in &names {
            self.progress.step(&format!("{}best time of each size: {name}", self.about));
            let times = run::unloaded(self.venue, self.options, mbps, name, &self.shares, time);
            match times {
                Ok(times) => base.take(&times, name),
                // This would be the end of all others, too.
                Err(error @ (Error::Fabric(_) | Error::Option { .. })) => return Err(error),
                Err(error) => {
                    base.notes.push(format!("the best times of {name} are not known: {error}"));
                    failures.push(error);
                }
            }
        }
        match failures.pop() {
            Some(error) if failures.len() + 1 == names.len() => Err(error),
            _ => Ok(base),
        }
    }

    /// Returns what slowdown is held against.
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

    /// Returns all runs of each mix. Another one begins each round.
    pub(super) fn runs(&self, mbps: u64, scale: &Scale, mixes: &[Mix]) -> Runs {
        let mut runs = Runs::none(mixes);
        let Repetition { runs: rounds, seconds, .. } = self.options.repetition;
        let mut in_a_row = 0;
        let turns = (0..rounds)
            .flat_map(|run| (0..mixes.len()).map(move |turn| (run, (run + turn) % mixes.len())));
        for (run, index) in turns {
            let mix = &mixes[index];
            let what = format!("{}run {} of {rounds}: {mix}", self.about, run + 1);
            self.progress.step(&what);
            match self.load(mbps, mix, run, scale, seconds) {
                Ok(result) => {
                    in_a_row = 0;
                    runs.of[index].push(result);
                }
                // What the other runs found is worth keeping.
                Err(error) => {
                    in_a_row += 1;
                    runs.notes.push(format!("run {} of {mix} failed: {error}", run + 1));
                }
            }
            if in_a_row == PATIENCE {
                let given_up =
                    format!("{PATIENCE} runs failed one after the other: the rest was given up");
                runs.notes.push(given_up);
                break;
            }
        }
        runs
    }

    fn load(
        &self,
        mbps: u64,
        mix: &Mix,
        number: usize,
        scale: &Scale,
        seconds: f64,
    ) -> Result<RunResult, Error> {
        let offered = &Offered { shares: self.shares.clone(), rate: self.offered(mbps) };
        let options = self.options;
        Loaded { options, mbps, mix, number, offered, scale, seconds }.run(self.venue)
    }

    /// Payload bits per second that all nodes receive together if everything arrives.
    fn throughput(&self, mbps: u64) -> f64 {
        let messages = 2.0 * self.offered(mbps) * self.options.fabric.nodes as f64;
        messages * self.workload.sizes().mean() * 8.0
    }

    /// Returns the requests per second and node.
    pub(super) fn offered(&self, mbps: u64) -> f64 {
        let Options { load, fabric, .. } = self.options;
        offered_load::rate(*load, mbps, fabric.mtu, self.workload.sizes())
    }
}

impl Runs {
    /// Not a single one.
    pub(super) fn none(mixes: &[Mix]) -> Self {
        Self { of: vec![Vec::new(); mixes.len()], notes: Vec::new() }
    }
}

impl Base {
    /// Nothing is known, because of this.
    pub(super) fn unknown(error: &Error) -> Self {
        let note = format!("nothing was measured, because the best times are not known: {error}");
        Self { best: BTreeMap::new(), notes: vec![note] }
    }

    /// Takes note of how fast a transport is.
    fn take(&mut self, times: &BTreeMap<u32, u64>, name: &str) {
        for (&size, &time) in times {
            let least = self.best.entry(size).or_insert((u64::MAX, String::new()));
            if time < least.0 {
                *least = (time, name.to_owned());
            }
        }
    }
}

/// Mbit/s for each core that the search begins with. Chosen by us: of the order of the result.
const STARTS_AT: u64 = 20;
