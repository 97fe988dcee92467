//! What came out of one seed?

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use super::quiet;

use super::scenario::Scenario;
use super::trace::Trace;
use super::violation::{Kind, Violation};
use super::world::{self, End};
use apus_sim::fault::Counters;
use apus_workload::time::{MILLISECOND, Nanos};

/// Every so manyth seed is run twice.
const TWICE: u64 = 16;

/// What came out of one seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What was done.
    pub tally: Tally,
    /// A promise that was broken.
    pub finding: Option<Box<Finding>>,
}

/// What was done, in one run or in several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets that transports have sent.
    pub packets: u64,
    /// Calls that they have accepted.
    pub rpcs: u64,
    /// What has gone wrong.
    pub faults: Counters,
}

/// A promise that was broken, and everything that is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which seed it was.
    pub seed: u64,
    /// What is wrong.
    pub violation: Violation,
    /// What the seed had drawn, in words.
    pub drawn: String,
    /// When it happened.
    pub at: Nanos,
    /// The last things that concern the call in question, or anything at all.
    pub trace: Vec<String>,
}

/// Runs one seed.
#[must_use]
pub fn check(seed: u64) -> Verdict {
    check_scenario(&Scenario::draw(seed))
}

/// Runs a scenario, be it drawn or made by hand.
#[must_use]
pub fn check_scenario(scenario: &Scenario) -> Verdict {
    let (tally, violation, at) = match attempt(scenario, None) {
        Ok(end) => {
            let tally = Tally { packets: end.packets, rpcs: end.rpcs, faults: end.faults };
            let differs = || differs(scenario, end.hash);
            (tally, end.violation.or_else(differs), end.simulated)
        }
        Err(violation) => (Tally::default(), Some(violation), 0),
    };
    let finding = violation.map(|violation| {
        // Once more, and this time with a pencil.
        let trace = Rc::new(RefCell::new(Trace::of(&violation.calls)));
        let _ = attempt(scenario, Some(Rc::clone(&trace)));
        let trace = trace.borrow().to_lines();
        Box::new(Finding { seed: scenario.seed, violation, drawn: scenario.to_string(), at, trace })
    });
    Verdict { tally, finding }
}

/// Some seeds are run twice, and must give the same.
fn differs(scenario: &Scenario, first: u64) -> Option<Violation> {
    if !scenario.seed.is_multiple_of(TWICE) {
        return None;
    }
    let second = attempt(scenario, None).map_or(0, |end| end.hash);
    Violation::unless(second == first, Kind::Determinism, None, || {
        let hash = |hash| format!("a hash of {hash:016x} over everything that was seen");
        (hash(first), hash(second))
    })
    .err()
}

/// A run, or the panic with which it has ended.
fn attempt(scenario: &Scenario, trace: Option<Rc<RefCell<Trace>>>) -> Result<End, Violation> {
    let scenario = scenario.clone();
    // What a run has touched is not looked at after a panic; a trace is whole after each line.
    catch_unwind(AssertUnwindSafe(|| world::run(scenario, trace))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Violation {
            kind: Kind::Panic,
            calls: Vec::new(),
            expected: "no panic".to_owned(),
            seen: format!("{}{}", text.unwrap_or("no message"), quiet::place()),
        }
    })
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.rpcs += other.rpcs;
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

/// The whole story, but for the command that replays it.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { kind, calls, expected, seen } = &self.violation;
        writeln!(f, "seed {}: {kind}: {}", self.seed, kind.promise())?;
        writeln!(f, "  expected   {expected}")?;
        writeln!(f, "  seen       {seen}")?;
        writeln!(f, "  at         {:.6} ms of the run", self.at as f64 / MILLISECOND as f64)?;
        write!(f, "{}", self.drawn)?;
        if calls.is_empty() {
            writeln!(f, "  the last that happened:")?;
        } else {
            writeln!(f, "  the last that concerns {calls:?}:")?;
        }
        self.trace.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}
