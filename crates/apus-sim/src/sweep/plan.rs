//! Which points does a sweep have?

use std::fmt::Write;

use apus_lab::result::COMMIT;
use apus_proto::Config;
use apus_workload::Workload;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::options::{Options, OptionsError, Transport};
use super::words;
use crate::experiment::{Carrier, Experiment};
use crate::fabric::Settings;
use crate::topology::Shape;

/// All points of a sweep, in order: the seed changes fastest, then the transport, then parameters, topology,
/// load and workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Sixteen hexadecimal digits that stand for all experiments of the plan and for the program that
    /// runs them: its version and commit.
    pub name: String,
    /// Its points.
    pub points: Vec<Point>,
}

/// One run of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its position in the plan.
    pub index: u32,
    /// Who carries the messages.
    pub transport: Transport,
    /// What the point has in common with those that differ in transport and seed alone, for readers.
    pub config: Map<String, Value>,
    /// What runs.
    pub experiment: Experiment,
}

/// Most points of a plan. Source: ours; a month of machine time, and a slip of the pen more often than not.
const MOST_POINTS: usize = 100_000;
/// Pairs of hosts up to which all are made known to each other before the load begins. Source: ours; more
/// would take longer than most experiments.
const MOST_GREETINGS: u64 = 300_000;

impl Plan {
    /// The plan for these options.
    ///
    /// # Errors
    ///
    /// An option has a value that cannot be, or there are too many points.
    pub fn new(options: &Options) -> Result<Self, OptionsError> {
        options.check()?;
        let lists = [
            options.workloads.len(),
            options.loads.len(),
            options.shapes.len(),
            options.transports.len(),
            options.seeds().len(),
        ];
        let values = options.parameters.iter().map(|axis| axis.values.len());
        let count = lists.into_iter().chain(values).fold(1, usize::saturating_mul);
        if !(1..=MOST_POINTS).contains(&count) {
            let problem = format!("the lists span {count} points; 1 to {MOST_POINTS} can be run");
            return Err(OptionsError::new("param", problem));
        }
        let mut points = Vec::with_capacity(count);
        for workload in &options.workloads {
            for load in &options.loads {
                for shape in &options.shapes {
                    for parameters in combinations(options) {
                        let at = Setting { options, workload, load: *load, shape: *shape };
                        at.points(&parameters, &mut points)?;
                    }
                }
            }
        }
        Ok(Self { name: name(&points), points })
    }
}

/// All combinations of values of parameters.
fn combinations(options: &Options) -> Vec<Vec<(&'static str, u64)>> {
    options.parameters.iter().fold(vec![Vec::new()], |all, axis| {
        let with = |before: &Vec<(&'static str, u64)>, value: u64| {
            before.iter().copied().chain([(axis.name, value)]).collect()
        };
        all.iter().flat_map(|each| axis.values.iter().map(|value| with(each, *value))).collect()
    })
}

/// Everything but parameters, transport and seed.
struct Setting<'a> {
    options: &'a Options,
    workload: &'a Workload,
    load: f64,
    shape: Shape,
}

impl Setting<'_> {
    /// Adds one point per transport and seed.
    fn points(
        &self,
        parameters: &[(&'static str, u64)],
        points: &mut Vec<Point>,
    ) -> Result<(), OptionsError> {
        let options = self.options;
        let preset = options.preset.config(self.workload);
        let mut builder = preset.to_builder();
        for (name, value) in parameters {
            builder = builder.set(name, *value).map_err(|error| wrong(&error))?;
        }
        let config = builder.build().map_err(|error| wrong(&error))?;
        let longest = u64::from(self.workload.sizes().largest());
        if longest > config.max_message() {
            let problem = format!(
                "a message of {longest} bytes is longer than max_message; try --param max_message={longest}"
            );
            return Err(OptionsError::new("workload", problem));
        }
        let described = self.described(&config, parameters);
        for transport in &options.transports {
            for seed in options.seeds() {
                let carrier = match transport {
                    Transport::Apus => Carrier::Apus(config.clone()),
                    Transport::Oracle => Carrier::Oracle,
                };
                points.push(Point {
                    index: points.len() as u32,
                    transport: *transport,
                    config: described.clone(),
                    experiment: self.experiment(carrier, preset.clone(), seed),
                });
            }
        }
        Ok(())
    }

    fn experiment(&self, carrier: Carrier, reckoned_with: Config, seed: u64) -> Experiment {
        let Options { pattern, answer, .. } = *self.options;
        let (messages, warm_up) = self.options.messages_of(self.workload);
        let mut fabric = Settings { seed, ..self.options.fabric };
        fabric.topology.shape = self.shape;
        Experiment {
            fabric,
            carrier,
            reckoned_with,
            workload: self.workload.clone(),
            load: self.load,
            pattern,
            answer,
            packets: Options::PACKETS,
            messages,
            warm_up,
            greet: self.greets(),
            seed,
        }
    }

    /// Whether all pairs of hosts are made known to each other first.
    fn greets(&self) -> bool {
        let hosts = u64::from(self.shape.hosts());
        hosts * (hosts - 1) <= MOST_GREETINGS
    }

    /// The setting for readers, by the names of options.
    fn described(&self, config: &Config, parameters: &[(&'static str, u64)]) -> Map<String, Value> {
        let Options { preset, fabric, pattern, answer, .. } = self.options;
        let (messages, warm_up) = self.options.messages_of(self.workload);
        let topology = fabric.topology;
        let delays = topology.delays;
        let mut all = vec![
            ("preset", json!(preset.to_string())),
            ("workload", json!(self.workload.to_string())),
            ("load", json!(self.load)),
            ("topology", json!(self.shape.to_string())),
            ("messages", json!(messages)),
            ("warm_up", json!(warm_up)),
            ("link", json!(words::rate_in_words(topology.host_rate))),
            ("fabric_link", json!(words::rate_in_words(topology.fabric_rate))),
            ("switch_delay_ns", json!(delays.switch)),
            ("host_delay_ns", json!(delays.host_out + delays.host_in)),
            ("propagation_ns", json!(delays.propagation)),
            ("per_rack_delay_ns", json!(delays.per_rack)),
            ("spreading", json!(fabric.spreading.to_string())),
            ("buffer", json!(fabric.buffers.to_string())),
            ("pattern", json!(pattern.to_string())),
            ("answer", json!(answer.to_string())),
        ];
        if !self.greets() {
            all.push(("first_contacts", json!(true)));
        }
        if !parameters.is_empty() {
            let named = parameters.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
            all.push(("param", Value::Object(named.collect())));
        }
        all.push(("apus", Value::Object(unlike_shipped(config))));
        all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

fn wrong(error: &apus_proto::ConfigError) -> OptionsError {
    OptionsError::new("param", format!("{error}; try --param max_overcommit=7"))
}

/// The parameters that differ from those of apus as it ships.
fn unlike_shipped(config: &Config) -> Map<String, Value> {
    let values = |config: &Config| match serde_json::to_value(config) {
        Ok(Value::Object(values)) => values,
        _ => unreachable!("a configuration is a table of numbers"),
    };
    let shipped = values(&Config::default());
    values(config).into_iter().filter(|(name, value)| shipped.get(name) != Some(value)).collect()
}

/// A name that belongs to these points and to this program (W1).
fn name(points: &[Point]) -> String {
    let mut hash = Sha256::new();
    hash.update(format!("apus {} {COMMIT}\n", env!("CARGO_PKG_VERSION")));
    for point in points {
        // Everything that decides a run is in the experiment, and all of it in its text.
        hash.update(format!("{} {:?}\n", point.index, point.experiment));
    }
    hash.finalize()[..8].iter().fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}
