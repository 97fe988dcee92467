//! The crew: the processes and threads in which workers run.
//!
//! Fresh agents measure each number of workers: one agent with many threads, or many with one. Each
//! worker creates its pair on its own core, and all start at one instant.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use apus_local::LockMisses;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::contender::Contender;
use super::exchange::{Exchange, TURNS};
use super::fine_grained::FineGrained;
use super::global_lock::{Door, GlobalLock};
use super::global_registry::GlobalRegistry;
use super::options::Tasks;
use super::unix::Unix;
use super::worker::{Tally, Window, work};
use apus_report::stats::Latencies;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::{Begin, Control, Crew, NO_ADDRESS, Spawner, Stop, Task};
use apus_testbed::{clock, machine};

/// The kind of task that [`agent`] does.
pub(crate) const JOB: &str = "lab contention";

/// The workers that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) contender: Contender,
    pub(super) tasks: Tasks,
    pub(super) workers: usize,
}

/// The result of a crew of workers in one run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CrewResult {
    /// Operations per second, all workers together.
    pub(super) rate: f64,
    /// Waits at locks; `None` for locks that cannot be observed.
    pub(super) wait: Option<Wait>,
    /// Mean nanoseconds for which a lone worker holds the lock.
    pub(super) hold: Option<f64>,
}

/// Waits at locks; a free lock counts as a wait of 0 ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wait {
    /// Nanoseconds.
    pub(super) mean: f64,
    /// Nanoseconds; `None` if only the number and the sum of the waits are known.
    pub(super) p99: Option<f64>,
    /// Share of the acquisitions that found the lock taken.
    pub(super) taken: f64,
}

impl Wait {
    /// Returns the waits of `turns` acquisitions of a lock; `waits` are those that found it taken.
    fn of(turns: u64, waits: &Latencies) -> Self {
        let taken = waits.len() as f64 / turns.max(1) as f64;
        // The quantile among the waits that is the 99th percentile of all acquisitions.
        let below = 1.0 - 0.01 / taken.max(0.01);
        let p99 = if taken > 0.01 { waits.quantile(below) as f64 } else { 0.0 };
        Self { mean: waits.mean() * taken, p99: Some(p99), taken }
    }

    /// Returns the waits of `turns` acquisitions of locks; `counted` are those that found the lock
    /// taken.
    fn counted(turns: u64, counted: Counted) -> Self {
        let share = |value: u64| value as f64 / turns.max(1) as f64;
        let taken = share(counted.times);
        let p99 = (taken <= 0.01).then_some(0.0);
        Self { mean: share(counted.nanoseconds), p99, taken }
    }
}

/// The result of an agent.
#[derive(Debug, Serialize, Deserialize)]
struct Report {
    tallies: Vec<Tally>,
    /// Locks of the pairs of all workers in this agent, since their creation.
    pairs: Counted,
}

/// Locks that were found taken.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Counted {
    times: u64,
    nanoseconds: u64,
}

impl Counted {
    fn between(before: LockMisses, after: LockMisses) -> Self {
        let nanoseconds = clock::as_nanoseconds(after.waited.saturating_sub(before.waited));
        Self { times: after.count - before.count, nanoseconds }
    }
}

/// The details of an agent's task.
#[derive(Debug, Serialize, Deserialize)]
struct Setup {
    contender: Contender,
    /// The shared registry of `global-lock`.
    door: Option<Door>,
    workers: Vec<Seat>,
}

/// The number and the core of a worker.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Seat {
    /// Its number among all workers.
    number: usize,
    core: usize,
}

/// Time from the start order to the first operation, in all and per agent. Chosen by us: ten times
/// the time to notify an agent.
const LEAD: Duration = Duration::from_millis(10);
const LEAD_EACH: Duration = Duration::from_micros(500);

/// Number of windows that are tried until an operation completes in one; each is twice as long as
/// the last. Chosen by us: from 20 ms to more than a second, longer than any worker waits for a
/// core.
const LONGER: u32 = 6;

/// Measures one case. Workers are spread over the cores. A window without a completed operation,
/// because other programs had the cores, is repeated with a longer one.
pub(super) fn measure(
    case: Case,
    mut window: Window,
    cores: &[usize],
    host: &Spawner,
) -> Result<CrewResult, Error> {
    for _ in 0..LONGER {
        let result = measure_in(case, window, cores, host)?;
        if result.rate > 0.0 {
            return Ok(result);
        }
        window.time *= 2;
    }
    let Case { contender, tasks, workers } = case;
    let seconds = window.time as f64 / 2e9;
    Err(Error::Peer(format!(
        "{contender}: no operation of {workers} {tasks} ended within {seconds} s: something else has the cores; try a \
         longer time"
    )))
}

/// Measures one case in this window; the rate may be 0.
fn measure_in(
    case: Case,
    window: Window,
    cores: &[usize],
    host: &Spawner,
) -> Result<CrewResult, Error> {
    let Case { contender, tasks, workers } = case;
    let registry = (contender == Contender::GlobalLock).then(|| GlobalRegistry::create(workers));
    let registry = registry.transpose().doing(|| "make a registry".to_owned())?;
    let door = registry.as_ref().map(|registry| Door::to(registry, workers));
    let seat = |number| Seat { number, core: cores[number % cores.len()] };
    let seats: Vec<Seat> = (0..workers).map(seat).collect();
    let each = if tasks == Tasks::Threads { workers } else { 1 };
    let agent = |workers: &[Seat]| {
        let name = format!("{contender} worker {}", workers[0].number + 1);
        let setup = Setup { contender, door: door.clone(), workers: workers.to_vec() };
        let job = JOB.to_owned();
        (host.clone(), Task { name, core: None, bind: None, job, details: json!(setup) })
    };
    let mut crew = Crew::start(seats.chunks(each).map(agent))?;
    crew.addresses()?;
    let agents = u32::try_from(crew.len()).expect("a thousand at most");
    crew.begin(&vec![window; crew.len()], LEAD + LEAD_EACH * agents)?;
    let took = Duration::from_nanos(window.warm_up + window.time);
    let reports = crew.results::<Report>(took).all()?;
    // The agents open the registry through this process, so it must live until here.
    drop(registry);
    Ok(sum(contender, window, &reports))
}

/// Returns the result of all workers together.
fn sum(contender: Contender, window: Window, reports: &[Report]) -> CrewResult {
    let tallies = || reports.iter().flat_map(|report| &report.tallies);
    let operations: u64 = tallies().map(|tally| tally.operations).sum();
    let turns = TURNS * operations;
    let wait = match contender {
        Contender::GlobalLock => {
            let mut all = Latencies::new();
            tallies().filter_map(|tally| tally.waits.as_ref()).for_each(|waits| all.merge(waits));
            Some(Wait::of(turns, &all))
        }
        Contender::FineGrained => {
            let pairs = reports.iter().map(|report| report.pairs);
            let all = pairs.fold(Counted::default(), |sum, each| Counted {
                times: sum.times + each.times,
                nanoseconds: sum.nanoseconds + each.nanoseconds,
            });
            Some(Wait::counted(turns, all))
        }
        Contender::Unix => None,
    };
    let holds: Vec<f64> = tallies().filter_map(|tally| tally.hold).collect();
    let hold = (!holds.is_empty()).then(|| holds.iter().sum::<f64>() / holds.len() as f64);
    let rate = operations as f64 * 1e9 / window.time as f64;
    CrewResult { rate, wait, hold }
}

/// Runs the workers of an agent, each in a thread.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let setup: Setup = serde_json::from_value(task.details.clone())
        .map_err(|error| Error::Peer(format!("an unexpected task: {error}")))?;
    let stop = control.stop().clone();
    let before = LockMisses::so_far();
    thread::scope(|scope| {
        let (made, pairs) = mpsc::channel();
        let mut begins = Vec::new();
        let mut threads = Vec::new();
        for seat in setup.workers.iter().copied() {
            let (begin, begun) = mpsc::channel();
            let (setup, stop, made) = (&setup, &stop, made.clone());
            let live = move || live(setup, seat, made, &begun, stop);
            let thread = thread::Builder::new().name(format!("worker {}", seat.number));
            threads.push(thread.spawn_scoped(scope, live).doing(|| "start a worker".to_owned())?);
            begins.push(begin);
        }
        drop(made);
        let begun = if pairs.iter().count() == setup.workers.len() {
            control.ready(NO_ADDRESS).and_then(|()| control.begin::<Window>())
        } else {
            Err(Error::Peer("a worker could not make its pair".to_owned()))
        };
        if let Ok(Begin { details, at }) = &begun {
            for begin in &begins {
                // A failed worker does not receive; its error is returned below.
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
        let pairs = Counted::between(before, LockMisses::so_far());
        Ok(json!(Report { tallies, pairs }))
    })
}

/// Runs one worker; `None` if it was never started because another one failed.
fn live(
    setup: &Setup,
    seat: Seat,
    made: Sender<()>,
    begun: &Receiver<(u64, Window)>,
    stop: &Stop,
) -> Result<Option<Tally>, Error> {
    machine::pin(seat.core)?;
    match setup.contender {
        Contender::GlobalLock => {
            let missing = || Error::Peer("a task without the registry".to_owned());
            let door = setup.door.clone().ok_or_else(missing)?;
            wait_and_work(GlobalLock::connect(door, seat.number)?, made, begun, stop)
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
    let hold = exchange.join()?;
    // The channel is closed if another worker has failed.
    let _ = made.send(());
    drop(made);
    let Ok((at, window)) = begun.recv() else { return Ok(None) };
    work(&mut exchange, hold, at, window, stop).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(values: impl IntoIterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::new();
        values.into_iter().for_each(|value| latencies.record(value));
        latencies
    }

    #[test]
    fn a_free_lock_counts_as_no_wait() {
        let wait = Wait::of(1_000, &latencies(1..=100));
        assert!((wait.mean - 5.05).abs() < 1e-9 && wait.taken == 0.1, "{wait:?}");
        assert_eq!(wait.p99, Some(90.0), "of a thousand ten waited longer");
        let few = Wait::of(1_000, &latencies(1..=10));
        assert_eq!((few.p99, few.taken), (Some(0.0), 0.01));
        let none = Wait::of(1_000, &Latencies::new());
        assert_eq!(none, Wait { mean: 0.0, p99: Some(0.0), taken: 0.0 });
    }

    #[test]
    fn counts_give_a_percentile_only_if_hardly_any_lock_was_taken() {
        let counted = |times| Wait::counted(1_000, Counted { times, nanoseconds: 5_000 });
        assert_eq!(counted(10), Wait { mean: 5.0, p99: Some(0.0), taken: 0.01 });
        assert_eq!(counted(11).p99, None);
    }

    #[test]
    fn rates_and_waits_of_all_workers_are_combined() {
        let tally = |waits: &[u64]| Tally {
            operations: 500,
            waits: Some(latencies(waits.iter().copied())),
            hold: Some(40.0 + waits.len() as f64),
        };
        let report = |waits: &[u64]| Report {
            tallies: vec![tally(waits)],
            pairs: Counted { times: 1, nanoseconds: 100 },
        };
        let reports = [report(&[100; 20]), report(&[300; 20])];
        let window = Window { warm_up: 7, time: 1_000_000 };
        let sum = |contender| sum(contender, window, &reports);
        let point = sum(Contender::GlobalLock);
        assert_eq!((point.rate, point.hold), (1e6, Some(60.0)));
        assert_eq!(point.wait, Some(Wait { mean: 4.0, p99: Some(100.0), taken: 0.02 }));
        let pairs = sum(Contender::FineGrained).wait.unwrap();
        assert_eq!((pairs.mean, pairs.taken), (0.1, 0.001));
        assert_eq!(sum(Contender::Unix).wait, None);
    }
}
