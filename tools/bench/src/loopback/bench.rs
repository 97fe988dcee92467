//! The measurements of all contenders, each with fresh processes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use apus::PollMode;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::JOB;
use super::disturbance::Disturbance;
use super::sides::{
    ClientReport, ClientSide, Counters, Details, GRACE, LoadPhase, LoadResult, Messages, Phase,
    Side,
};
use crate::options;
use crate::slowdown::{Scale, tenths};
use apus_contenders::transport::Transport;
use apus_report::progress::Progress;
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::machine::{BackgroundLoad, Cores};
use apus_testbed::process::{Agent, Spawner, Task};

/// Duration of the unloaded phase of each contender.
const UNLOADED: Duration = Duration::from_millis(400);

/// Warm-up of closed loops.
const WARM: Duration = Duration::from_millis(100);

/// Time from the order to begin a load to its begin: enough for the order to arrive on a busy machine.
const LEAD: Duration = Duration::from_millis(20);

/// Share of the machine's time that other programs may use during one measurement before it is repeated. Chosen by us:
/// as much as half of a core of four, which no tail hides.
const DISTURBED: f64 = 0.12;

/// The contenders on a host.
pub(crate) struct Bench<'a> {
    pub(crate) host: &'a Spawner,
    pub(crate) cores: Cores,
    /// Poll mode of the servers.
    pub(crate) poll: PollMode,
    pub(crate) messages: Messages,
    pub(crate) contenders: Vec<Box<dyn Transport>>,
    pub(crate) progress: Progress,
    pub(crate) repeats: Repeats,
}

/// Measurements that may be repeated because they failed or because other programs ran meanwhile.
#[derive(Debug)]
pub(crate) struct Repeats {
    left: Cell<usize>,
    notes: RefCell<Vec<String>>,
}

impl Repeats {
    /// Allows `count` repetitions in the whole experiment: if other programs run all the time, it must end all the same.
    pub(crate) const fn allow(count: usize) -> Self {
        Self { left: Cell::new(count), notes: RefCell::new(Vec::new()) }
    }

    /// Takes one, if one is left.
    fn take(&self, why: String) -> bool {
        let Some(left) = self.left.get().checked_sub(1) else { return false };
        self.left.set(left);
        self.notes.borrow_mut().push(why);
        true
    }

    /// Returns why measurements were repeated.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.borrow().clone()
    }
}

/// What one phase of one contender found.
#[derive(Clone, Debug)]
pub(crate) struct Measured<T> {
    pub(crate) result: T,
    /// Counters of both sides, warm-up included.
    pub(crate) client: Counters,
    pub(crate) server: Counters,
    /// The disturbance, in nanoseconds since the load began.
    pub(crate) disturbed: Option<Range<u64>>,
}

impl Bench<'_> {
    /// Returns the base of all slowdowns: the least time of each size over all contenders.
    pub(crate) fn scale(&self) -> Result<Scale, Error> {
        let mut best: BTreeMap<u32, u64> = BTreeMap::new();
        for contender in &self.contenders {
            let name = contender.name();
            self.progress.step(&format!("best time of each size: {name}"));
            let phase = Phase::Unloaded { duration: UNLOADED };
            let times: Vec<(u32, u64)> = self.closed(&name, 0, &phase, UNLOADED)?.result;
            for (size, time) in times {
                best.entry(size).and_modify(|least| *least = time.min(*least)).or_insert(time);
            }
        }
        let workload = options::workload(&self.messages.workload, self.messages.truncate)?;
        Ok(Scale {
            best: best.into_iter().collect(),
            groups: tenths(workload.sizes()),
            short: workload.sizes().quantile(0.5),
        })
    }

    /// Returns the requests per second that each contender completes in each run with `outstanding` requests.
    pub(crate) fn capacity(
        &self,
        runs: usize,
        outstanding: u32,
        measure: Duration,
    ) -> Result<Vec<Vec<Measured<f64>>>, Error> {
        let phase = Phase::Capacity { outstanding, warm: WARM, measure };
        self.rounds(runs, "capacity", |name, _| self.closed(name, 0, &phase, WARM + measure))
    }

    /// Returns the requests that each contender completes in each second of each run with `outstanding` requests.
    pub(crate) fn hold(
        &self,
        runs: usize,
        outstanding: u32,
        seconds: u32,
    ) -> Result<Vec<Vec<Measured<Vec<u64>>>>, Error> {
        let phase = Phase::Hold { outstanding, warm: WARM, seconds };
        let duration = WARM + Duration::from_secs(seconds.into());
        self.rounds(runs, &format!("{outstanding} outstanding"), |name, run| {
            self.closed(name, run as u64, &phase, duration)
        })
    }

    /// Returns all runs of each contender under load, with the disturbance that begins at an instant of the load. Each
    /// run draws other messages.
    pub(crate) fn loads(
        &self,
        runs: usize,
        load: &LoadPhase,
        disturbance: Option<(Duration, Disturbance)>,
    ) -> Result<Vec<Vec<Measured<LoadResult>>>, Error> {
        self.rounds(runs, "load", |name, run| {
            self.repeatable(name, || self.load(name, run as u64, load, disturbance))
        })
    }

    /// Returns what `measure` finds of each contender in each run. Another contender begins each run.
    fn rounds<T>(
        &self,
        runs: usize,
        what: &str,
        measure: impl Fn(&str, usize) -> Result<T, Error>,
    ) -> Result<Vec<Vec<T>>, Error> {
        let count = self.contenders.len();
        let mut found: Vec<Vec<T>> = (0..count).map(|_| Vec::new()).collect();
        for run in 0..runs {
            for turn in 0..count {
                let index = (run + turn) % count;
                let name = self.contenders[index].name();
                self.progress.step(&format!("{what}, run {} of {runs}: {name}", run + 1));
                found[index].push(measure(&name, run)?);
            }
        }
        Ok(found)
    }

    /// Returns a measurement, repeated if it was disturbed as long as repetitions are left.
    fn repeatable<T>(
        &self,
        contender: &str,
        measure: impl Fn() -> Result<T, Error>,
    ) -> Result<T, Error> {
        loop {
            let others = BackgroundLoad::watch();
            let result = measure();
            let share = others.share().unwrap_or(0.0);
            let why = match &result {
                Ok(_) if share <= DISTURBED => return result,
                Ok(_) => format!("other programs used {:.0} % of the processors", 100.0 * share),
                Err(Error::Option { .. }) => return result,
                Err(error) => error.to_string(),
            };
            if !self.repeats.take(format!("a measurement of {contender} was repeated: {why}")) {
                return result;
            }
        }
    }

    /// Returns a phase that begins by itself.
    fn closed<T: DeserializeOwned>(
        &self,
        contender: &str,
        run: u64,
        phase: &Phase,
        duration: Duration,
    ) -> Result<Measured<T>, Error> {
        self.repeatable(contender, || {
            let (server, client) = self.start(contender, run, phase.clone(), false)?;
            finish(server, client, duration, None)
        })
    }

    /// Returns a load with its disturbance.
    fn load(
        &self,
        contender: &str,
        run: u64,
        load: &LoadPhase,
        disturbance: Option<(Duration, Disturbance)>,
    ) -> Result<Measured<LoadResult>, Error> {
        let mut load = load.clone();
        if let Some((begin, Disturbance::Burst(burst))) = disturbance {
            load.burst = Some((begin, burst));
        }
        let duration = load.warm + load.measure + GRACE;
        let pauses = matches!(disturbance, Some((_, Disturbance::Stall(_))));
        let (mut server, mut client) = self.start(contender, run, Phase::Load(load), pauses)?;
        client.address()?;
        let began = clock::now() + clock::as_nanoseconds(LEAD);
        client.begin(&(), began)?;
        let disturbed = match disturbance {
            None => None,
            Some((begin, Disturbance::Stall(stall))) => {
                let begin = began + clock::as_nanoseconds(begin);
                Some(interrupt(&mut server, &mut client, begin, stall)?)
                    .map(|at| at.start - began..at.end - began)
            }
            Some((begin, Disturbance::Burst(burst))) => {
                let end = begin + burst.length;
                Some(clock::as_nanoseconds(begin)..clock::as_nanoseconds(end))
            }
        };
        finish(server, client, duration, disturbed)
    }

    /// Starts a server that may be paused, and a client of it.
    fn start(
        &self,
        contender: &str,
        run: u64,
        phase: Phase,
        pauses: bool,
    ) -> Result<(Agent, Agent), Error> {
        let task = |name: &str, core, side| Task {
            name: format!("{contender} {name}"),
            core,
            bind: None,
            job: JOB.to_owned(),
            details: json!(Details { contender: contender.to_owned(), side }),
        };
        let side = Side::Server { poll: self.poll, pauses };
        let mut server = self.host.start(task("server", self.cores.server, side))?;
        let side = Side::Client(Box::new(ClientSide {
            server: server.address()?,
            messages: Messages {
                seed: self.messages.seed.wrapping_add(run),
                ..self.messages.clone()
            },
            alone_on_core: self.cores.client.is_some(),
            phase,
        }));
        let client = self.host.start(task("client", self.cores.client, side))?;
        Ok((server, client))
    }
}

/// Stops the server's process at `begin` for a time, and returns the instants at which that happened.
fn interrupt(
    server: &mut Agent,
    client: &mut Agent,
    begin: u64,
    stall: Duration,
) -> Result<Range<u64>, Error> {
    client.sleep(Duration::from_nanos(begin.saturating_sub(clock::now())))?;
    let begin = clock::now();
    server.pause()?;
    let slept = client.sleep(stall);
    server.resume()?;
    slept.map(|()| begin..clock::now())
}

/// Waits for the client's result, and stops the server.
fn finish<T: DeserializeOwned>(
    server: Agent,
    client: Agent,
    duration: Duration,
    disturbed: Option<Range<u64>>,
) -> Result<Measured<T>, Error> {
    let report: ClientReport = client.result(duration)?;
    let result = serde_json::from_value(report.result)
        .map_err(|error| Error::Peer(format!("an unexpected result: {error}")))?;
    Ok(Measured { result, client: report.counters, server: server.stop()?, disturbed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_end_and_leave_notes() {
        let repeats = Repeats::allow(2);
        assert!(repeats.take("one".to_owned()) && repeats.take("two".to_owned()));
        assert!(!repeats.take("three".to_owned()), "a machine that is always busy");
        assert_eq!(repeats.notes(), ["one", "two"]);
    }
}
