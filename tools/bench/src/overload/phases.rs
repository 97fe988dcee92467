//! The phases of the overload experiment: capacity, load, idle.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::json;

use super::options::Options;
use super::report::{self, AtLoad, Paused, Run};
use super::sides::{ClientSide, Details, Phase, Served, Side};
use super::{JOB, contenders};
use apus_contenders::transport::{Transport, Work};
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_testbed::error::Error;
use apus_testbed::machine::{BackgroundLoad, Cores};
use apus_testbed::process::{Spawner, Task};

/// Warm-up before anything counts. Chosen by us: a server that is offered several times its capacity has found out
/// after some tens of milliseconds, and works off what it had accepted until then.
const WARM: Duration = Duration::from_millis(250);

/// Duration of the measurement of capacity in each run.
const CAPACITY: Duration = Duration::from_millis(250);

/// The pause after which a server is woken, and how often in each run.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSES: usize = 3;

/// The experiment on a host.
struct Bench<'a> {
    host: &'a Spawner,
    cores: Cores,
    options: &'a Options,
    work: Work,
    contenders: [Box<dyn Transport>; 2],
    progress: Progress,
}

/// Runs all phases.
pub(super) fn run(options: &Options, host: &Spawner) -> Result<Findings, Error> {
    options.check()?;
    let neighbours = BackgroundLoad::watch();
    let cores = Cores::choose();
    let options = &Options { repetition: options.repetition.on(cores), ..options.clone() };
    let contenders = contenders(options.threads);
    let steps = options.repetition.runs * (1 + contenders.len() * (1 + options.loads.len()));
    let bench = Bench {
        host,
        cores,
        options,
        work: Work::lasting(options.cost()),
        contenders,
        progress: Progress::of(steps),
    };
    let runs =
        (0..options.repetition.runs).map(|run| bench.run(run)).collect::<Result<Vec<_>, _>>()?;
    let mut outcome = report::outcome(options, &bench.contenders, &runs);
    drop(bench);
    outcome.notes.extend(cores.note().into_iter().chain(neighbours.note()));
    Ok(report::findings(outcome))
}

impl Bench<'_> {
    /// Returns everything once. Another contender begins each run.
    fn run(&self, run: usize) -> Result<Run, Error> {
        let count = self.contenders.len();
        let turns = || (0..count).map(|turn| (run + turn) % count);
        self.step(run, "capacity", 0);
        let phase = Phase::Capacity { warm: WARM, measure: CAPACITY };
        let (capacity, _): (f64, Served) = self.measure(0, phase, WARM + CAPACITY)?;
        let mut found = Run::new(capacity, count);
        for &load in &self.options.loads {
            for contender in turns() {
                self.step(run, &format!("load {load}"), contender);
                let measure = Duration::from_secs_f64(self.options.repetition.seconds);
                let patience = Duration::from_secs_f64(self.options.patience_ms / 1e3);
                let (warm, rate) = (WARM.max(measure / 10), load * capacity);
                let seed = self.options.repetition.seed + run as u64;
                let phase = Phase::Load { rate, warm, measure, patience, seed };
                let (result, served) = self.measure(contender, phase, warm + measure + patience)?;
                found.loads[contender].push(AtLoad { rate, result, served });
            }
        }
        for contender in turns() {
            self.step(run, "idle", contender);
            let phase =
                Phase::Idle { pause: PAUSE, times: PAUSES, poll: self.options.repetition.poll };
            let (first, served) = self.measure(contender, phase, PAUSE * PAUSES as u32)?;
            found.idle[contender] = Some(Paused { first, served });
        }
        Ok(found)
    }

    fn step(&self, run: usize, what: &str, contender: usize) {
        let (runs, name) = (self.options.repetition.runs, self.contenders[contender].name());
        self.progress.step(&format!("run {} of {runs}, {what}: {name}", run + 1));
    }

    /// Returns one phase of one contender, with fresh processes.
    fn measure<T: DeserializeOwned>(
        &self,
        contender: usize,
        phase: Phase,
        duration: Duration,
    ) -> Result<(T, Served), Error> {
        let Options { threads, size, ref repetition, .. } = *self.options;
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
