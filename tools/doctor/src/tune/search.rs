//! Search: order of the settings, and time for each measurement.

use std::time::{Duration, Instant};

use apus::{Engine, Settings};

use super::evidence::{Candidate, Decision, Effect};
use super::options::{Goal, Options};
use super::setting::{SETTINGS, Setting};
use apus_contenders::contender::Plan;
use apus_report::progress::Progress;
use apus_testbed::error::Error;
use apus_testbed::machine::{self, Cores};
use apus_testbed::process::Spawner;

/// Result of the search.
pub(super) struct SearchResult {
    pub(super) settings: Settings,
    pub(super) decisions: Vec<Decision>,
    pub(super) notes: Vec<String>,
}

/// Initial estimate for starting and stopping both sides.
const OVERHEAD: Duration = Duration::from_millis(150);

/// Minimum and maximum duration of a measurement. Chosen by us: thousands of calls, and an end to the reduction of
/// noise.
const MIN_MEASURE: Duration = Duration::from_millis(30);
const MAX_MEASURE: Duration = Duration::from_secs(3);

/// Minimum number of rounds for a decision.
const MIN_ROUNDS: usize = 3;

/// Compares settings until the time limit.
pub(super) fn run(options: &Options, spawner: &Spawner, cores: Cores) -> SearchResult {
    let mut search = Search {
        spawner,
        cores,
        began: Instant::now(),
        ends: Duration::from_secs_f64(options.seconds),
        overhead: OVERHEAD,
        progress: Progress::of_whole(),
        notes: Vec::new(),
    };
    let mut found = SearchResult {
        settings: options.settings.clone(),
        decisions: Vec::new(),
        notes: Vec::new(),
    };
    let of_each = machine::allowed().len() / 2;
    let (tried, too_big): (Vec<&Setting>, Vec<&Setting>) = SETTINGS
        .iter()
        .filter(|setting| !setting.goals(&options.goals).is_empty())
        .partition(|setting| setting.cores <= of_each.max(1));
    for setting in too_big {
        let needs = 2 * setting.cores;
        found.notes.push(format!(
            "{} was not tried: it needs {needs} cores, {} for each side, and this process may use {}",
            setting.name,
            setting.cores,
            machine::allowed().len()
        ));
    }
    for (index, setting) in tried.iter().enumerate() {
        let left = tried[index..]
            .iter()
            .map(|setting| measurements(setting, &found.settings, options))
            .sum();
        match search.setting(setting, &found.settings, options, left) {
            Ok(decision) => {
                if decision.is_change() {
                    found.settings = setting.with(&found.settings, &decision.recommended);
                }
                found.decisions.push(decision);
            }
            Err(why) => search.notes.push(format!("{} was not tried: {why}", setting.name)),
        }
    }
    found.notes.append(&mut search.notes);
    found
}

/// Measurements of one value of a setting.
struct ValueRuns {
    value: String,
    /// Figures by goal and round.
    figures: Vec<Vec<f64>>,
    /// Error that ended the measurements.
    failure: Option<String>,
}

impl ValueRuns {
    fn of(value: String, goals: usize) -> Self {
        Self { value, figures: vec![Vec::new(); goals], failure: None }
    }
}

/// Returns the number of measurements that a setting takes.
fn measurements(setting: &Setting, settings: &Settings, options: &Options) -> usize {
    setting.candidates(settings).len() * setting.goals(&options.goals).len() * options.runs
}

struct Search<'a> {
    spawner: &'a Spawner,
    cores: Cores,
    began: Instant,
    ends: Duration,
    overhead: Duration,
    progress: Progress,
    notes: Vec<String>,
}

impl Search<'_> {
    /// Compares all values of a setting. `left` is the number of measurements that remain, this setting included.
    /// Returns the reason if they could not be compared.
    fn setting(
        &mut self,
        setting: &Setting,
        settings: &Settings,
        options: &Options,
        left: usize,
    ) -> Result<Decision, String> {
        const LATE: &str = "the time limit was reached";
        let goals = setting.goals(&options.goals);
        let mut runs: Vec<ValueRuns> = setting
            .candidates(settings)
            .into_iter()
            .map(|value| ValueRuns::of(value, goals.len()))
            .collect();
        let each = self.time_for_each(left).ok_or(LATE)?;
        let cores = self.cores_for(setting, settings);
        let in_a_round = u32::try_from(runs.len() * goals.len()).unwrap_or(u32::MAX);
        for round in 0..options.runs {
            if self.is_over((each + self.overhead) * in_a_round) {
                if round < MIN_ROUNDS {
                    return Err(LATE.to_owned());
                }
                break;
            }
            for turn in 0..runs.len() {
                // Each round begins with another value, so that disturbances affect all values alike.
                let index = (round + turn) % runs.len();
                let runs = &mut runs[index];
                let what = format!(
                    "round {} of {}: {} = {}",
                    round + 1,
                    options.runs,
                    setting.name,
                    runs.value
                );
                self.progress
                    .done(self.began.elapsed().as_secs_f64() / self.ends.as_secs_f64(), &what);
                self.measure_value(runs, &goals, &setting.with(settings, &runs.value), each, cores);
            }
            // All other values are compared with the first one.
            if let Some(failure) = &runs[0].failure {
                return Err(format!("the current value failed: {failure}"));
            }
        }
        for ValueRuns { value, failure, .. } in &runs {
            let failure =
                failure.iter().map(|it| format!("{} = {value} was excluded: {it}", setting.name));
            self.notes.extend(failure);
        }
        runs.retain(|runs| runs.failure.is_none());
        let others = runs.len() - 1;
        let candidates = runs.iter().enumerate().map(|(index, own)| {
            let effect = |(goal, name): (usize, &Goal)| {
                let base = (index > 0).then(|| &runs[0].figures[goal][..]);
                Effect::of(*name, &own.figures[goal], base, others)
            };
            let effects = goals.iter().enumerate().map(effect).collect();
            Candidate { value: own.value.clone(), effects }
        });
        Ok(Decision::between(setting.name, candidates.collect()))
    }

    /// Measures a value for each goal, unless an earlier measurement failed.
    fn measure_value(
        &mut self,
        runs: &mut ValueRuns,
        goals: &[Goal],
        settings: &Settings,
        each: Duration,
        cores: Cores,
    ) {
        for (goal, figures) in goals.iter().zip(&mut runs.figures) {
            if runs.failure.is_some() {
                return;
            }
            match self.measure(*goal, settings, each, cores) {
                Ok(figure) => figures.push(figure),
                Err(error) => runs.failure = Some(error.to_string()),
            }
        }
    }

    /// Returns the cores of both sides: one for each, or any core if the engine may need a second one.
    fn cores_for(&self, setting: &Setting, settings: &Settings) -> Cores {
        let has_engine = matches!(settings.engine, Some(Engine::Dedicated { .. }));
        if has_engine || setting.cores > 1 {
            Cores { client: None, server: None }
        } else {
            self.cores
        }
    }

    /// Returns the duration of each measurement if `left` remain; `None` if the time is over.
    fn time_for_each(&self, left: usize) -> Option<Duration> {
        let time = self.ends.checked_sub(self.began.elapsed())?;
        let each = time / u32::try_from(left.max(1)).ok()?;
        // A tenth is warm-up.
        let counts = each.saturating_sub(self.overhead).mul_f64(0.9);
        Some(counts.clamp(MIN_MEASURE, MAX_MEASURE))
    }

    /// Returns whether `more` would exceed the time limit.
    fn is_over(&self, more: Duration) -> bool {
        self.began.elapsed() + more > self.ends
    }

    fn measure(
        &mut self,
        goal: Goal,
        settings: &Settings,
        counts: Duration,
        cores: Cores,
    ) -> Result<f64, Error> {
        let experiment = goal.experiment();
        let usual = (experiment.defaults)();
        let poll =
            apus_contenders::contender::poll_on(self.cores, settings.poll.unwrap_or_default());
        let plan = Plan {
            size: usual.size,
            outstanding: usual.outstanding,
            poll,
            settings: settings.clone(),
            warmup: counts / 10,
            measure: counts,
            seed: usual.repetition.seed,
            raw: false,
        };
        let began = Instant::now();
        let figures = experiment.apus_alone(&plan, self.spawner, cores)?;
        let took = began.elapsed().saturating_sub(counts.mul_f64(1.1));
        // Moving average of the overhead.
        self.overhead = (self.overhead + took) / 2;
        let figure = figures.into_iter().find(|(name, _)| *name == goal.figure());
        let value = figure
            .map(|(_, reading)| reading.value())
            .filter(|value| value.is_finite() && *value > 0.0);
        value.ok_or_else(|| Error::Option {
            option: "seconds",
            problem: format!(
                "no call was completed in the measured time for {goal}; try more seconds"
            ),
        })
    }
}
