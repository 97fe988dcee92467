//! The phases of the demo: unloaded, capacity, load.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::json;

use super::JOB;
use super::findings::{Measured, findings};
use super::options::Options;
use super::sides::{ClientSide, Details, GRACE, LIMIT, LoadResult, Messages, Phase, Side};
use crate::options::Repetition;
use crate::slowdown::{Scale, tenths};
use apus_contenders::transport::Transport;
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_report::stats::Spread;
use apus_testbed::error::Error;
use apus_testbed::machine::{BackgroundLoad, Cores};
use apus_testbed::process::{Spawner, Task};

/// Duration of the unloaded phase of each contender.
const UNLOADED: Duration = Duration::from_millis(400);

/// Warm-up and measured time of one measurement of capacity.
const CAPACITY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(500));

/// Measurements of capacity. Odd, because the median counts.
const CAPACITY_RUNS: usize = 3;

/// The demo on a host.
struct Bench<'a> {
    host: &'a Spawner,
    cores: Cores,
    options: &'a Options,
    contenders: Vec<Box<dyn Transport>>,
    progress: Progress,
}

/// Runs all phases.
pub(super) fn run(options: &Options, host: &Spawner) -> Result<Findings, Error> {
    options.check()?;
    let neighbours = BackgroundLoad::watch();
    let cores = Cores::choose();
    let options = &Options { repetition: options.repetition.on(cores), ..options.clone() };
    let contenders = super::contenders();
    let bench = Bench {
        host,
        cores,
        options,
        progress: Progress::of((1 + CAPACITY_RUNS + options.repetition.runs) * contenders.len()),
        contenders,
    };
    let scale = bench.scale()?;
    let capacity = bench.capacity()?;
    let slowest = capacity.iter().copied().fold(f64::INFINITY, f64::min);
    let rate = options.rate.unwrap_or(options.load * slowest);
    let loads = bench.loads(rate, &scale)?;
    let measured = bench.contenders.iter().zip(capacity).zip(loads);
    let measured = measured.map(|((contender, capacity), runs)| Measured {
        name: contender.name(),
        settings: contender.settings(),
        capacity,
        runs,
    });
    let measured: Vec<Measured> = measured.collect();
    let mut findings = findings(options, rate, &scale, &measured)?;
    findings.outcome.notes.extend(cores.note().into_iter().chain(neighbours.note()));
    Ok(findings)
}

impl Bench<'_> {
    /// Returns the base of all slowdowns: the least time of each size over all contenders.
    fn scale(&self) -> Result<Scale, Error> {
        let mut best: BTreeMap<u32, u64> = BTreeMap::new();
        for contender in &self.contenders {
            let name = contender.name();
            self.progress.step(&format!("best time of each size: {name}"));
            let phase = Phase::Unloaded { duration: UNLOADED };
            let times: Vec<(u32, u64)> = self.measure(&name, 0, phase, UNLOADED)?;
            for (size, time) in times {
                best.entry(size).and_modify(|least| *least = time.min(*least)).or_insert(time);
            }
        }
        let workload = self.options.workload()?;
        Ok(Scale {
            best: best.into_iter().collect(),
            groups: tenths(workload.sizes()),
            short: workload.sizes().quantile(0.5),
        })
    }

    /// Returns the requests per second that each contender completes, the median of a few measurements: neither what it can
    /// do only now and then, nor what it did while others had the machine, is what a load should be a share of.
    fn capacity(&self) -> Result<Vec<f64>, Error> {
        let (warm, measure) = CAPACITY;
        let phase = Phase::Capacity { outstanding: LIMIT, warm, measure };
        let mut found = vec![Vec::new(); self.contenders.len()];
        for _ in 0..CAPACITY_RUNS {
            for (contender, found) in self.contenders.iter().zip(&mut found) {
                let name = contender.name();
                self.progress.step(&format!("capacity: {name}"));
                found.push(self.measure(&name, 0, phase.clone(), warm + measure)?);
            }
        }
        Ok(found.iter().map(|found| Spread::over(found).median).collect())
    }

    /// Returns all runs of each contender under load. Another contender begins each run.
    fn loads(&self, rate: f64, scale: &Scale) -> Result<Vec<Vec<LoadResult>>, Error> {
        let measure = Duration::from_secs_f64(self.options.repetition.seconds);
        let warm = measure / 10;
        let phase = Phase::Load { rate, warm, measure, limit: LIMIT, scale: scale.clone() };
        let count = self.contenders.len();
        let mut results: Vec<Vec<LoadResult>> = vec![Vec::new(); count];
        for run in 0..self.options.repetition.runs {
            for turn in 0..count {
                let index = (run + turn) % count;
                let name = self.contenders[index].name();
                self.progress.step(&format!(
                    "run {} of {}: {name}",
                    run + 1,
                    self.options.repetition.runs
                ));
                let duration = warm + measure + GRACE;
                results[index].push(self.measure(&name, run as u64, phase.clone(), duration)?);
            }
        }
        Ok(results)
    }

    /// Returns one phase of one contender, with fresh processes. Each run draws other messages.
    fn measure<T: DeserializeOwned>(
        &self,
        contender: &str,
        run: u64,
        phase: Phase,
        duration: Duration,
    ) -> Result<T, Error> {
        let task = |name: &str, core, side| Task {
            name: format!("{contender} {name}"),
            core,
            bind: None,
            job: JOB.to_owned(),
            details: json!(Details { contender: contender.to_owned(), side }),
        };
        let Options { workload, truncate, repetition, .. } = self.options;
        let Repetition { seed, poll, .. } = repetition;
        let side = Side::Server { poll: *poll };
        let mut server = self.host.start(task("server", self.cores.server, side))?;
        let side = Side::Client(ClientSide {
            server: server.address()?,
            messages: Messages {
                workload: workload.clone(),
                truncate: *truncate,
                seed: seed.wrapping_add(run),
            },
            alone_on_core: self.cores.client.is_some(),
            phase,
        });
        let client = self.host.start(task("client", self.cores.client, side))?;
        let result = client.result(duration)?;
        server.stop::<()>()?;
        Ok(result)
    }
}
