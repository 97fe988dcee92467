//! In which order are settings tried, and how long may each take?

use std::time::{Duration, Instant};

use apus::{Poll, Settings};

use super::evidence::{Candidate, Decision, Effect};
use super::options::{Goal, Options};
use super::setting::{SETTINGS, Setting};
use crate::contender::Plan;
use crate::error::Error;
use crate::machine::{self, Cores};
use crate::process::Host;
use crate::progress::Progress;

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
pub(super) fn run(options: &Options, host: &Host, cores: Cores) -> Result<Found, Error> {
    let mut search = Search {
        host,
        cores,
        began: Instant::now(),
        ends: Duration::from_secs_f64(options.seconds),
        overhead: OVERHEAD,
        progress: Progress::of_whole(),
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
        match search.setting(setting, &found.settings, options, left)? {
            Some(decision) => {
                found.settings = setting.with(&found.settings, &decision.taken);
                found.decisions.push(decision);
            }
            None => found.notes.push(format!("{} was not tried: the time was over", setting.name)),
        }
    }
    // What is as by default need not be in the file.
    let usual = Settings::default();
    if found.settings.poll == Some(Poll::default()) {
        found.settings.poll = usual.poll;
    }
    Ok(found)
}

/// Measurements that a setting takes.
fn measurements(setting: &Setting, settings: &Settings, options: &Options) -> usize {
    setting.candidates(settings).len() * setting.goals(&options.goals).len() * options.runs
}

struct Search<'a> {
    host: &'a Host,
    cores: Cores,
    began: Instant,
    ends: Duration,
    overhead: Duration,
    progress: Progress,
}

impl Search<'_> {
    /// Tries all values of a setting; `None` if there is no time for it. `left` measurements are to come.
    fn setting(
        &mut self,
        setting: &Setting,
        settings: &Settings,
        options: &Options,
        left: usize,
    ) -> Result<Option<Decision>, Error> {
        let goals = setting.goals(&options.goals);
        let values = setting.candidates(settings);
        let Some(each) = self.time_for_each(left) else { return Ok(None) };
        let mut figures = vec![vec![Vec::new(); goals.len()]; values.len()];
        for round in 0..options.runs {
            if self.is_over(each * u32::try_from(values.len() * goals.len()).unwrap_or(u32::MAX)) {
                if round < FEWEST {
                    return Ok(None);
                }
                break;
            }
            for turn in 0..values.len() {
                // Each round begins with another one, so that whatever the machine does meets all of them.
                let index = (round + turn) % values.len();
                let what = format!(
                    "round {} of {}: {} = {}",
                    round + 1,
                    options.runs,
                    setting.name,
                    values[index]
                );
                let tried = setting.with(settings, &values[index]);
                for (goal, figures) in goals.iter().zip(&mut figures[index]) {
                    self.progress
                        .done(self.began.elapsed().as_secs_f64() / self.ends.as_secs_f64(), &what);
                    figures.push(self.measure(*goal, &tried, each)?);
                }
            }
        }
        let candidates = values.iter().enumerate().map(|(index, value)| {
            let effects = goals.iter().enumerate().map(|(goal, name)| {
                let base = (index > 0).then(|| &figures[0][goal][..]);
                Effect::of(*name, &figures[index][goal], base)
            });
            Candidate { value: value.clone(), effects: effects.collect() }
        });
        Ok(Some(Decision::between(setting.name, candidates.collect())))
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
    fn is_over(&self, counts: Duration) -> bool {
        self.began.elapsed() + counts > self.ends
    }

    fn measure(&mut self, goal: Goal, settings: &Settings, counts: Duration) -> Result<f64, Error> {
        let experiment = goal.experiment();
        let usual = (experiment.defaults)();
        let poll = self.cores.poll(settings.poll.unwrap_or_default());
        let plan = Plan {
            size: usual.size,
            outstanding: usual.outstanding,
            poll,
            settings: settings.clone(),
            warmup: counts / 10,
            measure: counts,
            seed: usual.seed,
        };
        // An engine of its own needs a core of its own.
        let cores = match settings.engine {
            Some(apus::Engine::Dedicated { .. }) => Cores { client: None, server: None },
            _ => self.cores,
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
