//! A point: the output at one rate in one mode.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::application::Window;
use super::filter::Door;
use super::generator::{Load, Sent};
use super::mode::Mode;
use super::process::{JOB, ProcessRole};
use super::router::{Counters, RouterTask};
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::fabric::{PathNode, RouterPath};
use apus_testbed::process::{Crew, Spawner, Task};

/// The environment that points are measured in.
#[derive(Debug)]
pub(super) struct Bench<'a> {
    pub(super) crossing: &'a RouterPath,
    /// The program that is an agent if its first argument is
    /// [`AGENT`](apus_testbed::process::AGENT).
    pub(super) program: &'a Path,
    /// The cores of the generator and of the router.
    pub(super) cores: [usize; 2],
    pub(super) monitor: bool,
    /// Seconds of load.
    pub(super) seconds: f64,
    pub(super) train: Option<u64>,
    pub(super) seed: u64,
}

/// A mode, with the filter or without.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Case {
    pub(super) mode: Mode,
    pub(super) filter: bool,
}

/// One point of a curve; rates in packets per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RatePoint {
    pub(super) offered: f64,
    pub(super) forwarded: f64,
    /// Share of the router's core that was left to applications.
    pub(super) user_share: f64,
    /// Packets that were offered.
    pub(super) packets: u64,
    /// Packets that the monitor saw, if there was one.
    pub(super) seen: Option<u64>,
    pub(super) counters: Counters,
}

/// Time from the start order to the first packet.
const LEAD: Duration = Duration::from_millis(60);

/// Time for the router to empty its queues after the last packet. Chosen by us: a hundred times the
/// time of 400 packets.
const DRAIN: Duration = Duration::from_millis(40);

/// Longest time of processes beyond the load itself, including the pauses between trains.
const SLACK: Duration = Duration::from_secs(5);

impl Bench<'_> {
    /// Offers packets at a rate, or as many as possible, to fresh processes.
    ///
    /// # Errors
    ///
    /// A process failed, or the machine kept the generator from its core for the whole time.
    pub(super) fn measure(&self, case: Case, rate: Option<f64>) -> Result<RatePoint, Error> {
        let tasks = self.tasks(case);
        let [monitor, filter] = [self.monitor, case.filter].map(usize::from);
        let mut crew = Crew::start(tasks)?;
        crew.addresses()?;
        let before = self.crossing.arrived()?;
        let time = clock::as_nanoseconds(Duration::from_secs_f64(self.seconds));
        let load = json!(Load { rate, time, train: self.train });
        let mut details = vec![load, json!(Window { time })];
        details.resize(3 + monitor + filter, Value::Null);
        crew.begin(&details, LEAD)?;
        let longest = self.longest(rate);
        crew.sleep(LEAD + longest + DRAIN)?;
        crew.stop()?;
        let mut results = crew.results::<Value>(SLACK).all()?.into_iter();
        // The router has ended, so no packet is in flight.
        let forwarded = self.crossing.arrived()? - before;
        let mut next = || results.next().expect("a result of each");
        let (sent, share, counters) = (take::<Sent>(next())?, take(next())?, take(next())?);
        let seen = self.monitor.then(|| take(next())).transpose()?;
        let kept = || {
            let said = format!("was kept from its core for {} s; try a longer time", self.seconds);
            Error::Agent { agent: "generator".to_owned(), said }
        };
        let (offered, forwarded) = sent.rates(forwarded).ok_or_else(kept)?;
        let packets = sent.packets;
        Ok(RatePoint { offered, forwarded, user_share: share, packets, seen, counters })
    }

    /// Returns the longest duration of the load: the last train is sent to its end.
    fn longest(&self, rate: Option<f64>) -> Duration {
        let train = self.train.zip(rate).map_or(0.0, |(train, rate)| train as f64 / rate);
        Duration::from_secs_f64(self.seconds + train)
    }

    /// Returns the tasks: generator, application, router, monitor, filter. The order identifies the
    /// results.
    fn tasks(&self, case: Case) -> Vec<(Spawner, Task)> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let [generator, router] = self.cores;
        let door = case.filter.then(|| Door::new(NUMBER.fetch_add(1, Ordering::Relaxed)));
        let setup = RouterTask { mode: case.mode, door: door.clone() };
        let mut tasks = vec![
            self.task(
                "generator",
                PathNode::Source,
                generator,
                &ProcessRole::Generator { seed: self.seed },
            ),
            self.task("application", PathNode::Router, router, &ProcessRole::Compute),
            self.task("router", PathNode::Router, router, &ProcessRole::Router(setup)),
        ];
        if self.monitor {
            tasks.push(self.task("monitor", PathNode::Router, router, &ProcessRole::Monitor));
        }
        if let Some(door) = door {
            tasks.push(self.task("filter", PathNode::Router, router, &ProcessRole::Filter(door)));
        }
        tasks
    }

    fn task(
        &self,
        name: &str,
        place: PathNode,
        core: usize,
        role: &ProcessRole,
    ) -> (Spawner, Task) {
        let host = Spawner::Command {
            prefix: self.crossing.enter(place),
            program: self.program.as_os_str().to_owned(),
        };
        let (name, job, details) = (name.to_owned(), JOB.to_owned(), json!(role));
        (host, Task { name, core: Some(core), bind: None, job, details })
    }
}

fn take<T: serde::de::DeserializeOwned>(result: Value) -> Result<T, Error> {
    serde_json::from_value(result)
        .map_err(|error| Error::Peer(format!("an unexpected result: {error}")))
}
