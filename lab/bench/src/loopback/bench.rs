//! The measurements of all contenders, each with fresh processes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use apus::PollMode;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::disturbance::Disturbance;
use super::sides::JOB;
use super::sides::{
    ClientReport, ClientSide, Counters, Details, GRACE, LoadPhase, LoadResult, Messages, Phase,
    Side,
};
use crate::contenders::transport::Transport;
use crate::options;
use crate::slowdown::{Scale, tenths};
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::machine::Cores;
use apus_testbed::process::{Agent, Spawner, Task};
use apus_testbed::repeat::Repeater;

/// Duration of the unloaded phase of each contender.
const UNLOADED: Duration = Duration::from_millis(400);

/// Warm-up of closed loops.
const WARM: Duration = Duration::from_millis(100);

/// Time from the start order of a load to its start: enough for the order to arrive on a busy
/// machine.
const LEAD: Duration = Duration::from_millis(20);

/// The contenders on a host.
pub(crate) struct Bench<'a> {
    pub(crate) host: &'a Spawner,
    pub(crate) cores: Cores,
    /// Poll mode of the servers.
    pub(crate) poll: PollMode,
    pub(crate) messages: Messages,
    pub(crate) contenders: Vec<Box<dyn Transport>>,
    pub(crate) repeater: Repeater,
}

/// Measurements of one phase of one contender.
#[derive(Clone, Debug)]
pub(crate) struct Measured<T> {
    /// Number of the run, from 0.
    pub(crate) run: usize,
    pub(crate) result: T,
    /// Counters of both sides, warm-up included.
    pub(crate) client: Counters,
    pub(crate) server: Counters,
    /// The disturbance, in nanoseconds since the start of the load.
    pub(crate) disturbed: Option<Range<u64>>,
}

impl Bench<'_> {
    /// Returns the base of all slowdowns: the minimum time of each size over all contenders. `None`
    /// if no contender has results.
    pub(crate) fn scale(&self) -> Result<Option<Scale>, Error> {
        let mut best: BTreeMap<u32, u64> = BTreeMap::new();
        for contender in &self.contenders {
            let name = contender.name();
            self.repeater.progress().step(&format!("best time of each size: {name}"));
            let phase = Phase::Unloaded { duration: UNLOADED };
            let times: Option<Measured<Vec<(u32, u64)>>> =
                self.repeater
                    .attempt(&name, "best times", || self.closed(&name, 0, &phase, UNLOADED))?;
            for (size, time) in times.into_iter().flat_map(|times| times.result) {
                best.entry(size).and_modify(|least| *least = time.min(*least)).or_insert(time);
            }
        }
        let workload = options::workload(&self.messages.workload, self.messages.truncate)?;
        Ok((!best.is_empty()).then(|| Scale {
            best: best.into_iter().collect(),
            groups: tenths(workload.sizes()),
            short: workload.sizes().quantile(0.5),
        }))
    }

    /// Returns the requests per second that each contender completes in each run with `outstanding`
    /// requests.
    pub(crate) fn capacity(
        &self,
        runs: usize,
        outstanding: u32,
        measure: Duration,
    ) -> Result<Vec<Vec<Measured<f64>>>, Error> {
        let phase = Phase::Capacity { outstanding, warm: WARM, measure };
        self.rounds(runs, "capacity", |name, run| {
            let measured: Measured<f64> = self.closed(name, 0, &phase, WARM + measure)?;
            if measured.result > 0.0 {
                return Ok(Measured { run, ..measured });
            }
            let said = "completed nothing while its capacity was measured".to_owned();
            Err(Error::Agent { agent: format!("{name} client"), said })
        })
    }

    /// Returns the requests that each contender completes in each second of each run with
    /// `outstanding` requests.
    pub(crate) fn hold(
        &self,
        runs: usize,
        outstanding: u32,
        seconds: u32,
    ) -> Result<Vec<Vec<Measured<Vec<u64>>>>, Error> {
        let phase = Phase::Hold { outstanding, warm: WARM, seconds };
        let duration = WARM + Duration::from_secs(seconds.into());
        self.rounds(runs, &format!("{outstanding} outstanding"), |name, run| {
            self.closed(name, run, &phase, duration)
        })
    }

    /// Returns all runs of each contender under load, with the disturbance that starts at an
    /// instant of the load. Each run draws different messages.
    pub(crate) fn loads(
        &self,
        runs: usize,
        load: &LoadPhase,
        disturbance: Option<(Duration, Disturbance)>,
    ) -> Result<Vec<Vec<Measured<LoadResult>>>, Error> {
        self.rounds(runs, "load", |name, run| self.load(name, run, load, disturbance))
    }

    /// Returns the results of `measure` for each contender, without lost runs. The first contender
    /// changes from run to run.
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
                let phase = format!("{what}, run {}", run + 1);
                self.repeater.progress().step(&format!("{phase} of {runs}: {name}"));
                found[index].extend(self.repeater.attempt(&name, &phase, || measure(&name, run))?);
            }
        }
        Ok(found)
    }

    /// Measures a phase that needs no start order.
    fn closed<T: DeserializeOwned>(
        &self,
        contender: &str,
        run: usize,
        phase: &Phase,
        duration: Duration,
    ) -> Result<Measured<T>, Error> {
        let (server, client) = self.start(contender, run, phase.clone(), false)?;
        finish(server, client, run, duration, None)
    }

    /// Returns a load with its disturbance.
    fn load(
        &self,
        contender: &str,
        run: usize,
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
        finish(server, client, run, duration, disturbed)
    }

    /// Starts a server that may be paused, and a client of it.
    fn start(
        &self,
        contender: &str,
        run: usize,
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
                seed: self.messages.seed.wrapping_add(run as u64),
                ..self.messages.clone()
            },
            alone_on_core: self.cores.client.is_some(),
            phase,
        }));
        let client = self.host.start(task("client", self.cores.client, side))?;
        Ok((server, client))
    }
}

/// Stops the server's process at `begin` for a time, and returns the actual interval.
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
    run: usize,
    duration: Duration,
    disturbed: Option<Range<u64>>,
) -> Result<Measured<T>, Error> {
    let report: ClientReport = client.result(duration)?;
    let result = serde_json::from_value(report.result)
        .map_err(|error| Error::Peer(format!("an unexpected result: {error}")))?;
    Ok(Measured { run, result, client: report.counters, server: server.stop()?, disturbed })
}
