//! What came out of one seed?

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::scenario::Scenario;
use super::trace::Trace;
use super::violation::{Kind, Violation};
use super::world::{self, End};
use crate::fault::Counters;
use crate::time::{MILLISECOND, Nanos};

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
    let scenario = Scenario::draw(seed);
    let end = match attempt(&scenario, None) {
        Ok(end) => end,
        Err(panic) => return panicked(&scenario, &panic),
    };
    let tally = Tally { packets: end.packets, rpcs: end.rpcs, faults: end.faults };
    let violation = end.violation.clone().or_else(|| differs(&scenario, &end));
    let finding = violation.map(|violation| {
        // Once more, and this time with a pencil.
        let trace = Trace::of(violation.call);
        let lines = attempt(&scenario, Some(trace)).map_or_else(|_| Vec::new(), |end| end.lines);
        Box::new(Finding {
            seed,
            violation,
            drawn: scenario.to_string(),
            at: end.simulated,
            trace: lines,
        })
    });
    Verdict { tally, finding }
}

/// Some seeds are run twice, and must give the same.
fn differs(scenario: &Scenario, first: &End) -> Option<Violation> {
    if scenario.seed % TWICE != 0 {
        return None;
    }
    let second = attempt(scenario, None).map_or(0, |end| end.hash);
    let same = second == first.hash;
    Violation::unless(same, Kind::Determinism, None, || {
        let hash = |hash| format!("a hash of {hash:016x} over everything that was seen");
        (hash(first.hash), hash(second))
    })
    .err()
}

/// A run, or the message with which it has panicked.
fn attempt(scenario: &Scenario, trace: Option<Trace>) -> Result<End, String> {
    let scenario = scenario.clone();
    // What a run has touched is not looked at after a panic.
    catch_unwind(AssertUnwindSafe(|| world::run(scenario, trace))).map_err(|panic| text(&*panic))
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}

fn panicked(scenario: &Scenario, panic: &str) -> Verdict {
    let violation = Violation {
        kind: Kind::Panic,
        call: None,
        expected: "no panic".to_owned(),
        seen: panic.to_owned(),
    };
    let finding = Finding {
        seed: scenario.seed,
        violation,
        drawn: scenario.to_string(),
        at: 0,
        trace: Vec::new(),
    };
    Verdict { tally: Tally::default(), finding: Some(Box::new(finding)) }
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
        let Violation { kind, call, expected, seen } = &self.violation;
        writeln!(f, "seed {}: {kind}: {}", self.seed, kind.promise())?;
        writeln!(f, "  expected   {expected}")?;
        writeln!(f, "  seen       {seen}")?;
        writeln!(f, "  at         {:.6} ms of the run", self.at as f64 / MILLISECOND as f64)?;
        write!(f, "{}", self.drawn)?;
        match call {
            Some(call) => writeln!(f, "  the last that concerns call {call}:")?,
            None => writeln!(f, "  the last that happened:")?,
        }
        self.trace.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}
