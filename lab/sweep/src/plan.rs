//! The plan of a sweep: its points, and its name.

use std::fmt::Write;

use apus_proto::{Config, Profile};
use apus_report::result::COMMIT;
use apus_workload::Workload;
use ring::digest::{Context, SHA256};
use serde_json::{Map, Value, json};

use super::options::{OptionsError, PeerModel, SweepOptions, Transport};
use apus_sim::dctcp;
use apus_sim::experiment::{Carrier, Experiment};
use apus_sim::fabric::Settings;
use apus_sim::sird;
use apus_sim::topology::Shape;
use apus_workload::units;

/// All points of a sweep, in order: the seed changes fastest, then the transport, then parameters,
/// topology, load and workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Sixteen hexadecimal digits that identify all experiments of the plan and the program that
    /// runs them: its version and commit.
    pub name: String,
    /// Its points.
    pub points: Vec<PlanPoint>,
}

/// One run of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanPoint {
    /// Its position in the plan.
    pub index: u32,
    /// The transport.
    pub transport: Transport,
    /// Configuration for readers, without transport and seed.
    pub config: Map<String, Value>,
    /// The experiment.
    pub experiment: Experiment,
}

/// Maximum number of points in a plan. Chosen by us: a month of machine time, and probably a
/// mistake.
const MOST_POINTS: usize = 100_000;
/// Maximum number of host pairs that exchange first contacts before the load starts. Chosen by us:
/// more would take longer than most experiments.
const MOST_GREETINGS: u64 = 300_000;

/// Queue length, in full packets, from which packets are marked at 10 Gbit/s; in proportion at
/// higher rates. Source: lab ADR 4, where this value is the best for DCTCP; its paper has 65, for
/// hosts that burst.
const MARKED_FROM: u64 = 8;

impl Plan {
    /// Returns the plan for these options.
    ///
    /// # Errors
    ///
    /// An option has an impossible value, or there are too many points.
    pub fn new(options: &SweepOptions) -> Result<Self, OptionsError> {
        options.check()?;
        let lists = [
            options.workloads.len(),
            options.loads.len(),
            options.shapes.len(),
            options.carriers(Some(2)).len(),
            options.numbers_of_processes().len(),
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
            let workload = &options.carried(workload)?;
            for load in &options.loads {
                for shape in &options.shapes {
                    for processes in options.numbers_of_processes() {
                        let at =
                            Setting { options, workload, load: *load, shape: *shape, processes };
                        for parameters in combinations(options) {
                            at.points(&parameters, &mut points)?;
                        }
                    }
                }
            }
        }
        Ok(Self { name: name(&points), points })
    }
}

/// Returns all combinations of values of parameters.
fn combinations(options: &SweepOptions) -> Vec<Vec<(&'static str, u64)>> {
    options.parameters.iter().fold(vec![Vec::new()], |all, axis| {
        let with = |before: &Vec<(&'static str, u64)>, value: u64| {
            before.iter().copied().chain([(axis.name, value)]).collect()
        };
        all.iter().flat_map(|each| axis.values.iter().map(|value| with(each, *value))).collect()
    })
}

/// Everything but parameters, transport and seed.
struct Setting<'a> {
    options: &'a SweepOptions,
    workload: &'a Workload,
    load: f64,
    shape: Shape,
    processes: Option<u32>,
}

impl Setting<'_> {
    /// Adds one point per transport and seed.
    fn points(
        &self,
        parameters: &[(&'static str, u64)],
        points: &mut Vec<PlanPoint>,
    ) -> Result<(), OptionsError> {
        let options = self.options;
        let preset = options.preset.config(self.workload);
        let mut builder = preset.to_builder();
        if options.peer_model == PeerModel::Kernel {
            builder = builder.profile(Profile::Kernel);
        }
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
        for transport in &options.carriers(self.processes) {
            for seed in options.seeds() {
                let carrier = match transport {
                    Transport::Apus if options.peer_model == PeerModel::Kernel => {
                        Carrier::Mixed(config.clone())
                    }
                    Transport::Apus => Carrier::Apus(config.clone()),
                    Transport::ApusApart => Carrier::Apart(config.clone()),
                    Transport::Homa => Carrier::Apus(homa(&config)?),
                    Transport::Dctcp => Carrier::Dctcp(dctcp::Config::default()),
                    Transport::Sird => Carrier::Sird(self.sird()),
                    Transport::Oracle => Carrier::Oracle,
                };
                points.push(PlanPoint {
                    index: points.len() as u32,
                    transport: *transport,
                    config: described.clone(),
                    experiment: self.experiment(carrier, preset.clone(), seed),
                });
            }
        }
        Ok(())
    }

    fn experiment(&self, carrier: Carrier, load_config: Config, seed: u64) -> Experiment {
        let SweepOptions { pattern, answer, .. } = *self.options;
        let (messages, warm_up) = self.options.messages_of(self.workload);
        let mut fabric = Settings { seed, ..self.options.fabric.settings(self.shape) };
        fabric.mark_at = match &carrier {
            Carrier::Oracle => None,
            Carrier::Sird(config) => fabric.mark_at.or(Some(config.marking_threshold)),
            _ => Some(self.mark_at()),
        };
        // Receivers of apus and SIRD schedule their own links, so marks are needed only in the
        // core.
        fabric.only_core_marks = !matches!(carrier, Carrier::Dctcp(_));
        Experiment {
            fabric,
            carrier,
            load_config,
            workload: self.workload.clone(),
            load: self.load,
            pattern,
            answer,
            packets: SweepOptions::PACKETS,
            messages,
            warm_up,
            first_contact: self.greets(),
            processes: self.processes,
            processor: self.options.processors.processor(SweepOptions::full_bytes()),
            stall: self.options.processors.stall.unwrap_or(0),
            seed,
        }
    }

    /// Returns the parameters of SIRD in this fabric.
    fn sird(&self) -> sird::Config {
        sird::Config::new(&self.options.fabric.settings(self.shape).topology, SweepOptions::PACKETS)
    }

    /// Returns the queue length in bytes from which an output to a host marks packets.
    fn mark_at(&self) -> u64 {
        let fabric = &self.options.fabric.settings(self.shape);
        let rate = fabric.topology.host_rate.mbps();
        fabric.mark_at.unwrap_or(MARKED_FROM * dctcp::FULL_FRAME * rate.max(10_000) / 10_000)
    }

    /// Returns whether all pairs of hosts exchange first contacts.
    fn greets(&self) -> bool {
        let hosts = u64::from(self.shape.hosts());
        hosts * (hosts - 1) <= MOST_GREETINGS
    }

    /// Returns the setting for readers, by the names of options.
    fn described(&self, config: &Config, parameters: &[(&'static str, u64)]) -> Map<String, Value> {
        let SweepOptions { preset, pattern, answer, .. } = self.options;
        let fabric = self.options.fabric.settings(self.shape);
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
            ("link", json!(units::format_rate(topology.host_rate))),
            ("fabric_link", json!(units::format_rate(topology.fabric_rate))),
            ("switch_delay_ns", json!(delays.switch)),
            ("host_delay_ns", json!(delays.host_out + delays.host_in)),
            ("propagation_ns", json!(delays.propagation)),
            ("per_rack_delay_ns", json!(delays.per_rack)),
            ("spreading", json!(fabric.spreading.to_string())),
            ("buffer", json!(fabric.buffers.to_string())),
            ("pattern", json!(pattern.to_string())),
            ("answer", json!(answer.to_string())),
        ];
        if self.options.transports.contains(&Transport::Dctcp)
            || self.options.fabric.oversubscription.is_some()
        {
            all.push(("mark_at", json!(self.mark_at())));
        }
        if self.options.peer_model != PeerModel::Apus {
            all.push(("peer_model", json!(self.options.peer_model.to_string())));
        }
        if let Some(processes) = self.processes {
            all.push(("processes", json!(processes)));
        }
        let processors = &self.options.processors;
        if let Some((rate, processor)) =
            processors.host_rate.zip(processors.processor(SweepOptions::full_bytes()))
        {
            all.push(("host_rate", json!(units::format_rate(rate))));
            all.push(("socket_buffer", json!(processor.socket_buffer)));
        }
        if let Some(stall) = processors.stall {
            all.push(("stall_ns", json!(stall)));
        }
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

/// Returns the configuration of published Homa: `config` without the additions of apus.
fn homa(config: &Config) -> Result<Config, OptionsError> {
    let builder =
        config.to_builder().informed_incoming(0).incast_unsched_bytes(0).marked_incoming(0);
    builder.build().map_err(|error| wrong(&error))
}

fn wrong(error: &apus_proto::ConfigError) -> OptionsError {
    OptionsError::new("param", format!("{error}; try --param max_overcommit=7"))
}

/// Returns the parameters that differ from the shipped configuration of apus.
fn unlike_shipped(config: &Config) -> Map<String, Value> {
    let values = |config: &Config| match serde_json::to_value(config) {
        Ok(Value::Object(values)) => values,
        _ => unreachable!("a configuration is a table of numbers"),
    };
    let shipped = values(&Config::default());
    values(config).into_iter().filter(|(name, value)| shipped.get(name) != Some(value)).collect()
}

/// Returns a name that belongs to these points and to this program (SWEEP-1).
fn name(points: &[PlanPoint]) -> String {
    let mut hash = Context::new(&SHA256);
    hash.update(format!("apus {} {COMMIT}\n", env!("CARGO_PKG_VERSION")).as_bytes());
    for point in points {
        // All inputs of a run are in the experiment, and all of the experiment is in its text.
        hash.update(format!("{} {:?}\n", point.index, point.experiment).as_bytes());
    }
    hash.finish().as_ref()[..8].iter().fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Axis;

    fn options() -> SweepOptions {
        let transports = vec![Transport::Apus, Transport::Dctcp];
        let parameters = vec![Axis { name: "max_overcommit", values: vec![1, 7] }];
        SweepOptions {
            transports,
            parameters,
            loads: vec![0.5, 0.8],
            runs: 3,
            ..SweepOptions::default()
        }
    }

    #[test]
    fn points_are_all_combinations_and_the_seed_changes_fastest() {
        let plan = Plan::new(&options()).unwrap();
        assert_eq!(plan.points.len(), 2 * 2 * 2 * 3);
        let seeds: Vec<u64> = plan.points.iter().map(|point| point.experiment.seed).collect();
        assert_eq!(seeds[..4], [1, 2, 3, 1]);
        assert!(plan.points.iter().zip(0..).all(|(point, index)| point.index == index));
        let granted = |point: &PlanPoint| point.config["param"]["max_overcommit"].clone();
        assert_eq!((granted(&plan.points[0]), granted(&plan.points[6])), (json!(1), json!(7)));
        assert_eq!(plan.points[12].experiment.load, 0.8);
    }

    #[test]
    fn all_transports_carry_the_same_messages() {
        let plan = Plan::new(&options()).unwrap();
        let (first, other) = (&plan.points[0].experiment, &plan.points[9].experiment);
        assert_ne!(first.carrier, other.carrier);
        let computed = [first, other].map(|each| (each.load_config.clone(), each.load, each.seed));
        assert_eq!(computed[0], computed[1]);
        assert!(first.fabric.only_core_marks && !other.fabric.only_core_marks);
        assert_eq!(other.fabric.mark_at, Some(8 * 1_538));
    }

    /// SIRD marks in the core alone, by its own threshold unless another is given.
    #[test]
    fn sird_has_its_own_threshold() {
        let mut options = SweepOptions { transports: vec![Transport::Sird], ..options() };
        let fabric =
            |options: &SweepOptions| Plan::new(options).unwrap().points[0].experiment.fabric;
        let own = fabric(&options);
        assert!(own.only_core_marks);
        assert_eq!(own.mark_at, Some(12_100), "1.25 times 9,680");
        options.fabric.mark_at = Some(20_000);
        assert_eq!(fabric(&options).mark_at, Some(20_000));
    }

    /// The other transports are unaffected; only apus has hosts with the module as peers, and uses
    /// their profile.
    #[test]
    fn every_second_host_may_run_the_linux_module() {
        let workloads = vec!["20000".parse().unwrap()];
        let all = SweepOptions { workloads, peer_model: PeerModel::Kernel, ..options() };
        let plan = Plan::new(&all).unwrap();
        let [first, .., last] = &plan.points[..] else { panic!("several") };
        let Carrier::Mixed(config) = &first.experiment.carrier else { panic!("{first:?}") };
        assert_eq!((config.profile(), config.max_message()), (Profile::Kernel, 1_000_000));
        assert_eq!(first.config["peer_model"], "kernel");
        assert!(matches!(last.experiment.carrier, Carrier::Dctcp(_)));
        let others = SweepOptions { peer_model: PeerModel::Apus, ..all.clone() };
        assert_ne!(plan.name, Plan::new(&others).unwrap().name);
        let error = |options: &SweepOptions| Plan::new(options).unwrap_err().to_string();
        let without = SweepOptions { transports: vec![Transport::Dctcp], ..all.clone() };
        assert!(error(&without).starts_with("peer-model: "), "{}", error(&without));
        let long = SweepOptions { workloads: vec!["1000001".parse().unwrap()], ..all.clone() };
        assert!(error(&long).contains("1000000"), "{}", error(&long));
        let cut =
            Plan::new(&SweepOptions { workloads: vec![Workload::published(4)], ..all }).unwrap();
        assert_eq!(cut.points[0].experiment.workload.sizes().largest(), 1_000_000);
        assert_eq!(cut.points[0].config["workload"], "w4 truncated at 1000000 bytes");
    }

    #[test]
    fn a_name_belongs_to_one_plan() {
        let name = |options: &SweepOptions| Plan::new(options).unwrap().name;
        assert_eq!(name(&options()), name(&options()));
        let mut names = vec![name(&options())];
        names.push(name(&SweepOptions { runs: 2, ..options() }));
        names.push(name(&SweepOptions { messages: Some(7), ..options() }));
        names.push(name(&SweepOptions { loads: vec![0.5, 0.81], ..options() }));
        let mut slower = options();
        slower.fabric.switch_delay = Some(251);
        names.push(name(&slower));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 5);
        assert!(names.iter().all(|name| name.len() == 16));
    }

    #[test]
    fn impossible_values_are_named() {
        let error = |options: &SweepOptions| Plan::new(options).unwrap_err().to_string();
        let fits = |options: SweepOptions, part: &str| {
            let error = error(&options);
            assert!(error.contains(part), "{error}");
        };
        fits(SweepOptions { loads: vec![0.0], ..options() }, "load: ");
        fits(SweepOptions { loads: vec![0.5, 1.01], ..options() }, "try 0.8");
        fits(SweepOptions { loads: vec![f64::NAN], ..options() }, "load: ");
        fits(SweepOptions { messages: Some(0), ..options() }, "messages: ");
        fits(SweepOptions { workloads: vec!["3".parse().unwrap()], ..options() }, "bytes at least");
        fits(
            SweepOptions { workloads: vec!["67108865".parse().unwrap()], ..options() },
            "max_message",
        );
        fits(
            SweepOptions { pattern: apus_sim::experiment::Pattern::Incast(144), ..options() },
            "143",
        );
        fits(SweepOptions { runs: 2, seeds: vec![1, 2], ..options() }, "runs: ");
        fits(SweepOptions { seeds: vec![1, 1], runs: 1, ..options() }, "given twice");
        fits(SweepOptions { answer: apus_sim::host::Answer::Echo, ..options() }, "one-way");
        let seeds = (0..100_001).collect();
        fits(SweepOptions { seeds, runs: 1, ..options() }, "points");
        let mut small = options();
        small.fabric.buffer = apus_sim::fabric::Buffers::PerPort(1_000);
        fits(small, "1538");
        let mut small = options();
        small.fabric.buffer = apus_sim::fabric::Buffers::PerPortTime(1_000);
        fits(small, "1538");
        for ratio in [0.0, -1.0, f64::NAN, 1e6] {
            let mut core = options();
            core.fabric.oversubscription = Some(ratio);
            fits(core, "oversubscription: ");
        }
    }

    #[test]
    fn large_fabrics_have_no_first_contacts() {
        let shapes = vec!["9x16x4".parse().unwrap(), "100x100x4".parse().unwrap()];
        let plan = Plan::new(&SweepOptions { shapes, ..SweepOptions::default() }).unwrap();
        let first_contact: Vec<bool> =
            plan.points.iter().map(|point| point.experiment.first_contact).collect();
        assert_eq!(first_contact, [true, false]);
        assert_eq!(plan.points[1].config["first_contacts"], true);
    }
}
