//! Sweeps: the effect of settings on short messages.
//!
//! The cluster benchmark, once for each value of each setting, one setting at a time. Values that a
//! setting cannot affect are measured once: the link rate for all points, the base for each rate
//! and MTU, and transports other than apus when a parameter of apus is varied.
//!
//! ```text
//!   Plan ─▶ steps ─▶ Found (kept in a file, if there is one) ─▶ points ─▶ report
//! ```

mod plan;
mod steps;

use std::path::Path;

use self::plan::{Plan, SettingPoint};
use self::steps::{Finder, Found, chosen, resolved};
use super::account::{self, Account};
use super::options::{ClusterOptions, Link};
use super::phases::{Base, MixRuns, Phases};
use super::report::{self, Measured, Sweep};
use super::setting::Setting;
use super::site::Venue;
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_testbed::error::Error;
use apus_testbed::repeat::Repeater;

/// Measures with each value of each of these settings; settings with a single value have it at
/// every point. Results are saved in the file, if given, and results found in the file are not
/// measured again.
///
/// # Errors
///
/// No setting has several values, a value cannot be measured at this venue, the file has other
/// content, the fabric cannot be created, or every run failed.
pub fn sweep(
    options: &ClusterOptions,
    settings: &[Setting],
    venue: &Venue,
    out: Option<&Path>,
) -> Result<Findings, Error> {
    let (options, _folder) = &options.prepared()?;
    let plan = Plan::new(options, settings, venue)?;
    let mut finder = Finder::new(&plan, venue, out)?;
    let found = finder.all()?;
    let neighbours = finder.repeater.neighbours();
    let usual = resolved(&plan.options, &found);
    let assembly = Assembly { venue, found: &found };
    let varied = plan.varied.iter().map(|varied| {
        let points = varied.points.iter().map(|point| {
            let mut measured = assembly.point(&varied.setting, point)?;
            measured.notes.extend(neighbours.clone());
            Ok((point.value.clone(), measured))
        });
        Ok(report::Varied {
            parameter: varied.setting.name().to_owned(),
            otherwise: varied.setting.value_of(&usual),
            points: points.collect::<Result<_, Error>>()?,
        })
    });
    let varied = varied.collect::<Result<Vec<_>, Error>>()?;
    let mut all = varied.iter().flat_map(|varied| &varied.points);
    if all.all(|(_, measured)| measured.transports.iter().all(|each| each.runs.is_empty())) {
        return Err(finder.repeater.failure());
    }
    let settings: Vec<Setting> = plan.varied.iter().map(|varied| varied.setting.clone()).collect();
    let command = account::command("sweep", venue, &usual, &settings);
    let mut findings = Sweep::new(varied, &command).findings();
    findings.outcome.phases = Some(finder.record);
    Ok(findings)
}

/// The results of steps, for the points that need them.
struct Assembly<'a> {
    venue: &'a Venue,
    /// One result per step.
    found: &'a [Found],
}

impl Assembly<'_> {
    /// Returns one point, as if it had been measured alone.
    fn point(&self, setting: &Setting, point: &SettingPoint) -> Result<Measured, Error> {
        let options = &resolved(&point.options, self.found);
        let repeater = Repeater::of(0, Progress::of(0));
        let phases = Phases::new(self.venue, options, &repeater)?;
        let link = match (point.options.link, chosen(self.found)) {
            (Link::Auto, Some(chosen)) => chosen.clone(),
            _ => phases.link()?,
        };
        let base = self.base(point.base);
        let mut notes = base.notes.clone();
        let mut runs = Vec::new();
        for (mix, &(step, position)) in options.transports.iter().zip(&point.runs) {
            let (of, said) = self.runs(step);
            runs.push(of[position].clone());
            notes.extend(
                said.iter().filter(|note| !notes.contains(note)).cloned().collect::<Vec<_>>(),
            );
            if setting.is_parameter() && !mix.has_apus() {
                let name = setting.name();
                notes.push(format!("{mix} was measured once: {name} is a parameter of apus"));
            }
        }
        let command = account::command("cluster", self.venue, options, &[]);
        let account = Account { venue: self.venue, options, phases: &phases, link: &link, base };
        account.measured(&runs, notes, command)
    }

    fn base(&self, step: usize) -> &Base {
        let Found::Base(base) = &self.found[step] else { unreachable!("as the plan says") };
        base
    }

    fn runs(&self, step: usize) -> (&[MixRuns], &[String]) {
        let Found::Runs { mixes, notes } = &self.found[step] else {
            unreachable!("as the plan says")
        };
        (mixes, notes)
    }
}
