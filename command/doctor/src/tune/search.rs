//! Search: order of the settings, and time for each measurement.

use std::time::{Duration, Instant};

use apus::{Engine, Settings};

use super::evidence::{Candidate, Decision, Effect};
use super::options::{Goal, TuneOptions};
use super::setting::{SETTINGS, Setting};
use apus_measure::error::Error;
use apus_measure::machine::{self, Cores};
use apus_measure::plan::{Plan, poll_on};
use apus_measure::process::Spawner;
use apus_measure::repeat::Repeater;
use apus_report::progress::Progress;

/// Result of the search.
pub(super) struct SearchResult {
    pub(super) settings: Settings,
    pub(super) decisions: Vec<Decision>,
    pub(super) notes: Vec<String>,
    /// Record of the measurements.
    pub(super) repeater: Repeater,
}

/// Initial estimate for starting and stopping both sides.
const OVERHEAD: Duration = Duration::from_millis(150);

/// Minimum and maximum duration of a measurement. Chosen by us: thousands of calls, and an end to
/// the reduction of noise.
const MIN_MEASURE: Duration = Duration::from_millis(30);
const MAX_MEASURE: Duration = Duration::from_secs(3);

/// Minimum number of rounds for a decision.
const MIN_ROUNDS: usize = 3;

/// Compares settings until the time limit.
///
/// # Errors
///
/// An error that another measurement cannot change.
pub(super) fn run(
    options: &TuneOptions,
    spawner: &Spawner,
    cores: Cores,
) -> Result<SearchResult, Error> {
    let all = SETTINGS.iter().map(|setting| measurements(setting, &options.settings, options));
    let repeater = Repeater::of(all.sum(), Progress::of_whole());
    let mut search = Search {
        spawner,
        cores,
        began: Instant::now(),
        ends: Duration::from_secs_f64(options.seconds),
        overhead: OVERHEAD,
        repeater,
        has_decided: false,
        notes: Vec::new(),
    };
    let mut settings = options.settings.clone();
    let (mut decisions, mut notes) = (Vec::new(), Vec::new());
    let of_each = machine::allowed().len() / 2;
    let (tried, too_big): (Vec<&Setting>, Vec<&Setting>) = SETTINGS
        .iter()
        .filter(|setting| !setting.goals(&options.goals).is_empty())
        .partition(|setting| setting.cores <= of_each.max(1));
    for setting in too_big {
        let needs = 2 * setting.cores;
        notes.push(format!(
            "{} was not tried: it needs {needs} cores, {} for each side, and this process may use {}",
            setting.name,
            setting.cores,
            machine::allowed().len()
        ));
    }
    for (index, setting) in tried.iter().enumerate() {
        let left =
            tried[index..].iter().map(|setting| measurements(setting, &settings, options)).sum();
        match search.setting(setting, &settings, options, left)? {
            Ok(decision) => {
                if decision.is_change() {
                    settings = setting.with(&settings, &decision.recommended);
                }
                search.has_decided = true;
                decisions.push(decision);
            }
            Err(why) => search.notes.push(format!("{} was not tried: {why}", setting.name)),
        }
    }
    notes.append(&mut search.notes);
    Ok(SearchResult { settings, decisions, notes, repeater: search.repeater })
}

/// Measurements of one value of a setting.
struct ValueRuns {
    value: String,
    /// Figures by goal, with the numbers of their rounds. A lost measurement has no figure.
    figures: Vec<Vec<(usize, f64)>>,
}

impl ValueRuns {
    fn of(value: String, goals: usize) -> Self {
        Self { value, figures: vec![Vec::new(); goals] }
    }

    /// Returns whether each goal has a figure.
    fn is_measured(&self) -> bool {
        self.figures.iter().all(|figures| !figures.is_empty())
    }
}

/// Returns the number of measurements needed for a setting.
fn measurements(setting: &Setting, settings: &Settings, options: &TuneOptions) -> usize {
    setting.candidates(settings).len() * setting.goals(&options.goals).len() * options.runs
}

struct Search<'a> {
    spawner: &'a Spawner,
    cores: Cores,
    began: Instant,
    ends: Duration,
    overhead: Duration,
    repeater: Repeater,
    /// Whether the values of a setting have been compared.
    has_decided: bool,
    notes: Vec<String>,
}

impl Search<'_> {
    /// Compares all values of a setting. `left` is the number of remaining measurements, including
    /// this setting's. Returns the reason if they could not be compared.
    ///
    /// # Errors
    ///
    /// An error that another measurement cannot change.
    fn setting(
        &mut self,
        setting: &Setting,
        settings: &Settings,
        options: &TuneOptions,
        left: usize,
    ) -> Result<Result<Decision, String>, Error> {
        const LATE: &str = "the time limit was reached";
        let goals = setting.goals(&options.goals);
        let mut runs: Vec<ValueRuns> = setting
            .candidates(settings)
            .into_iter()
            .map(|value| ValueRuns::of(value, goals.len()))
            .collect();
        let Some(each) = self.time_for_each(left) else { return Ok(Err(LATE.to_owned())) };
        let cores = self.cores_for(setting, settings);
        let in_a_round = u32::try_from(runs.len() * goals.len()).unwrap_or(u32::MAX);
        for round in 0..options.runs {
            // The first decision always gets its rounds: a busy machine multiplies the overhead,
            // and a search that has measured must not end without a result.
            let is_enough = round >= MIN_ROUNDS;
            if (is_enough || self.has_decided) && self.is_over((each + self.overhead) * in_a_round)
            {
                if is_enough {
                    break;
                }
                return Ok(Err(LATE.to_owned()));
            }
            for turn in 0..runs.len() {
                // Each round starts with another value, so that disturbances affect all values
                // alike.
                let index = (round + turn) % runs.len();
                let runs = &mut runs[index];
                let what = format!(
                    "round {} of {}: {} = {}",
                    round + 1,
                    options.runs,
                    setting.name,
                    runs.value
                );
                self.repeater
                    .progress()
                    .done(self.began.elapsed().as_secs_f64() / self.ends.as_secs_f64(), &what);
                let with_value = setting.with(settings, &runs.value);
                for (goal, figures) in goals.iter().zip(&mut runs.figures) {
                    let row = format!("{}={}", setting.name, runs.value);
                    let phase = format!("{goal}, round {}", round + 1);
                    let (overhead, repeater) = (&mut self.overhead, &self.repeater);
                    let measure = Measure { spawner: self.spawner, cores: self.cores, each };
                    let figure = repeater.attempt(&row, &phase, || {
                        measure.figure(*goal, &with_value, cores, overhead)
                    })?;
                    figures.extend(figure.map(|figure| (round, figure)));
                }
            }
        }
        // All other values are compared with the first. The reasons are in the record of the
        // measurements.
        if !runs[0].is_measured() {
            return Ok(Err("the current value could not be measured".to_owned()));
        }
        runs.retain(ValueRuns::is_measured);
        let others = runs.len() - 1;
        let candidates = runs.iter().enumerate().map(|(index, own)| {
            let effect = |(goal, name): (usize, &Goal)| {
                let base = (index > 0).then(|| &runs[0].figures[goal][..]);
                Effect::of(*name, &own.figures[goal], base, others)
            };
            let effects = goals.iter().enumerate().map(effect).collect();
            Candidate { value: own.value.clone(), effects }
        });
        Ok(Ok(Decision::between(setting.name, candidates.collect())))
    }

    /// Returns the cores of both sides: one for each, or any core if the engine may need a second
    /// core.
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
}

/// Parameters of one measurement.
struct Measure<'a> {
    spawner: &'a Spawner,
    /// Cores of both sides without further setup.
    cores: Cores,
    /// Measured time.
    each: Duration,
}

impl Measure<'_> {
    /// Returns the figure of a goal with these settings, and updates the average overhead of a
    /// measurement.
    fn figure(
        &self,
        goal: Goal,
        settings: &Settings,
        cores: Cores,
        overhead: &mut Duration,
    ) -> Result<f64, Error> {
        let (size, outstanding) = goal.load();
        let plan = Plan {
            size,
            outstanding,
            poll: poll_on(self.cores, settings.poll.unwrap_or_default()),
            settings: settings.clone(),
            warmup: self.each / 10,
            measure: self.each,
            seed: 1,
            raw: false,
            keys: None,
        };
        let began = Instant::now();
        let pair = goal.exchange().measure(&plan, self.spawner, cores)?;
        let took = began.elapsed().saturating_sub(self.each.mul_f64(1.1));
        // Moving average.
        *overhead = (*overhead + took) / 2;
        let value = goal.value(&pair);
        if value.is_finite() && value > 0.0 {
            return Ok(value);
        }
        let each = self.each;
        Err(Error::Peer(format!(
            "no call was completed in {each:?} for {goal}; try more --seconds"
        )))
    }
}
