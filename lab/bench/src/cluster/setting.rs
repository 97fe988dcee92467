//! Settings: options and parameters by name, with the values to measure.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use apus::PollMode;
use apus_workload::units;

use super::options::{ClusterOptions, Link};
use crate::contenders::transport;
use apus_testbed::error::Error;

/// A setting, and its values: `NAME=V1,V2`. The name is a parameter of apus or one of
/// [`Setting::OPTIONS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    name: String,
    /// Values as written; at least one.
    values: Vec<String>,
}

impl Setting {
    /// Settings that are options of the benchmark instead of parameters of apus. `poll_usecs` is
    /// how long threads spin before they sleep; with 0 they sleep immediately.
    pub const OPTIONS: [&str; 10] = [
        "buffer",
        "client_max",
        "link",
        "load",
        "loss",
        "mtu",
        "nodes",
        "poll_usecs",
        "processes",
        "receivers",
    ];

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its values, as they were written.
    #[must_use]
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Returns whether it affects only apus.
    #[must_use]
    pub fn is_parameter(&self) -> bool {
        !Self::OPTIONS.contains(&self.name.as_str())
    }

    /// Returns the value that options have for it.
    pub(super) fn value_of(&self, options: &ClusterOptions) -> String {
        let fabric = &options.fabric;
        match self.name.as_str() {
            "buffer" => fabric.buffer.to_string(),
            "client_max" => options.client_max.to_string(),
            "link" => options.link.to_string(),
            "load" => options.load.to_string(),
            "loss" => fabric.loss.to_string(),
            "mtu" => fabric.mtu.to_string(),
            "nodes" => fabric.nodes.to_string(),
            "poll_usecs" => match options.repetition.poll {
                PollMode::Hybrid(time) => time.as_micros().to_string(),
                PollMode::Block => "0".to_owned(),
                poll => poll.to_string(),
            },
            "processes" => options.processes.to_string(),
            "receivers" => options.receivers.to_string(),
            parameter => options.parameter(parameter).to_string(),
        }
    }

    /// Sets one of its values in the options.
    pub(super) fn apply(&self, value: &str, options: &mut ClusterOptions) {
        set(&self.name, value, options).expect("values are tried when they are read");
    }

    /// Sets the single value of each of these settings in the options.
    ///
    /// # Errors
    ///
    /// A setting has several values.
    pub fn apply_all(settings: &[Self], options: &mut ClusterOptions) -> Result<(), Error> {
        for setting in settings {
            let [value] = &setting.values[..] else {
                let problem = format!(
                    "{setting}: only one value can be measured at a time; `apus-lab bench sweep` measures all of them"
                );
                return Err(Error::Option { option: "param", problem });
            };
            setting.apply(value, options);
        }
        Ok(())
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.name, self.values.join(","))
    }
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "write NAME=VALUE or NAME=VALUE,VALUE, like poll_usecs=0,50";
        let (name, values) = text.split_once('=').ok_or(form)?;
        let mut seen = BTreeSet::new();
        for value in values.split(',') {
            set(name, value, &mut ClusterOptions::default())?;
            if !seen.insert(value) {
                return Err(format!("{name}={value} is given twice"));
            }
        }
        Ok(Self { name: name.to_owned(), values: values.split(',').map(str::to_owned).collect() })
    }
}

/// Sets an option or a parameter of apus. Consistency with the others is checked elsewhere.
fn set(name: &str, value: &str, options: &mut ClusterOptions) -> Result<(), String> {
    fn number<T: FromStr>(name: &str, value: &str, example: &str) -> Result<T, String> {
        let wrong = |_| format!("{name} is a number, not `{value}`; try {name}={example}");
        value.parse().map_err(wrong)
    }
    let fabric = &mut options.fabric;
    match name {
        "buffer" => fabric.buffer = units::bytes(value)?,
        "client_max" => options.client_max = number(name, value, "200")?,
        "link" => options.link = Link::Rate(units::rate(value)?),
        "load" => options.load = number(name, value, "0.8")?,
        "loss" => fabric.loss = number(name, value, "0.001")?,
        "mtu" => fabric.mtu = number(name, value, "1500")?,
        "nodes" => fabric.nodes = number(name, value, "8")?,
        "poll_usecs" => options.repetition.poll = poll(number(name, value, "50")?),
        "processes" => options.processes = number(name, value, "2")?,
        "receivers" => options.receivers = number(name, value, "2")?,
        _ => {
            let parameter = transport::parameters().find(|each| each.name == name);
            let value = parameter.ok_or_else(|| unknown(name))?.parse(value)?;
            options.parameters.retain(|(each, _)| each != name);
            options.parameters.push((name.to_owned(), value));
        }
    }
    Ok(())
}

/// Returns the error message for an unknown name.
fn unknown(name: &str) -> String {
    let parameters: Vec<&str> = transport::parameters().map(|each| each.name).collect();
    let (parameters, options) = (parameters.join(", "), Setting::OPTIONS.join(", "));
    format!("apus has no parameter `{name}`; it has {parameters}; and the benchmark has {options}")
}

/// Returns the mode that spins for `micros` microseconds before it sleeps.
const fn poll(micros: u64) -> PollMode {
    match micros {
        0 => PollMode::Block,
        micros => PollMode::Hybrid(Duration::from_micros(micros)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(settings: &[&str]) -> ClusterOptions {
        let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
        let mut options = ClusterOptions::default();
        Setting::apply_all(&settings, &mut options).unwrap();
        options
    }

    #[test]
    fn options_and_parameters_have_names() {
        let text = "buffer=200kB client_max=50 link=20mbit load=0.5 loss=0.01 mtu=9000 nodes=3 poll_usecs=0 \
                    processes=4 receivers=2 burst_bytes=3000 receive_batch=4";
        let settings: Vec<&str> = text.split_whitespace().collect();
        let options = options(&settings);
        assert_eq!(
            (options.fabric.buffer, options.fabric.mtu, options.fabric.nodes),
            (200_000, 9000, 3)
        );
        assert_eq!((options.client_max, options.repetition.poll), (50, PollMode::Block));
        assert_eq!((options.processes, options.receivers), (4, 2));
        assert_eq!((options.load, options.fabric.loss), (0.5, 0.01));
        let parameters = [("burst_bytes", 3000), ("receive_batch", 4)];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(options.parameters, parameters);
        assert!(matches!(options.link, Link::Rate(rate) if rate.mbps() == 20));
        options.check().unwrap();
        let named: Vec<&str> =
            settings[..10].iter().map(|each| each.split_once('=').unwrap().0).collect();
        assert_eq!(named, Setting::OPTIONS);
    }

    #[test]
    fn every_setting_has_a_value_in_options() {
        let text =
            ["buffer=5000", "client_max=50", "link=20mbit", "load=0.5", "loss=0.01", "mtu=9000"];
        let more = ["nodes=3", "poll_usecs=7", "processes=2", "receivers=2", "burst_bytes=3000"];
        for text in text.into_iter().chain(more).chain(["receive_batch=4"]) {
            let setting: Setting = text.parse().unwrap();
            assert_eq!(format!("{}={}", setting.name, setting.value_of(&options(&[text]))), text);
            assert_ne!(setting.value_of(&ClusterOptions::default()), setting.values[0], "{text}");
        }
    }

    #[test]
    fn the_last_value_of_a_parameter_counts() {
        let options = options(&["max_overcommit=2", "max_overcommit=3", "poll_usecs=20"]);
        assert_eq!(options.parameters, [("max_overcommit".to_owned(), 3)]);
        assert_eq!(options.repetition.poll, PollMode::Hybrid(Duration::from_micros(20)));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right() {
        let error = |text: &str| text.parse::<Setting>().unwrap_err();
        assert!(error("load").contains("NAME=VALUE"));
        assert!(error("load=much").contains("try load=0.8"));
        assert!(error("load=0.5,0.5").contains("given twice"));
        assert!(error("link=fast").contains("try 10gbit"));
        assert!(error("max_overcommit=0").contains("max_overcommit is 1 to "));
        assert!(error("receive_batch=0").contains("try receive_batch=32"));
        let unknown = error("overcommit=1");
        assert!(unknown.contains("`overcommit`; it has unsched_bytes, "), "{unknown}");
        assert!(unknown.contains("and the benchmark has buffer, client_max"), "{unknown}");
        let several = [Setting::from_str("load=0.5,0.8").unwrap()];
        let problem =
            Setting::apply_all(&several, &mut ClusterOptions::default()).unwrap_err().to_string();
        assert!(problem.contains("apus-lab bench sweep"), "{problem}");
    }

    #[test]
    fn a_setting_is_written_as_it_is_read() {
        let setting: Setting = "buffer=100kB,1MB".parse().unwrap();
        assert_eq!(setting.to_string(), "buffer=100kB,1MB");
        assert!(!setting.is_parameter());
        assert!("grant_fifo_fraction=0,50".parse::<Setting>().unwrap().is_parameter());
    }
}
