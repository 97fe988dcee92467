//! The results of the steps of a sweep, kept in a file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::plan::{Plan, SweepStep};
use crate::cluster::options::{ClusterOptions, Link};
use crate::cluster::phases::{Base, Chosen, MixRuns, Phases as ClusterPhases, Runs};
use crate::cluster::site::Venue;
use apus_report::lines::{self, Lines, LinesError};
use apus_report::progress::Progress;
use apus_report::result::Phases;
use apus_testbed::error::Error;
use apus_testbed::repeat::Repeater;

/// The result of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Found {
    Link(Chosen),
    Base(Base),
    Runs {
        /// In the order of the step's mixes.
        mixes: Vec<MixRuns>,
        /// Notes about the runs for readers.
        notes: Vec<String>,
    },
}

/// A line of the file that keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepRecord {
    /// Name of the plan.
    plan: String,
    /// Number of its steps.
    of: u32,
    /// Number of the step.
    index: u32,
    found: Found,
}

impl lines::Record for StepRecord {
    fn plan(&self) -> &str {
        &self.plan
    }

    fn index(&self) -> u32 {
        self.index
    }

    fn of(&self) -> u32 {
        self.of
    }
}

impl Found {
    const fn is_runs(&self) -> bool {
        matches!(self, Self::Runs { .. })
    }

    /// Returns whether it is worth keeping: complete failures are retried the next time.
    fn is_whole(&self) -> bool {
        match self {
            Self::Runs { mixes, .. } => mixes.iter().all(|runs| !runs.of.is_empty()),
            Self::Base(base) => !base.best.is_empty(),
            Self::Link(_) => true,
        }
    }
}

/// Executes the steps of a plan in sequence.
pub(super) struct Finder<'a> {
    plan: &'a Plan,
    venue: &'a Venue,
    lines: Option<Lines<StepRecord>>,
    pub(super) repeater: Repeater,
    /// Record of the phases of all steps.
    pub(super) record: Phases,
}

impl<'a> Finder<'a> {
    /// Returns a finder; results are saved in the file, if given.
    pub(super) fn new(plan: &'a Plan, venue: &'a Venue, out: Option<&Path>) -> Result<Self, Error> {
        let unusable =
            |error: LinesError| Error::Option { option: "out", problem: error.to_string() };
        let lines = out.map(|path| Lines::open(path, &plan.name)).transpose().map_err(unusable)?;
        let is_stored =
            |index| lines.as_ref().is_some_and(|lines: &Lines<StepRecord>| lines.contains(index));
        let left = (0..).zip(&plan.steps).filter(|(index, _)| !is_stored(*index));
        let phases = left.map(|(_, step)| Plan::counts(step)).sum();
        let repeater = Repeater::of(phases, Progress::of(phases));
        Ok(Self { plan, venue, lines, repeater, record: Phases::default() })
    }

    /// Returns the results of all steps, in order.
    pub(super) fn all(&mut self) -> Result<Vec<Found>, Error> {
        let mut found = Vec::new();
        for (index, step) in (0..).zip(&self.plan.steps) {
            let known = self.lines.as_ref().and_then(|lines| lines.get(index));
            let this = match known {
                Some(record) => record.found.clone(),
                None => {
                    let new = self.find(step, &found)?;
                    self.keep(index, &new)?;
                    new
                }
            };
            found.push(this);
        }
        Ok(found)
    }

    /// Executes a step; `found` has the results of the previous steps.
    fn find(&mut self, step: &SweepStep, found: &[Found]) -> Result<Found, Error> {
        let options = match step {
            SweepStep::Link => self.plan.options.clone(),
            SweepStep::Base { options } | SweepStep::Runs { options, .. } => {
                resolved(options, found)
            }
        };
        let phases = ClusterPhases::new(self.venue, &options, &self.repeater)?;
        let (found, record) = match step {
            SweepStep::Link => (phases.link().map(Found::Link)?, self.repeater.take()),
            SweepStep::Base { .. } => {
                let base = phases.base(phases.link()?.mbps);
                let record = self.repeater.take();
                match base {
                    Ok(base) => (Found::Base(Base { notes: record.notes(), ..base }), record),
                    // Results on other links, earlier and later ones, are worth keeping.
                    Err(error) if found.iter().any(Found::is_runs) => {
                        (Found::Base(Base::unknown(&error)), record)
                    }
                    Err(error) => return Err(error),
                }
            }
            SweepStep::Runs { mixes, base, about, .. } => {
                let phases = phases.about(about);
                let Found::Base(base) = &found[*base] else { unreachable!("it comes before") };
                if base.best.is_empty() {
                    let why = "the best times are not known";
                    let mixes = mixes.iter().map(|_| MixRuns::none(why)).collect();
                    (Found::Runs { mixes, notes: Vec::new() }, Phases::default())
                } else {
                    let scale = phases.scale(base);
                    let Runs { mixes, record } = phases.runs(phases.link()?.mbps, &scale, mixes)?;
                    (Found::Runs { mixes, notes: record.notes() }, record)
                }
            }
        };
        self.record.extend(record);
        Ok(found)
    }

    fn keep(&mut self, index: u32, found: &Found) -> Result<(), Error> {
        let Some(lines) = self.lines.as_mut().filter(|_| found.is_whole()) else { return Ok(()) };
        let of = u32::try_from(self.plan.steps.len()).expect("a plan has a few thousand at most");
        let record = StepRecord { plan: self.plan.name.clone(), of, index, found: found.clone() };
        lines.add([record]).map_err(|error| match error {
            LinesError::System { path, source } => {
                Error::System { doing: format!("write {}", path.display()), source }
            }
            error => Error::Peer(error.to_string()),
        })
    }
}

/// Returns the link rate chosen for `--link auto`.
pub(super) fn chosen(found: &[Found]) -> Option<&Chosen> {
    found.iter().find_map(|each| match each {
        Found::Link(chosen) => Some(chosen),
        _ => None,
    })
}

/// Returns the options, with `auto` replaced by the chosen rate.
pub(super) fn resolved(options: &ClusterOptions, found: &[Found]) -> ClusterOptions {
    match (options.link, chosen(found)) {
        (Link::Auto, Some(chosen)) => options.with_link(chosen.mbps),
        _ => options.clone(),
    }
}
