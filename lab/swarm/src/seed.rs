//! One seed: runs its scenario and reports the result.

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use super::panic_hook;

use super::attack::Attack;
use super::checker::undisturbed::compare;
use super::event_log::EventLog;
use super::scenario::Scenario;
use super::simulation::{self, End};
use super::violation::{Violation, ViolationKind};
use apus_sim::fault::{self, Counters};
use apus_workload::time::{MILLISECOND, Nanos};

/// Every n-th seed is run twice.
const REPEAT_INTERVAL: u64 = 16;

/// Result of one seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedResult {
    /// Totals of the run.
    pub totals: RunTotals,
    /// The violation, if any.
    pub failure: Option<Box<SeedFailure>>,
}

/// Totals of one or several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTotals {
    /// Packets sent by transports.
    pub packets: u64,
    /// Datagrams of these packets, without those dropped by a crash before.
    pub datagrams: u64,
    /// Calls accepted by transports.
    pub rpcs: u64,
    /// Faults that occurred.
    pub faults: Counters,
    /// Packets of hostile hosts that reached honest hosts.
    pub hostile_packets: u64,
    /// Packets dropped because a socket buffer was full.
    pub socket_overflows: u64,
    /// Completed file operations.
    pub file_operations: u64,
}

/// A violation with its context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedFailure {
    /// The seed.
    pub seed: u64,
    /// The violation.
    pub violation: Violation,
    /// Description of the scenario.
    pub scenario: String,
    /// Simulated time of the violation, if it was seen during the run.
    pub at: Option<Nanos>,
    /// Last events of the calls concerned, or of the whole run.
    pub trace: Vec<String>,
}

/// Runs one seed.
#[must_use]
pub fn check(seed: u64) -> SeedResult {
    check_scenario(&Scenario::generate(seed))
}

/// Runs a scenario, generated or made by hand.
#[must_use]
pub fn check_scenario(scenario: &Scenario) -> SeedResult {
    let (totals, violation, at) = match run_caught(scenario, None) {
        Ok(end) => {
            let totals = RunTotals {
                packets: end.packets,
                datagrams: end.datagrams,
                rpcs: end.rpcs,
                faults: end.faults,
                hostile_packets: end.hostile_packets,
                socket_overflows: end.socket_overflows,
                file_operations: 0,
            };
            let differs = || differs(scenario, end.hash);
            let disturbed = || disturbed(scenario, &end);
            let violation = end.violation.clone().or_else(differs).or_else(disturbed);
            (totals, violation, end.simulated)
        }
        Err(violation) => (RunTotals::default(), Some(violation), 0),
    };
    let failure = violation.map(|violation| {
        // Repeat the run, and record its events.
        let trace = Rc::new(RefCell::new(EventLog::of(&violation.calls)));
        let _ = run_caught(scenario, Some(Rc::clone(&trace)));
        let trace = trace.borrow().to_lines();
        Box::new(SeedFailure {
            seed: scenario.seed,
            violation,
            scenario: scenario.to_string(),
            at: Some(at),
            trace,
        })
    });
    SeedResult { totals, failure }
}

/// Runs some seeds a second time; the result must be the same.
fn differs(scenario: &Scenario, first: u64) -> Option<Violation> {
    if !scenario.seed.is_multiple_of(REPEAT_INTERVAL) {
        return None;
    }
    let second = run_caught(scenario, None).map_or(0, |end| end.hash);
    Violation::unless(second == first, ViolationKind::Determinism, None, || {
        let hash = |hash| format!("a hash of {hash:016x} over all observations");
        (hash(first), hash(second))
    })
    .err()
}

/// Compares a run with an attack to a run with a silent hostile host, if every packet arrives: the
/// effect of faults on single calls depends on every earlier packet.
fn disturbed(scenario: &Scenario, attacked: &End) -> Option<Violation> {
    let attack = scenario.attack.filter(|attack| !attack.is_silent)?;
    if scenario.faults != fault::Settings::default() {
        return None;
    }
    let silent = Attack { is_silent: true, ..attack };
    let alone = run_caught(&Scenario { attack: Some(silent), ..scenario.clone() }, None);
    match alone {
        Ok(End { violation: None, outcomes, .. }) => {
            compare(scenario, &outcomes, &attacked.outcomes).err()
        }
        Ok(End { violation, .. }) => violation,
        Err(panic) => Some(panic),
    }
}

/// Returns the result of a run, or the panic that ended it.
fn run_caught(scenario: &Scenario, trace: Option<Rc<RefCell<EventLog>>>) -> Result<End, Violation> {
    let scenario = scenario.clone();
    // The state of a run is dropped after a panic; the event log is consistent after each line.
    catch_unwind(AssertUnwindSafe(|| simulation::run(scenario, trace))).map_err(|panic| Violation {
        kind: ViolationKind::Panic,
        calls: Vec::new(),
        expected: "no panic".to_owned(),
        observed: panic_hook::describe(panic.as_ref()),
    })
}

impl RunTotals {
    pub(crate) fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.datagrams += other.datagrams;
        self.rpcs += other.rpcs;
        self.hostile_packets += other.hostile_packets;
        self.socket_overflows += other.socket_overflows;
        self.file_operations += other.file_operations;
        let faults = &mut self.faults;
        faults.lost += other.faults.lost;
        faults.lost_in_bursts += other.faults.lost_in_bursts;
        faults.duplicated += other.faults.duplicated;
        faults.reordered += other.faults.reordered;
        faults.held_up += other.faults.held_up;
        faults.very_late += other.faults.very_late;
        faults.caught += other.faults.caught;
        faults.corrupted += other.faults.corrupted;
        faults.cut_off += other.faults.cut_off;
        faults.at_dead_host += other.faults.at_dead_host;
        faults.at_paused_host += other.faults.at_paused_host;
    }
}

/// Full report, without the replay command.
impl fmt::Display for SeedFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { kind, calls, expected, observed } = &self.violation;
        writeln!(f, "seed {}: {kind}: {}", self.seed, kind.promise())?;
        writeln!(f, "  expected   {expected}")?;
        writeln!(f, "  observed   {observed}")?;
        if let Some(at) = self.at {
            writeln!(f, "  at         {:.6} ms of the run", at as f64 / MILLISECOND as f64)?;
        }
        write!(f, "{}", self.scenario)?;
        if calls.is_empty() {
            writeln!(f, "  last events:")?;
        } else {
            writeln!(f, "  last events of {calls:?}:")?;
        }
        self.trace.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}
