//! The phases of the overload experiment: capacity, load, idle.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::json;

use super::options::OverloadOptions;
use super::report::{self, AtLoad, Paused, Run};
use super::sides::{ClientSide, Details, Phase, Served, Side};
use super::sides::{JOB, contenders};
use crate::contenders::transport::{Transport, Work};
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_testbed::error::Error;
use apus_testbed::machine::Cores;
use apus_testbed::process::{Spawner, Task};
use apus_testbed::repeat::Repeater;

/// Uncounted warm-up. Chosen by us: a server at several times its capacity detects the overload
/// after some tens of milliseconds, and then works off the requests accepted until then.
const WARM: Duration = Duration::from_millis(250);

/// Duration of the measurement of capacity in each run.
const CAPACITY: Duration = Duration::from_millis(250);

/// Length of the pause before a server is woken, and number of pauses per run.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSES: usize = 3;

/// The experiment on a host.
struct Bench<'a> {
    host: &'a Spawner,
    cores: Cores,
    options: &'a OverloadOptions,
    work: Work,
    contenders: [Box<dyn Transport>; 2],
    repeater: Repeater,
}

/// Runs all phases.
pub(super) fn run(options: &OverloadOptions, host: &Spawner) -> Result<Findings, Error> {
    options.check()?;
    let cores = Cores::choose();
    let options = &OverloadOptions { repetition: options.repetition.on(cores), ..options.clone() };
    let contenders = contenders(options.threads);
    let phases = options.repetition.runs * (1 + contenders.len() * (1 + options.loads.len()));
    let bench = Bench {
        host,
        cores,
        options,
        work: Work::lasting(options.cost()),
        contenders,
        repeater: Repeater::of(phases, Progress::of(phases)),
    };
    let runs = (0..options.repetition.runs).filter_map(|run| bench.run(run).transpose());
    let runs = runs.collect::<Result<Vec<_>, Error>>()?;
    if runs.is_empty() {
        return Err(bench.repeater.failure());
    }
    let mut outcome = report::outcome(options, &bench.contenders, &runs);
    outcome.notes.extend(cores.note());
    bench.repeater.account(&mut outcome)?;
    Ok(report::findings(outcome))
}

impl Bench<'_> {
    /// Measures everything once; `None` if the capacity cannot be measured, since the loads are
    /// multiples of it. The first contender changes from run to run.
    fn run(&self, run: usize) -> Result<Option<Run>, Error> {
        let count = self.contenders.len();
        let turns = || (0..count).map(|turn| (run + turn) % count);
        let row = |load: f64, contender| report::at_load(load, contender, &self.contenders);
        let first = row(self.options.loads[0], 0);
        let capacity = self.attempt(run, &first, "capacity", || {
            let phase = Phase::Capacity { warm: WARM, measure: CAPACITY };
            let (capacity, _): (f64, Served) = self.measure(0, phase, WARM + CAPACITY)?;
            let said = "completed nothing while its capacity was measured".to_owned();
            let silent = || Error::Agent { agent: "apus client".to_owned(), said };
            if capacity > 0.0 { Ok(capacity) } else { Err(silent()) }
        })?;
        let Some(capacity) = capacity else { return Ok(None) };
        let mut found = Run::new(run, capacity, count);
        for &load in &self.options.loads {
            for contender in turns() {
                let measure = Duration::from_secs_f64(self.options.repetition.seconds);
                let patience = Duration::from_secs_f64(self.options.patience_ms / 1e3);
                let (warm, rate) = (WARM.max(measure / 10), load * capacity);
                let seed = self.options.repetition.seed + run as u64;
                let phase = Phase::Load { rate, warm, measure, patience, seed };
                let at = self.attempt(run, &row(load, contender), "load", || {
                    let duration = warm + measure + patience;
                    let (result, served) = self.measure(contender, phase.clone(), duration)?;
                    Ok(AtLoad { rate, result, served })
                })?;
                found.loads[contender].push(at);
            }
        }
        for contender in turns() {
            let row = report::at_rest(contender, &self.contenders);
            found.idle[contender] = self.attempt(run, &row, "pauses", || {
                let poll = self.options.repetition.poll;
                let phase = Phase::Idle { pause: PAUSE, times: PAUSES, poll };
                let (first, served) = self.measure(contender, phase, PAUSE * PAUSES as u32)?;
                Ok(Paused { first, served })
            })?;
        }
        Ok(Some(found))
    }

    /// Attempts a phase of a row.
    fn attempt<T>(
        &self,
        run: usize,
        row: &str,
        phase: &str,
        measure: impl FnMut() -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let (run, runs) = (run + 1, self.options.repetition.runs);
        self.repeater.progress().step(&format!("run {run} of {runs}, {phase}: {row}"));
        self.repeater.attempt(row, &format!("{phase}, run {run}"), measure)
    }

    /// Measures one phase of one contender, with fresh processes.
    fn measure<T: DeserializeOwned>(
        &self,
        contender: usize,
        phase: Phase,
        duration: Duration,
    ) -> Result<(T, Served), Error> {
        let OverloadOptions { threads, size, ref repetition, .. } = *self.options;
        let task = |name: &str, core, side| Task {
            name: format!("{} {name}", self.contenders[contender].name()),
            core,
            bind: None,
            job: JOB.to_owned(),
            details: json!(Details { contender, threads, side }),
        };
        let side = Side::Server { poll: repetition.poll, work: self.work };
        let mut server = self.host.start(task("server", self.cores.server, side))?;
        let client = ClientSide {
            server: server.address()?,
            size: size as u32,
            alone_on_core: self.cores.note().is_none(),
            phase,
        };
        let client = self.host.start(task("client", self.cores.client, Side::Client(client)))?;
        let found = client.result(duration)?;
        Ok((found, server.stop()?))
    }
}
