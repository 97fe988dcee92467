//! In which order does the cluster benchmark find things out?

use std::collections::BTreeMap;
use std::time::Duration;

use apus_workload::Workload;

use super::options::{Link, Mix, Options};
use super::run::{self, Offered, RunResult};
use super::{IDLE, offered};
use crate::error::Error;
use crate::machine::Neighbours;
use crate::progress::Progress;
use crate::slowdown::{Scale, tenths};

/// How long each transport shows the best time of each size.
const UNLOADED: Duration = Duration::from_secs(2);

/// How long a rate is tried.
const TRIAL: f64 = 0.7;

/// Rates that are tried at most.
const TRIALS: usize = 5;

/// Share of the time that the cores are busy, that [`Link::Auto`] aims at: somewhat less than allowed, because
/// runs differ.
const AIM: f64 = (1.0 - IDLE) * 0.88;

/// What was measured.
#[derive(Debug)]
pub(super) struct Measured {
    /// Rate of the links, and the least idle share of the cores that was seen when it was chosen.
    pub(super) link: Chosen,
    /// Requests per second and node.
    pub(super) rate: f64,
    pub(super) scale: Scale,
    /// Which transport was the fastest, for each size.
    pub(super) fastest: BTreeMap<u32, String>,
    /// For each mix what came of its runs, in the order of the options.
    pub(super) runs: Vec<Vec<RunResult>>,
    /// What readers have to know.
    pub(super) notes: Vec<String>,
}

/// A rate of the links.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) mbps: u64,
    /// How it was chosen, in words.
    pub(super) how: String,
}

/// Everything in order.
pub(super) struct Phases<'a> {
    options: &'a Options,
    workload: Workload,
    shares: Vec<(u32, f64)>,
    progress: Progress,
}

impl<'a> Phases<'a> {
    pub(super) fn new(options: &'a Options) -> Result<Self, Error> {
        let workload = options.workload()?;
        let shares = workload.sizes().iter().collect();
        let steps = options.alone().len() + options.runs * options.transports.len();
        Ok(Self { options, workload, shares, progress: Progress::of(steps) })
    }

    pub(super) fn run(&self) -> Result<Measured, Error> {
        let neighbours = Neighbours::watch();
        let link = self.link()?;
        let (scale, fastest) = self.scale(link.mbps)?;
        let rate = self.offered(link.mbps);
        let (runs, mut notes) = self.runs(link.mbps, &scale)?;
        notes.extend(neighbours.note());
        Ok(Measured { link, rate, scale, fastest, runs, notes })
    }

    /// The rate of the links.
    fn link(&self) -> Result<Chosen, Error> {
        let start = match self.options.link {
            Link::Rate(rate) => {
                return Ok(Chosen { mbps: rate.mbps(), how: "given".to_owned() });
            }
            Link::Auto => STARTS_AT * crate::machine::Machine::here().cpus as u64,
        };
        let scale = self.no_scale();
        let idle = |mix: &Mix, mbps: u64| {
            self.progress.note(&format!("which link: {mbps} Mbit/s with {mix}"));
            let result = self.load(mbps, mix, 0, &scale, TRIAL)?;
            result.idle.ok_or_else(|| Error::Option {
                option: "link",
                problem: "nobody can tell how busy the cores are here; try 200mbit".to_owned(),
            })
        };
        // The hungriest one decides.
        let mut hungriest = (f64::INFINITY, 0);
        for (index, mix) in self.options.transports.iter().enumerate() {
            let idle = idle(mix, start)?;
            if idle < hungriest.0 {
                hungriest = (idle, index);
            }
        }
        let mix = &self.options.transports[hungriest.1];
        let (mut mbps, mut seen) = (start, hungriest.0);
        for trial in 1..=TRIALS {
            let enough = seen >= IDLE;
            if enough && (1.0 - seen > AIM * 0.85 || trial == TRIALS) {
                break;
            }
            let factor = (AIM / (1.0 - seen).max(0.01)).clamp(0.1, 5.0);
            mbps = round((mbps as f64 * factor) as u64);
            seen = idle(mix, mbps)?;
        }
        let how = format!(
            "auto: {:.0} % of the cores' time is left with {mix}, which needs most of it",
            seen * 100.0
        );
        Ok(Chosen { mbps, how })
    }

    /// The base of all slowdowns: the least time of each size, whoever reached it.
    fn scale(&self, mbps: u64) -> Result<(Scale, BTreeMap<u32, String>), Error> {
        let mut best: BTreeMap<u32, (u64, String)> = BTreeMap::new();
        for name in self.options.alone() {
            self.progress.step(&format!("best time of each size: {name}"));
            let times = run::unloaded(self.options, mbps, &name, &self.shares, UNLOADED)?;
            for (size, time) in times {
                let least = best.entry(size).or_insert((u64::MAX, String::new()));
                if time < least.0 {
                    *least = (time, name.clone());
                }
            }
        }
        let fastest = best.iter().map(|(&size, (_, name))| (size, name.clone())).collect();
        let best = best.into_iter().map(|(size, (time, _))| (size, time)).collect();
        Ok((Scale { best, ..self.no_scale() }, fastest))
    }

    /// Groups of sizes, without a base.
    fn no_scale(&self) -> Scale {
        let sizes = self.workload.sizes();
        let best = self.shares.iter().map(|&(size, _)| (size, 1)).collect();
        Scale { best, groups: tenths(sizes), short: sizes.quantile(0.5) }
    }

    /// All runs of each mix. Another one begins each round.
    fn runs(&self, mbps: u64, scale: &Scale) -> Result<(Vec<Vec<RunResult>>, Vec<String>), Error> {
        let mixes = &self.options.transports;
        let mut results = vec![Vec::new(); mixes.len()];
        let mut notes = Vec::new();
        for run in 0..self.options.runs {
            for turn in 0..mixes.len() {
                let index = (run + turn) % mixes.len();
                let mix = &mixes[index];
                self.progress.step(&format!("run {} of {}: {mix}", run + 1, self.options.runs));
                match self.load(mbps, mix, run as u64, scale, self.options.seconds) {
                    Ok(result) => results[index].push(result),
                    // What the other runs found is worth keeping.
                    Err(error) => notes.push(format!("run {} of {mix} failed: {error}", run + 1)),
                }
            }
        }
        if let Some(index) = results.iter().position(Vec::is_empty) {
            let mix = &mixes[index];
            return Err(Error::Peer(format!("no run of {mix} succeeded: {}", notes.join("; "))));
        }
        Ok((results, notes))
    }

    fn load(
        &self,
        mbps: u64,
        mix: &Mix,
        run: u64,
        scale: &Scale,
        seconds: f64,
    ) -> Result<RunResult, Error> {
        let offered = Offered { shares: self.shares.clone(), rate: self.offered(mbps) };
        run::load(self.options, mbps, mix, run, &offered, scale, seconds)
    }

    /// Requests per second and node.
    fn offered(&self, mbps: u64) -> f64 {
        let Options { load, fabric, .. } = self.options;
        offered::rate(*load, mbps, fabric.mtu, self.workload.sizes())
    }
}

/// Mbit/s for each core that the search begins with. Ours: of the order of what a core carries.
const STARTS_AT: u64 = 100;

/// Two digits, rounded down; at least 1.
fn round(mbps: u64) -> u64 {
    let unit = 10_u64.pow(mbps.max(1).ilog10().saturating_sub(1));
    (mbps / unit * unit).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_round_numbers() {
        let rates = [0, 1, 9, 10, 99, 123, 999, 1234, 98_765].map(round);
        assert_eq!(rates, [1, 1, 9, 10, 99, 120, 990, 1200, 98_000]);
    }
}
