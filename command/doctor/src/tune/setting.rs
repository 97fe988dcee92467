//! Settings of the search, and their values.
//!
//! These settings matter on a single host. Settings that depend on the network, for instance the
//! number of priorities or the granted bytes, are compared on the network with
//! `apus-lab bench sweep --launch ssh`.

use apus::{EndpointBuilder, Settings};

use super::options::Goal;

/// A setting and its values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// Name in configuration files.
    pub(super) name: &'static str,
    /// Values as in configuration files; the cheapest in cores and memory first.
    pub(super) values: &'static [&'static str],
    /// Goals that it can affect.
    goals: &'static [Goal],
    /// Number of cores needed by each side so that its threads do not compete.
    pub(super) cores: usize,
    /// Applies one of the values.
    pub(super) apply: fn(&mut Settings, &str),
    /// Reads the value from settings.
    pub(super) value: fn(&Settings) -> String,
}

/// All settings, the most effective first, since later settings are compared on top of its result.
pub(super) const SETTINGS: [Setting; 5] = [
    Setting {
        name: "poll",
        values: &["block", "hybrid=20", "hybrid", "hybrid=200", "spin"],
        goals: &[Goal::Latency, Goal::Rate, Goal::Throughput],
        cores: 1,
        apply: |settings, value| settings.poll = value.parse().ok(),
        value: |settings| settings.poll.unwrap_or_default().to_string(),
    },
    Setting {
        name: "engine",
        values: &["waiters", "dedicated"],
        goals: &[Goal::Latency, Goal::Rate, Goal::Throughput],
        cores: 2,
        apply: |settings, value| settings.engine = value.parse().ok(),
        value: |settings| settings.engine.unwrap_or_default().to_string(),
    },
    Setting {
        name: "receive_batch",
        values: &["8", "32", "128"],
        goals: &[Goal::Rate, Goal::Throughput],
        cores: 1,
        apply: |settings, value| settings.receive_batch = value.parse().ok(),
        value: |settings| {
            settings.receive_batch.unwrap_or(EndpointBuilder::RECEIVE_BATCH).to_string()
        },
    },
    Setting {
        name: "protocol.unsched_bytes_min",
        values: &["1500", "10000", "40000"],
        goals: &[Goal::Throughput],
        cores: 1,
        apply: |settings, value| parameter(settings, "unsched_bytes_min", value),
        value: |settings| settings.protocol.unsched_bytes_min().to_string(),
    },
    Setting {
        name: "protocol.burst_bytes",
        values: &["15000", "30000", "60000"],
        goals: &[Goal::Throughput],
        cores: 1,
        apply: |settings, value| parameter(settings, "burst_bytes", value),
        value: |settings| settings.protocol.burst_bytes().to_string(),
    },
];

/// Sets a protocol parameter; the values above are in its range.
fn parameter(settings: &mut Settings, name: &str, value: &str) {
    let number = value.parse().expect("a number, of those above");
    let builder = settings.protocol.to_builder().set(name, number).expect("a parameter's name");
    if let Ok(protocol) = builder.build() {
        settings.protocol = protocol;
    }
}

impl Setting {
    /// Returns the goals in `requested` that the setting can affect.
    pub(super) fn goals(&self, requested: &[Goal]) -> Vec<Goal> {
        requested.iter().copied().filter(|goal| self.goals.contains(goal)).collect()
    }

    /// Returns the values to compare; the current one is the first.
    pub(super) fn candidates(&self, settings: &Settings) -> Vec<String> {
        let now = (self.value)(settings);
        let others =
            self.values.iter().map(|value| (*value).to_owned()).filter(|value| *value != now);
        std::iter::once(now.clone()).chain(others).collect()
    }

    /// Returns the settings with another value of this one.
    pub(super) fn with(&self, settings: &Settings, value: &str) -> Settings {
        let mut settings = settings.clone();
        (self.apply)(&mut settings, value);
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_applied_and_the_default_is_included() {
        let usual = Settings::default();
        for setting in SETTINGS {
            for value in setting.values {
                let changed = setting.with(&usual, value);
                assert_eq!((setting.value)(&changed), *value, "{}", setting.name);
                let file: Settings = changed.toml().parse().unwrap();
                assert_eq!((setting.value)(&file), *value, "{}", setting.name);
            }
            let candidates = setting.candidates(&usual);
            assert_eq!(candidates[0], (setting.value)(&usual));
            assert_eq!(
                candidates.len(),
                setting.values.len(),
                "{}: the default is one of them",
                setting.name
            );
            assert!(!setting.goals(setting.goals).is_empty());
        }
    }

    #[test]
    fn a_custom_current_value_is_compared_too() {
        let own = Settings { receive_batch: Some(17), ..Settings::default() };
        let batch = SETTINGS.iter().find(|setting| setting.name == "receive_batch").unwrap();
        assert_eq!(batch.candidates(&own), ["17", "8", "32", "128"]);
    }
}
