//! In which order are settings tried, and how long may each take?

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

/// What was found out.
pub(super) struct Found {
    pub(super) settings: Settings,
    pub(super) decisions: Vec<Decision>,
    pub(super) notes: Vec<String>,
}

/// What starting and ending the two sides takes, until it is known better.
const OVERHEAD: Duration = Duration::from_millis(150);

/// What counts of a measurement, at least and at most. Ours: thousands of calls, and no more than noise settles in.
const SHORTEST: Duration = Duration::from_millis(30);
const LONGEST: Duration = Duration::from_secs(3);

/// Rounds without which nothing is concluded.
const FEWEST: usize = 3;

/// Tries all settings as long as there is time.
pub(super) fn run(options: &Options, host: &Spawner, cores: Cores) -> Found {
    let mut search = Search {
        host,
        cores,
        began: Instant::now(),
        ends: Duration::from_secs_f64(options.seconds),
        overhead: OVERHEAD,
        progress: Progress::of_whole(),
        notes: Vec::new(),
    };
    let mut found =
        Found { settings: options.settings.clone(), decisions: Vec::new(), notes: Vec::new() };
    let of_each = machine::allowed().len() / 2;
    let (tried, too_big): (Vec<&Setting>, Vec<&Setting>) = SETTINGS
        .iter()
        .filter(|setting| !setting.goals(&options.goals).is_empty())
        .partition(|setting| setting.cores <= of_each.max(1));
    for setting in too_big {
        let needs = 2 * setting.cores;
        found.notes.push(format!(
            "{} was not tried: it takes {needs} cores, {} for each side, and this process may use {}",
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
                if decision.is_a_change() {
                    found.settings = setting.with(&found.settings, &decision.taken);
                }
                found.decisions.push(decision);
            }
            Err(why) => search.notes.push(format!("{} was not tried: {why}", setting.name)),
        }
    }
    found.notes.append(&mut search.notes);
    found
}

/// What was measured of one value of a setting.
struct Turns {
    value: String,
    /// For each goal, one for each round.
    figures: Vec<Vec<f64>>,
    /// Why there are no more.
    failure: Option<String>,
}

impl Turns {
    fn of(value: String, goals: usize) -> Self {
        Self { value, figures: vec![Vec::new(); goals], failure: None }
    }
}

/// Measurements that a setting takes.
fn measurements(setting: &Setting, settings: &Settings, options: &Options) -> usize {
    setting.candidates(settings).len() * setting.goals(&options.goals).len() * options.runs
}

struct Search<'a> {
    host: &'a Spawner,
    cores: Cores,
    began: Instant,
    ends: Duration,
    overhead: Duration,
    progress: Progress,
    notes: Vec<String>,
}

impl Search<'_> {
    /// Tries all values of a setting; why not, if it could not. `left` measurements are to come.
    fn setting(
        &mut self,
        setting: &Setting,
        settings: &Settings,
        options: &Options,
        left: usize,
    ) -> Result<Decision, String> {
        const LATE: &str = "the time was over";
        let goals = setting.goals(&options.goals);
        let mut turns: Vec<Turns> = setting
            .candidates(settings)
            .into_iter()
            .map(|value| Turns::of(value, goals.len()))
            .collect();
        let each = self.time_for_each(left).ok_or(LATE)?;
        let cores = self.cores_for(setting, settings);
        let in_a_round = u32::try_from(turns.len() * goals.len()).unwrap_or(u32::MAX);
        for round in 0..options.runs {
            if self.is_over((each + self.overhead) * in_a_round) {
                if round < FEWEST {
                    return Err(LATE.to_owned());
                }
                break;
            }
            for turn in 0..turns.len() {
                // Each round begins with another one, so that whatever the machine does meets all of them.
                let turns_of = (round + turn) % turns.len();
                let turns = &mut turns[turns_of];
                let what = format!(
                    "round {} of {}: {} = {}",
                    round + 1,
                    options.runs,
                    setting.name,
                    turns.value
                );
                self.progress
                    .done(self.began.elapsed().as_secs_f64() / self.ends.as_secs_f64(), &what);
                self.take(turns, &goals, &setting.with(settings, &turns.value), each, cores);
            }
            // All others are held against it.
            if let Some(failure) = &turns[0].failure {
                return Err(format!("with what is in force: {failure}"));
            }
        }
        for Turns { value, failure, .. } in &turns {
            let failure =
                failure.iter().map(|it| format!("{} = {value} is left out: {it}", setting.name));
            self.notes.extend(failure);
        }
        turns.retain(|turns| turns.failure.is_none());
        let others = turns.len() - 1;
        let candidates = turns.iter().enumerate().map(|(index, own)| {
            let effect = |(goal, name): (usize, &Goal)| {
                let base = (index > 0).then(|| &turns[0].figures[goal][..]);
                Effect::of(*name, &own.figures[goal], base, others)
            };
            let effects = goals.iter().enumerate().map(effect).collect();
            Candidate { value: own.value.clone(), effects }
        });
        Ok(Decision::between(setting.name, candidates.collect()))
    }

    /// Measures a value for each goal, unless that has failed before.
    fn take(
        &mut self,
        turns: &mut Turns,
        goals: &[Goal],
        settings: &Settings,
        each: Duration,
        cores: Cores,
    ) {
        for (goal, figures) in goals.iter().zip(&mut turns.figures) {
            if turns.failure.is_some() {
                return;
            }
            match self.measure(*goal, settings, each, cores) {
                Ok(figure) => figures.push(figure),
                Err(error) => turns.failure = Some(error.to_string()),
            }
        }
    }

    /// Where the sides run: each on a core of its own, or anywhere if an engine may need another one.
    fn cores_for(&self, setting: &Setting, settings: &Settings) -> Cores {
        let has_engine = matches!(settings.engine, Some(Engine::Dedicated { .. }));
        if has_engine || setting.cores > 1 {
            Cores { client: None, server: None }
        } else {
            self.cores
        }
    }

    /// What may count of each measurement if so many are to come; `None` if there is no time for that.
    fn time_for_each(&self, left: usize) -> Option<Duration> {
        let time = self.ends.checked_sub(self.began.elapsed())?;
        let each = time / u32::try_from(left.max(1)).ok()?;
        // A tenth is warm-up.
        let counts = each.saturating_sub(self.overhead).mul_f64(0.9);
        Some(counts.clamp(SHORTEST, LONGEST))
    }

    /// Whether so much more would be too late.
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
            seed: usual.seed,
            raw: false,
        };
        let began = Instant::now();
        let figures = experiment.apus_alone(&plan, self.host, cores)?;
        let took = began.elapsed().saturating_sub(counts.mul_f64(1.1));
        // Half of what it was, half of what it is.
        self.overhead = (self.overhead + took) / 2;
        let figure = figures.into_iter().find(|(name, _)| *name == goal.figure());
        let value = figure
            .map(|(_, reading)| reading.value())
            .filter(|value| value.is_finite() && *value > 0.0);
        value.ok_or_else(|| Error::Option {
            option: "seconds",
            problem: format!("nothing was completed in the time that counts for {goal}; try more"),
        })
    }
}
