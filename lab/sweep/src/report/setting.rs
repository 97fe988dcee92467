//! Settings: runs that differ in transport and seed alone.
//!
//! Transports are compared inside a setting, and the runs of a transport show how much of a figure
//! is chance.

use apus_report::result::rounded;
use apus_report::stats::Spread;
use serde_json::{Map, Value};

use crate::{Bin, Done, Figures, PointRecord, Queue, Slowdown};

/// Runs that differ in transport and seed alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its difference from the other settings, like `load=0.8`; empty if it is the only one.
    pub label: String,
    /// The configuration.
    pub config: Map<String, Value>,
    /// The transports.
    pub contenders: Vec<Contender>,
}

/// The runs of one transport.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// The transport.
    pub name: String,
    /// The results, one for each seed.
    pub runs: Vec<Figures>,
    /// Data packets that were simulated per second of this machine's time, for runs that ran here.
    pub speeds: Vec<f64>,
}

impl Setting {
    /// Returns the settings of these records, in their order. `done` are those that ran here.
    pub(super) fn all(records: &[PointRecord], done: &[Done]) -> Vec<Self> {
        let mut settings: Vec<Self> = Vec::new();
        for record in records {
            let known = settings.iter().position(|each| each.config == record.config);
            let setting = match known {
                Some(index) => &mut settings[index],
                None => {
                    let config = record.config.clone();
                    settings.push(Self { label: String::new(), config, contenders: Vec::new() });
                    settings.last_mut().expect("just pushed")
                }
            };
            let contender = setting.contender(&record.transport);
            contender.runs.push(record.result.clone());
            let here = done.iter().find(|done| done.record.index == record.index);
            contender.speeds.extend(here.map(|done| {
                let seconds = done.took.as_secs_f64().max(f64::MIN_POSITIVE);
                record.result.packets as f64 / seconds
            }));
        }
        label(&mut settings);
        settings
    }

    fn contender(&mut self, name: &str) -> &mut Contender {
        let index =
            self.contenders.iter().position(|each| each.name == name).unwrap_or_else(|| {
                let name = name.to_owned();
                self.contenders.push(Contender { name, runs: Vec::new(), speeds: Vec::new() });
                self.contenders.len() - 1
            });
        &mut self.contenders[index]
    }

    /// Returns the contender's name, followed by the setting's label if there are several settings.
    pub(super) fn name_of(&self, contender: &Contender) -> String {
        let name = &contender.name;
        if self.label.is_empty() { name.clone() } else { format!("{name} {}", self.label) }
    }

    /// Returns the offered load.
    #[must_use]
    pub fn load(&self) -> f64 {
        self.config.get("load").and_then(Value::as_f64).unwrap_or_default()
    }
}

/// Labels settings by their differences.
fn label(settings: &mut [Setting]) {
    let [first, others @ ..] = &*settings else { return };
    let flat = flat(&first.config);
    // `apus` follows from the others, and so does the number of messages.
    let follows = |name: &str| ["apus", "messages", "warm_up"].contains(&name);
    let differs = |name: &str, value: &Value| {
        others.iter().any(|other| self::flat(&other.config).get(name) != Some(value))
    };
    let names: Vec<String> = flat
        .iter()
        .filter(|(name, value)| !follows(name) && differs(name, value))
        .map(|(name, _)| name.clone())
        .collect();
    for setting in settings {
        let values = self::flat(&setting.config);
        let part = |name: &String| match (&name[..], &values[name]) {
            ("workload" | "topology", Value::String(value)) => value.clone(),
            (_, Value::String(value)) => format!("{name}={value}"),
            (_, value) => format!("{name}={value}"),
        };
        setting.label = names.iter().map(part).collect::<Vec<_>>().join(" ");
    }
}

/// Returns the configuration, with the parameters of apus that a sweep varies among the rest.
pub(super) fn flat(config: &Map<String, Value>) -> Map<String, Value> {
    let mut flat = Map::new();
    for (name, value) in config {
        match value {
            Value::Object(parameters) if name == "param" => flat.extend(parameters.clone()),
            value => {
                flat.insert(name.clone(), value.clone());
            }
        }
    }
    flat
}

impl Contender {
    /// Returns whether all runs reached a steady state.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        self.runs.iter().all(|run| run.slowdown.is_some())
    }

    /// Returns a figure over the runs.
    #[must_use]
    pub fn spread(&self, figure: impl Fn(&Figures) -> f64) -> Spread {
        Spread::over(&self.runs.iter().map(figure).collect::<Vec<_>>())
    }

    /// Returns a slowdown over the runs, if all of them reached a steady state.
    #[must_use]
    pub fn slowdown(&self, figure: impl Fn(&Slowdown) -> f64) -> Option<Spread> {
        let values: Option<Vec<f64>> =
            self.runs.iter().map(|run| run.slowdown.as_ref().map(&figure)).collect();
        values.map(|values| Spread::over(&values))
    }

    /// Returns the p99 of medium messages over the runs, if all of them have such messages and
    /// reached a steady state.
    #[must_use]
    pub fn medium(&self) -> Option<Spread> {
        let values: Option<Vec<f64>> =
            self.runs.iter().map(|run| run.slowdown.as_ref()?.medium_p99).collect();
        values.map(|values| Spread::over(&values))
    }

    /// Returns a queue's length over the runs, in KB, if the transport has queues.
    #[must_use]
    pub fn queue(&self, which: impl Fn(&Figures) -> Option<f64>) -> Option<Spread> {
        let values: Option<Vec<f64>> = self.runs.iter().map(which).collect();
        values.map(|values| Spread::over(&values))
    }

    /// Returns the queues, by their names: mean and longest over the runs.
    #[must_use]
    pub fn queues(&self) -> Option<[(Spread, Spread); 3]> {
        let both = |of: fn(&crate::Queues) -> Queue| {
            let mean = self.queue(|run| run.queues.as_ref().map(|queues| of(queues).mean))?;
            let max = self.queue(|run| run.queues.as_ref().map(|queues| of(queues).max))?;
            Some((mean, max))
        };
        Some([
            both(|queues| queues.tor_spine)?,
            both(|queues| queues.spine_tor)?,
            both(|queues| queues.tor_host)?,
        ])
    }

    /// Slowdown by size: medians over the runs, and the messages of all runs together. Empty
    /// without a steady state.
    #[must_use]
    pub fn by_size(&self) -> Vec<Bin> {
        let runs: Option<Vec<&[Bin]>> =
            self.runs.iter().map(|run| run.slowdown.as_ref().map(|all| &all.by_size[..])).collect();
        let Some(runs) = runs else { return Vec::new() };
        let bin = |index: usize| {
            let over = |figure: fn(&Bin) -> Option<f64>| {
                let values: Vec<f64> = runs.iter().filter_map(|run| figure(&run[index])).collect();
                (!values.is_empty()).then(|| rounded(Spread::over(&values).median))
            };
            Bin {
                count: runs.iter().map(|run| run[index].count).sum(),
                p50: over(|bin| bin.p50),
                p99: over(|bin| bin.p99),
                ..runs[0][index]
            }
        };
        (0..runs[0].len()).map(bin).collect()
    }

    /// Returns the reason for missing slowdowns, if they are missing.
    pub(super) fn trouble(&self, load: f64) -> Option<String> {
        let unsteady: Vec<&Figures> =
            self.runs.iter().filter(|run| run.slowdown.is_none()).collect();
        let worst = unsteady.iter().copied().max_by(|a, b| a.growth.total_cmp(&b.growth))?;
        let runs = match self.runs.len() {
            1 => String::new(),
            all => format!(" in {} of {all} runs", unsteady.len()),
        };
        Some(format!(
            "no steady state{runs}: what waited to be delivered grew by {:.1} % of what was handed over, and \
             {:.1} % would be no sign of trouble. The fabric carried {:.2} of {:.2}; it cannot carry more, \
             or the run was too short (--messages, --warm-up)",
            100.0 * worst.growth,
            100.0 * worst.allowed_growth,
            self.spread(|run| run.achieved_load).median,
            load,
        ))
    }
}
