//! In which processes and threads are workers?
//!
//! Each number of workers is measured by fresh agents: one with many threads, or many with one. Each worker makes its
//! pair on its own core, and all begin at one instant.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use apus_local::GlobalRegistry;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::exchange::{Alone, Exchange};
use super::fine_grained::FineGrained;
use super::global_lock::{Door, GlobalLock};
use super::unix::Unix;
use super::worker::{Tally, Window, work};
use super::{Contender, JOB, Tasks};
use crate::error::{Doing, Error};
use crate::machine;
use crate::process::{Begin, Control, Crew, Host, NOWHERE, Stop, Task};
use crate::stats::Latencies;

/// What is measured at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) contender: Contender,
    pub(super) tasks: Tasks,
    pub(super) workers: usize,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    /// Operations a second, all workers together.
    pub(super) rate: f64,
    /// Nanoseconds that a lock was waited for; `None` for locks that cannot be seen.
    pub(super) wait: Option<Wait>,
    /// Mean nanoseconds from having it to letting it go.
    pub(super) hold: Option<f64>,
}

/// How long locks were waited for, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wait {
    pub(super) mean: f64,
    pub(super) p99: f64,
}

/// What an agent is told.
#[derive(Debug, Serialize, Deserialize)]
struct Setup {
    contender: Contender,
    /// The registry, where there is one for all.
    door: Option<Door>,
    workers: Vec<Place>,
}

/// Where a worker is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Place {
    /// Its number among all workers.
    number: usize,
    core: usize,
}

/// Time from the order to begin to the first operation, and as much again for each agent. Ours: ten times what telling
/// one takes.
const LEAD: Duration = Duration::from_millis(10);
const LEAD_EACH: Duration = Duration::from_micros(500);

/// Measures one point. Workers have the cores in turn.
pub(super) fn measure(
    case: Case,
    window: Window,
    cores: &[usize],
    host: &Host,
) -> Result<Point, Error> {
    let Case { contender, tasks, workers } = case;
    let registry = (contender == Contender::GlobalLock).then(|| GlobalRegistry::create(workers));
    let registry = registry.transpose().doing(|| "make a registry".to_owned())?;
    let door = registry.as_ref().map(|registry| Door::to(registry, workers));
    let place = |number| Place { number, core: cores[number % cores.len()] };
    let places: Vec<Place> = (0..workers).map(place).collect();
    let each = if tasks == Tasks::Threads { workers } else { 1 };
    let agent = |workers: &[Place]| {
        let name = format!("{contender} worker {}", workers[0].number + 1);
        let setup = Setup { contender, door: door.clone(), workers: workers.to_vec() };
        let job = JOB.to_owned();
        (host.clone(), Task { name, core: None, bind: None, job, details: json!(setup) })
    };
    let mut crew = Crew::start(places.chunks(each).map(agent))?;
    crew.addresses()?;
    let agents = u32::try_from(crew.len()).expect("a thousand at most");
    crew.begin(&vec![window; crew.len()], LEAD + LEAD_EACH * agents)?;
    let took = Duration::from_nanos(window.warm_up + window.time);
    let tallies = crew.results::<Vec<Tally>>(took).all()?;
    // Until here: the agents find the registry through this process.
    drop(registry);
    let tallies: Vec<Tally> = tallies.into_iter().flatten().collect();
    Ok(sum(&tallies))
}

/// All workers together.
fn sum(tallies: &[Tally]) -> Point {
    let each = |tally: &Tally| tally.operations as f64 * 1e9 / tally.time.max(1) as f64;
    let (mut wait, mut hold) = (Latencies::new(), Latencies::new());
    for tally in tallies {
        wait.merge(&tally.wait);
        hold.merge(&tally.hold);
    }
    let of_wait = || Wait { mean: wait.mean(), p99: wait.quantile(0.99) as f64 };
    Point {
        rate: tallies.iter().map(each).sum(),
        wait: (!wait.is_empty()).then(of_wait),
        hold: (!hold.is_empty()).then(|| hold.mean()),
    }
}

/// Is one agent: all of its workers, each in a thread.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let setup: Setup = serde_json::from_value(task.details.clone())
        .map_err(|error| Error::Peer(format!("an unexpected task: {error}")))?;
    let stop = control.stop().clone();
    thread::scope(|scope| {
        let (made, pairs) = mpsc::channel();
        let mut begins = Vec::new();
        let mut threads = Vec::new();
        for place in setup.workers.iter().copied() {
            let (begin, begun) = mpsc::channel();
            let (setup, stop, made) = (&setup, &stop, made.clone());
            let live = move || live(setup, place, made, &begun, stop);
            let thread = thread::Builder::new().name(format!("worker {}", place.number));
            threads.push(thread.spawn_scoped(scope, live).doing(|| "start a worker".to_owned())?);
            begins.push(begin);
        }
        drop(made);
        let begun = if pairs.iter().count() == setup.workers.len() {
            control.ready(NOWHERE).and_then(|()| control.begin::<Window>())
        } else {
            Err(Error::Peer("a worker could not make its pair".to_owned()))
        };
        if let Ok(Begin { details, at }) = &begun {
            for begin in &begins {
                // Nobody listens who has failed, and says so below.
                let _ = begin.send((*at, *details));
            }
        }
        drop(begins);
        let mut tallies = Vec::new();
        for thread in threads {
            let tally = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            tallies.extend(tally);
        }
        begun?;
        Ok(json!(tallies))
    })
}

/// One worker's life; `None` if it was not told to begin.
fn live(
    setup: &Setup,
    place: Place,
    made: Sender<()>,
    begun: &Receiver<(u64, Window)>,
    stop: &Stop,
) -> Result<Option<Tally>, Error> {
    machine::pin(place.core)?;
    match setup.contender {
        Contender::GlobalLock => {
            let missing = || Error::Peer("nobody said where the registry is".to_owned());
            let door = setup.door.clone().ok_or_else(missing)?;
            wait_and_work(GlobalLock::connect(door, place.number)?, made, begun, stop)
        }
        Contender::FineGrained => wait_and_work(FineGrained::connect()?, made, begun, stop),
        Contender::Unix => wait_and_work(Unix::connect()?, made, begun, stop),
    }
}

fn wait_and_work(
    mut exchange: impl Exchange,
    made: Sender<()>,
    begun: &Receiver<(u64, Window)>,
    stop: &Stop,
) -> Result<Option<Tally>, Error> {
    let alone = Alone::watch(&mut exchange)?;
    exchange.join()?;
    // Nobody listens if another worker has failed already.
    let _ = made.send(());
    drop(made);
    let Ok((at, window)) = begun.recv() else { return Ok(None) };
    work(&mut exchange, &alone, at, window, stop).map(Some)
}
