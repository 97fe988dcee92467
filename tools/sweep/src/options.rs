//! What can be asked of a simulation?

use std::fmt;
use std::str::FromStr;

use apus_proto::{Config, PARAMETERS};
use apus_workload::{PacketOverhead, Workload};

use apus_sim::experiment::Pattern;
use apus_sim::fabric::{Buffers, Settings};
use apus_sim::host::Answer;
use apus_sim::kernel::LONGEST;
use apus_sim::message::Message;
use apus_sim::preset;
use apus_sim::topology::Shape;

/// Most messages of a run, and of its warm-up. Source: ours; all messages of a run are numbered with 32 bits,
/// and those that keep the fabric busy at the end are several times as many as count.
pub const MOST_MESSAGES: u32 = 500_000_000;
/// Most runs of one setting. Source: ours, as for every experiment.
const MOST_RUNS: u32 = 1_000;

/// What is asked: lists span a sweep, everything else holds for all of its points.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Where the configuration of apus comes from.
    pub preset: Preset,
    /// Sizes of the messages.
    pub workloads: Vec<Workload>,
    /// Shares of the links to hosts that are busy; above 0 and up to 1.
    pub loads: Vec<f64>,
    /// Racks, hosts, spines.
    pub shapes: Vec<Shape>,
    /// Values of parameters of apus.
    pub parameters: Vec<Axis>,
    /// Who carries the messages.
    pub transports: Vec<Transport>,
    /// Where chance begins.
    pub seeds: Vec<u64>,
    /// Runs of each setting: with one seed, that one and those after it.
    pub runs: u32,
    /// The fabric, but for its shape.
    pub fabric: Settings,
    /// Who sends to whom.
    pub pattern: Pattern,
    /// What receivers answer.
    pub answer: Answer,
    /// What runs on the hosts of apus.
    pub peer_model: PeerModel,
    /// Messages in the window of measurement; `None`: as many as make [`Options::ENOUGH_PACKETS`] packets.
    pub messages: Option<u32>,
    /// Messages before those; `None`: as many.
    pub warm_up: Option<u32>,
}

/// Where the configuration of apus comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// As the paper's Homa was configured for each workload.
    Sigcomm18,
    /// As apus ships.
    Shipped,
}

/// Who carries the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// The protocol that ships.
    Apus,
    /// DCTCP as Linux has it ([`apus_sim::dctcp`]).
    Dctcp,
    /// One scheduler that knows all messages: a lower bound, not a transport ([`apus_sim::oracle`]).
    Oracle,
}

/// What runs on the hosts of [`Transport::Apus`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerModel {
    /// apus on all of them.
    Apus,
    /// A model of the Linux module on every second one, apus in the kernel profile on the others
    /// ([`apus_sim::host::MixedHost`]).
    Kernel,
}

/// The values of one parameter of apus: `NAME=V1,V2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The parameter.
    pub name: &'static str,
    /// Its values.
    pub values: Vec<u64>,
}

/// An option has a value that no experiment can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {problem}")]
pub struct OptionsError {
    /// Name of the option, like `load`.
    pub option: &'static str,
    /// What is wrong, and a value that would be right.
    pub problem: String,
}

impl OptionsError {
    pub(super) fn new(option: &'static str, problem: impl Into<String>) -> Self {
        Self { option, problem: problem.into() }
    }
}

impl Options {
    /// Data packets of the window of measurement, if nobody says how many there are. Source: ours; with W4 at
    /// 80 % load the longest messages need half a second of the fabric's time to get into their steady state,
    /// and a p99 of them some hundreds of messages.
    pub const ENOUGH_PACKETS: f64 = 2.5e7;
    /// Bounds of the messages that follow from it.
    const ENOUGH_MESSAGES: (f64, f64) = (2e3, 3e6);

    /// What is asked if nothing is said: W4 at 80 % load, as in the paper.
    #[must_use]
    pub fn new() -> Self {
        let topology = preset::sigcomm18();
        Self {
            preset: Preset::Sigcomm18,
            workloads: vec![Workload::published(4)],
            loads: vec![0.8],
            shapes: vec![topology.shape],
            parameters: Vec::new(),
            transports: vec![Transport::Apus],
            seeds: vec![1],
            runs: 1,
            fabric: Settings::new(topology, 0),
            pattern: Pattern::Uniform,
            answer: Answer::Nothing,
            peer_model: PeerModel::Apus,
            messages: None,
            warm_up: None,
        }
    }

    /// How messages are cut into packets.
    pub(super) const PACKETS: PacketOverhead = PacketOverhead::UDP_OVER_ETHERNET;

    /// Messages in the window of measurement, and those before them.
    pub(super) fn messages_of(&self, workload: &Workload) -> (u32, u32) {
        let messages = self.messages.unwrap_or_else(|| {
            let payload = f64::from(Self::PACKETS.payload);
            let packets = |(size, share): (u32, f64)| share * (f64::from(size) / payload).ceil();
            let per_message: f64 = workload.sizes().iter().map(packets).sum();
            let (least, most) = Self::ENOUGH_MESSAGES;
            (Self::ENOUGH_PACKETS / per_message).clamp(least, most).round() as u32
        });
        (messages, self.warm_up.unwrap_or(messages))
    }

    /// The workload as all hosts can carry it: longer messages than the Linux module takes are as long as that.
    ///
    /// # Errors
    ///
    /// All of them are longer.
    pub(super) fn carried(&self, workload: &Workload) -> Result<Workload, OptionsError> {
        if self.peer_model == PeerModel::Apus {
            return Ok(workload.clone());
        }
        if workload.sizes().smallest() > LONGEST {
            let problem = format!(
                "the Linux module takes messages of {LONGEST} bytes at most, and {workload} has only longer ones; try w4"
            );
            return Err(OptionsError::new("workload", problem));
        }
        Ok(workload.clone().truncated(LONGEST))
    }

    /// The seeds of each setting.
    pub(super) fn seeds(&self) -> Vec<u64> {
        match self.seeds[..] {
            [first] => (0..u64::from(self.runs)).map(|run| first.wrapping_add(run)).collect(),
            _ => self.seeds.clone(),
        }
    }

    /// Whether each value is in its range and all of them fit together.
    ///
    /// # Errors
    ///
    /// Names the first one that is not, and a value that would be.
    pub fn check(&self) -> Result<(), OptionsError> {
        let require = |good: bool, option, problem: &str| {
            if good { Ok(()) } else { Err(OptionsError::new(option, problem)) }
        };
        for workload in &self.workloads {
            let shortest = workload.sizes().smallest() >= Message::SHORTEST;
            let problem = format!(
                "a simulated message has {} bytes at least, which hold its number; {workload} has shorter \
                 ones; try w4",
                Message::SHORTEST
            );
            require(shortest, "workload", &problem)?;
        }
        let loads = self.loads.iter().all(|load| *load > 0.0 && *load <= 1.0);
        require(loads, "load", "a load is above 0 and up to 1 of the hosts' links; try 0.8")?;
        let messages = self.messages.is_none_or(|messages| (1..=MOST_MESSAGES).contains(&messages));
        require(messages, "messages", "1 to 500000000 messages count; try 100000")?;
        let warm_up = self.warm_up.is_none_or(|messages| messages <= MOST_MESSAGES);
        require(warm_up, "warm-up", "0 to 500000000 messages come first; try 20000")?;
        require((1..=MOST_RUNS).contains(&self.runs), "runs", "there are 1 to 1000 runs; try 5")?;
        let one_way = self.runs == 1 || self.seeds.len() == 1;
        require(one_way, "runs", "several runs follow one seed; give one --seed, or no --runs")?;
        let echo = self.answer == Answer::Echo && self.transports.contains(&Transport::Dctcp);
        require(!echo, "answer", "dctcp carries one-way messages only; try none")?;
        let concerned =
            self.peer_model == PeerModel::Apus || self.transports.contains(&Transport::Apus);
        require(
            concerned,
            "peer-model",
            "there is no apus among the transports; try --transport apus",
        )?;
        self.check_buffers()?;
        self.check_pattern()?;
        self.check_repeats()
    }

    fn check_buffers(&self) -> Result<(), OptionsError> {
        let packet = Self::PACKETS.wire_bytes(Self::PACKETS.payload);
        let (Buffers::PerPort(bytes) | Buffers::Shared(bytes)) = self.fabric.buffers;
        if bytes < packet {
            let problem =
                format!("a full packet has {packet} bytes on the wire; try per-port=150000");
            return Err(OptionsError::new("buffer", problem));
        }
        Ok(())
    }

    fn check_pattern(&self) -> Result<(), OptionsError> {
        let Pattern::Incast(senders) = self.pattern else { return Ok(()) };
        for shape in &self.shapes {
            let most = shape.hosts() - 1;
            if !(1..=most).contains(&senders) {
                let problem = format!(
                    "1 to {most} of the {} hosts of {shape} can send to another one; try incast={}",
                    shape.hosts(),
                    most.min(15)
                );
                return Err(OptionsError::new("pattern", problem));
            }
        }
        Ok(())
    }

    /// A value that is given twice is a slip of the pen: its points would only take time.
    fn check_repeats(&self) -> Result<(), OptionsError> {
        let twice = |option, values: Vec<String>| {
            let mut seen = std::collections::BTreeSet::new();
            match values.into_iter().find(|value| !seen.insert(value.clone())) {
                Some(value) => Err(OptionsError::new(option, format!("{value} is given twice"))),
                None => Ok(()),
            }
        };
        let text = |values: &mut dyn Iterator<Item = String>| values.collect::<Vec<_>>();
        twice("workload", text(&mut self.workloads.iter().map(ToString::to_string)))?;
        twice("load", text(&mut self.loads.iter().map(ToString::to_string)))?;
        twice("topology", text(&mut self.shapes.iter().map(ToString::to_string)))?;
        twice("transport", text(&mut self.transports.iter().map(ToString::to_string)))?;
        twice("seed", text(&mut self.seeds.iter().map(ToString::to_string)))?;
        twice("param", text(&mut self.parameters.iter().map(|axis| axis.name.to_owned())))?;
        self.parameters.iter().try_for_each(|axis| {
            let values = axis.values.iter().map(|value| format!("{}={value}", axis.name));
            twice("param", values.collect())
        })
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Preset {
    /// The configuration of apus for a workload.
    pub(super) fn config(self, workload: &Workload) -> Config {
        match self {
            Self::Sigcomm18 => preset::sigcomm18_config(workload).expect("valid for any workload"),
            Self::Shipped => Config::default(),
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Sigcomm18 => "sigcomm18",
            Self::Shipped => "shipped",
        })
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sigcomm18" => Ok(Self::Sigcomm18),
            "shipped" => Ok(Self::Shipped),
            _ => Err("write sigcomm18 (as in the paper) or shipped (apus as it comes)".to_owned()),
        }
    }
}

impl fmt::Display for PeerModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Apus => "apus",
            Self::Kernel => "kernel",
        })
    }
}

impl FromStr for PeerModel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "apus" => Ok(Self::Apus),
            "kernel" => Ok(Self::Kernel),
            _ => Err("write apus (on all hosts) or kernel (the Linux module on every second one)"
                .to_owned()),
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Apus => "apus",
            Self::Dctcp => "dctcp",
            Self::Oracle => "oracle",
        })
    }
}

impl FromStr for Transport {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "apus" => Ok(Self::Apus),
            "dctcp" => Ok(Self::Dctcp),
            "oracle" => Ok(Self::Oracle),
            _ => Err("there are apus, dctcp and oracle".to_owned()),
        }
    }
}

impl FromStr for Axis {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem = || "write NAME=VALUE or NAME=VALUE,VALUE, like max_overcommit=1,7".to_owned();
        let (name, values) = text.split_once('=').ok_or_else(problem)?;
        let parameter = PARAMETERS.iter().find(|each| each.name == name).ok_or_else(|| {
            let names: Vec<&str> = PARAMETERS.iter().map(|each| each.name).collect();
            format!("apus has no parameter `{name}`; it has {}", names.join(", "))
        })?;
        let values = values.split(',').map(|value| parameter.parse(value));
        Ok(Self { name: parameter.name, values: values.collect::<Result<_, _>>()? })
    }
}
