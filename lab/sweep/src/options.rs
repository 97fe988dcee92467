//! Options of simulations.

use std::fmt;
use std::str::FromStr;

use apus_proto::{Config, PARAMETERS};
use apus_report::experiment::{defaults, name};
use apus_workload::{Nanos, PacketOverhead, Rate, Workload, units};
use clap::{Args, ValueEnum};

use apus_sim::experiment::Pattern;
use apus_sim::fabric::{Buffers, Settings, Spreading};
use apus_sim::host::Answer;
use apus_sim::kernel::LONGEST;
use apus_sim::message::Message;
use apus_sim::preset;
use apus_sim::processor::{Costs, Processor};
use apus_sim::topology::Shape;

/// Maximum number of messages of a run, and of its warm-up. Chosen by us: all messages of a run are
/// numbered with 32 bits, and the messages that keep the fabric busy at the end are several times
/// as many as the measured ones.
pub const MOST_MESSAGES: u32 = 500_000_000;
/// Maximum number of runs of one setting. Chosen by us, as for every experiment.
const MOST_RUNS: u32 = 1_000;
/// Maximum number of processes of a host. Chosen by us: more than a host has cores for.
const MOST_PROCESSES: u32 = 64;

/// Run messages of a workload through a simulated fabric, next to published figures
///
/// Hosts submit messages at random instants (Poisson) whether or not earlier messages have
/// completed, at the rate that loads the links of the fabric as given. Slowdown is the time that a
/// message took divided by the best possible time on an idle fabric. Without options this is the
/// set-up of the Homa paper (SIGCOMM 2018): 144 hosts in 9 racks, 4 spines, links of 10 and 40
/// Gbit/s, W4 at 80 % load.
///
/// A load that the transport cannot sustain has no slowdowns: queues grow for as long as messages
/// arrive. Such a run reports this instead of numbers (in JSON they are null, and `steady` is
/// false); that is a result, and the exit status is 0.
///
/// Lists with commas span a sweep: every combination of workload, load, topology, parameter,
/// transport and seed is a separate point, a pure function of its options. `--out` keeps one line
/// per point and runs only the points that the file lacks. With `--out`, a process that was started
/// as one of many runs its share of the points: `--shard I/N`, or the shard that Slurm arrays,
/// Kubernetes indexed jobs and MPI name in the environment. `apus-lab sim merge` combines the
/// files.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(after_help = "Examples:
  apus-lab sim run
  apus-lab sim run --preset sigcomm18 --workload w4 --load 0.8 --json
  apus-lab sim run --workload w2 --transport apus,dctcp,oracle --html w2.html
  apus-lab sim run --param max_overcommit=1,7 --load 0.6,0.7,0.8,0.9
  apus-lab sim run --topology 1x16x0 --pattern incast=15 --workload 10000 --buffer per-port=200kB
  apus-lab sim run --workload w1,w3 --topology 1x16x0 --peer-model kernel
  apus-lab sim run --topology 1x2x0 --answer echo --host-rate 10gbit --load 0.4 --stall 300ms
  apus-lab sim run --load 0.5,0.8 --shard 0/2 --out part-{shard}.jsonl")]
pub struct SweepOptions {
    /// Configuration of apus. The fabric is the paper's either way, unless options change it
    #[arg(long, value_name = "NAME", default_value = "sigcomm18")]
    pub preset: Preset,
    /// Sizes of the messages: `w1` to `w5` (published workloads), a size in bytes, or a file whose
    /// lines are `SIZE SHARE`, the share of the messages up to that size. The smallest size is at
    /// least 8 bytes, which hold the number of a simulated message
    #[arg(long = "workload", value_name = "WORKLOAD", value_delimiter = ',', default_value = "w4")]
    pub workloads: Vec<Workload>,
    /// Cut longer messages to this length, 8 bytes or more [default: no message is cut]
    #[arg(long, value_name = "BYTES", value_parser = units::bytes, allow_hyphen_values = true)]
    pub longest: Option<u64>,
    /// Share of time that the links to hosts (or the links between racks and spines, if they have
    /// less room, and with --host-rate also the processors) are busy with the messages and their
    /// overhead, headers and grants included: above 0 and up to 1. Computed for apus; all
    /// transports get the same messages
    #[arg(
        long = "load",
        value_name = "SHARE",
        value_delimiter = ',',
        default_value = "0.8",
        allow_negative_numbers = true
    )]
    pub loads: Vec<f64>,
    /// Racks, hosts in each, spines; `1x16x0` is one rack
    #[arg(
        long = "topology",
        value_name = "RxHxS",
        value_delimiter = ',',
        default_value = "9x16x4"
    )]
    pub shapes: Vec<Shape>,
    /// Transports. Several carry the same messages and are compared
    #[arg(long = "transport", value_name = "NAME", value_delimiter = ',', default_value = "apus")]
    pub transports: Vec<Transport>,
    /// Processes of each host, 1 to 64; several numbers are compared. A message is between the same
    /// process of two hosts. Outgoing packets wait in the queue of the interface, first in, first
    /// out. With several processes, `apus-apart` runs in addition to `apus`: the same, but without
    /// shared state between processes [default: one transport, which passes a packet to the
    /// interface when the link is free]
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', allow_negative_numbers = true)]
    pub processes: Vec<u32>,
    /// A parameter of apus, instead of the preset's value; several values are compared
    #[arg(long = "param", value_name = "NAME=VALUE[,VALUE]")]
    pub parameters: Vec<Axis>,
    /// Seed of all random numbers: the same seed draws the same messages
    #[arg(
        long = "seed",
        value_name = "NUMBER",
        value_delimiter = ',',
        default_value = "1",
        allow_negative_numbers = true
    )]
    pub seeds: Vec<u64>,
    /// Runs of each setting, 1 to 1000, with this seed and the following seeds; results are the
    /// median, the least and the greatest. One run is exact for its seed: more runs show how much
    /// of a figure is chance
    #[arg(long, value_name = "RUNS", default_value_t = 1, allow_negative_numbers = true)]
    pub runs: u32,
    /// Messages submitted during the measurement [default: enough for 25 million packets, 2000 to
    /// 3000000]; messages delivered meanwhile count. More messages give steadier figures: a p99
    /// needs hundreds of messages in its bin
    #[arg(long, value_name = "MESSAGES", allow_negative_numbers = true)]
    pub messages: Option<u32>,
    /// Messages before the measurement, until queues have their steady length [default: the same
    /// number]. With too few, long messages look faster than they are: long messages of W4 take a
    /// fifth of a second
    #[arg(long, value_name = "MESSAGES", allow_negative_numbers = true)]
    pub warm_up: Option<u32>,
    /// The fabric, except for its shape.
    #[command(flatten)]
    pub fabric: Fabric,
    /// Senders and receivers: `uniform`, or `incast=N`, N hosts to one at the same moment
    #[arg(long, value_name = "PATTERN", default_value = "uniform")]
    pub pattern: Pattern,
    /// Response of receivers: `none` (one-way messages, as in the paper), `echo` (request and
    /// response), or the bytes of each response
    #[arg(long, value_name = "ANSWER", default_value = "none")]
    pub answer: Answer,
    /// Software of the hosts of apus. With `kernel`, longer messages are cut to 1000000 bytes. The
    /// model shows how the two work together, not how fast the module is
    #[arg(long, value_name = "MODEL", default_value = "apus")]
    pub peer_model: PeerModel,
    /// The processors of the hosts.
    #[command(flatten)]
    pub processors: Processors,
}

/// The processors of the hosts.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct Processors {
    /// Rate at which the processor of a host carries full-size packets in each direction at the
    /// same time, in bits on the wire [default: packets take no time]. Each packet costs time: at
    /// 10gbit, a full-size packet takes 410 ns to receive and 820 ns to send, half of it for the
    /// packet, whatever its length, and half in proportion to its bytes. Packets that have arrived
    /// wait in a socket buffer. Where processors are busier than links, `--load` is the share of
    /// time that they are busy with the messages. The oracle has no processors
    #[arg(long, value_name = "RATE", value_parser = units::rate, allow_hyphen_values = true)]
    pub host_rate: Option<Rate>,
    /// Bytes on the wire of the packets that wait for a host's processor; further packets are
    /// dropped [default: 4MB]. Needs --host-rate
    #[arg(long, value_name = "BYTES", value_parser = units::bytes, requires = "host_rate", allow_hyphen_values = true)]
    pub socket_buffer: Option<u64>,
    /// Stop the processor of the last host for this time once, after a quarter of the measurement,
    /// up to 1s. Needs --host-rate
    #[arg(long, value_name = "TIME", value_parser = units::time, requires = "host_rate", allow_hyphen_values = true)]
    pub stall: Option<Nanos>,
}

impl Processors {
    /// Returns the processor of a host; `None` if packets take no time. `full_bytes` is the length
    /// of a full-size packet on the wire.
    #[must_use]
    pub fn processor(&self, full_bytes: u32) -> Option<Processor> {
        let costs = Costs::at_rate(self.host_rate?, full_bytes);
        Some(Processor {
            costs,
            socket_buffer: self.socket_buffer.unwrap_or(Processor::SOCKET_BUFFER),
        })
    }
}

/// The fabric, except for its shape.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct Fabric {
    /// Rate of the links between hosts and racks [default: 10gbit]
    #[arg(long, value_name = "RATE", value_parser = units::rate, allow_hyphen_values = true)]
    pub link: Option<Rate>,
    /// Rate of the links between racks and spines [default: 40gbit]
    #[arg(long, value_name = "RATE", value_parser = units::rate, allow_hyphen_values = true)]
    pub fabric_link: Option<Rate>,
    /// Give the links between racks and spines, in total, the RATIOth part of the link rates of a
    /// rack's hosts, instead of --fabric-link: 0.01 to 1000. With 2 the core limits what the fabric
    /// carries, and --load is the load of the core
    #[arg(
        long,
        value_name = "RATIO",
        conflicts_with = "fabric_link",
        allow_negative_numbers = true
    )]
    pub oversubscription: Option<f64>,
    /// Delay from a packet's last bit at a switch to its place in the next queue [default: 250ns]
    #[arg(long, value_name = "TIME", value_parser = units::time, allow_hyphen_values = true)]
    pub switch_delay: Option<Nanos>,
    /// Delay of the software of a host, two thirds on transmission and one third on reception
    /// [default: 1500ns]
    #[arg(long, value_name = "TIME", value_parser = units::time, allow_hyphen_values = true)]
    pub host_delay: Option<Nanos>,
    /// Propagation delay of each link [default: 0ns]
    #[arg(long, value_name = "TIME", value_parser = units::time, allow_hyphen_values = true)]
    pub propagation: Option<Nanos>,
    /// Additional delay on the links between rack number R and the spines, times R, so that
    /// round-trip times differ [default: 0ns]
    #[arg(long, value_name = "TIME", value_parser = units::time, allow_hyphen_values = true)]
    pub per_rack_delay: Option<Nanos>,
    /// Spreading of packets over the spines: each through a random one (`packet`), or all
    /// packets between the same process of two hosts through the same one (`flow`)
    #[arg(long, value_name = "HOW", default_value = "packet")]
    pub spreading: Spreading,
    /// Buffers of switches: `per-port=BYTES`, `per-port=TIME` (the bytes that the port's link
    /// carries in it, like 40us), `shared=BYTES` for each switch, or `unlimited`; packets beyond
    /// are dropped
    #[arg(long, value_name = "BUFFER", default_value = "unlimited")]
    pub buffer: Buffers,
    /// Queue length in bytes from which an output to a host marks packets, for dctcp; outputs to
    /// spines mark in proportion to their rate, and for sird and for apus with `marked_incoming`
    /// only outputs between racks and spines mark [default: 8 packets at 10gbit, the best value for
    /// DCTCP in this fabric (its paper has 65); for sird 1.25 times the bytes that a link carries
    /// in a round-trip time]
    #[arg(long, value_name = "BYTES", value_parser = units::bytes, allow_hyphen_values = true)]
    pub mark_at: Option<u64>,
}

impl Fabric {
    /// Returns the settings of the simulated fabric with this shape. Its seed is 0.
    #[must_use]
    pub fn settings(&self, shape: Shape) -> Settings {
        let mut settings = Settings::new(preset::sigcomm18(), 0);
        settings.spreading = self.spreading;
        settings.buffers = self.buffer;
        settings.mark_at = self.mark_at;
        let topology = &mut settings.topology;
        topology.host_rate = self.link.unwrap_or(topology.host_rate);
        topology.fabric_rate = self.fabric_link.unwrap_or(topology.fabric_rate);
        topology.shape = shape;
        if let Some(ratio) = self.oversubscription {
            // Checked before (`SweepOptions::check`): the links have such a rate.
            *topology = topology.oversubscribed(ratio).unwrap_or(*topology);
        }
        let delays = &mut topology.delays;
        delays.switch = self.switch_delay.unwrap_or(delays.switch);
        delays.propagation = self.propagation.unwrap_or(delays.propagation);
        delays.per_rack = self.per_rack_delay.unwrap_or(delays.per_rack);
        if let Some(both) = self.host_delay {
            // As in the paper's set-up: software and interface on transmission, software on
            // reception.
            delays.host_in = both / 3;
            delays.host_out = both - delays.host_in;
        }
        settings
    }
}

/// Source of the configuration of apus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// As the paper configures Homa for each workload
    Sigcomm18,
    /// As apus ships
    Shipped,
}

/// A transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// The protocol that ships
    Apus,
    /// Apus without shared state between a host's processes; needs --processes
    ApusApart,
    /// Homa as published: apus without sender-informed grants (`informed_incoming` 0), without a
    /// limit for incasts (`incast_unsched_bytes` 0), and without reaction to marks
    /// (`marked_incoming` 0)
    Homa,
    /// DCTCP as in Linux
    Dctcp,
    /// SIRD as published: receivers pace credit, and limit the credit of busy senders; has no loss
    /// recovery, so buffers are unlimited
    Sird,
    /// One scheduler with global knowledge: a lower bound, not a transport
    Oracle,
}

/// Software of the hosts of [`Transport::Apus`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PeerModel {
    /// apus on all hosts
    Apus,
    /// A model of the Linux module on every second host, apus in the kernel profile on the others
    Kernel,
}

/// Values of one parameter of apus: `NAME=V1,V2`.
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
    /// Description of the problem, with a valid value.
    pub problem: String,
}

impl OptionsError {
    pub(super) fn new(option: &'static str, problem: impl Into<String>) -> Self {
        Self { option, problem: problem.into() }
    }
}

impl SweepOptions {
    /// Data packets of the measurement, without `messages`. Chosen by us: with W4 at 80 % load the
    /// longest messages need half a second of the fabric's time to reach their steady state, and
    /// their p99 needs some hundreds of messages.
    pub const ENOUGH_PACKETS: f64 = 2.5e7;
    /// Bounds of the resulting number of messages.
    const ENOUGH_MESSAGES: (f64, f64) = (2e3, 3e6);

    /// Division of messages into packets.
    pub(super) const PACKETS: PacketOverhead = PacketOverhead::UDP_OVER_ETHERNET;

    /// Returns the number of messages during the measurement and of those before it.
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

    /// Returns the workload that all hosts can carry: messages longer than `longest`, or than the
    /// Linux module accepts, are cut.
    ///
    /// # Errors
    ///
    /// All messages are longer.
    pub(super) fn carried(&self, workload: &Workload) -> Result<Workload, OptionsError> {
        let workload = match self.longest {
            Some(longest) => workload.clone().truncated(longest as u32),
            None => workload.clone(),
        };
        if self.peer_model == PeerModel::Apus {
            return Ok(workload);
        }
        if workload.sizes().smallest() > LONGEST {
            let problem = format!(
                "the Linux module takes messages of {LONGEST} bytes at most, and {workload} has only longer ones; try w4"
            );
            return Err(OptionsError::new("workload", problem));
        }
        Ok(workload.truncated(LONGEST))
    }

    /// Returns the transports whose hosts have this number of processes. With several processes,
    /// apus also runs without their shared state.
    pub(super) fn carriers(&self, processes: Option<u32>) -> Vec<Transport> {
        let has_several = processes.is_some_and(|processes| processes > 1);
        let mut all = self.transports.clone();
        match all.iter().position(|each| *each == Transport::Apus) {
            Some(apus) if has_several && !all.contains(&Transport::ApusApart) => {
                all.insert(apus + 1, Transport::ApusApart);
            }
            _ => {}
        }
        all
    }

    /// Returns the numbers of processes.
    pub(super) fn numbers_of_processes(&self) -> Vec<Option<u32>> {
        match self.processes[..] {
            [] => vec![None],
            _ => self.processes.iter().copied().map(Some).collect(),
        }
    }

    /// Returns the seeds of each setting.
    pub(super) fn seeds(&self) -> Vec<u64> {
        match self.seeds[..] {
            [first] => (0..u64::from(self.runs)).map(|run| first.wrapping_add(run)).collect(),
            _ => self.seeds.clone(),
        }
    }

    /// Checks that each value is in its range and that the values are compatible.
    ///
    /// # Errors
    ///
    /// The first invalid value, with a valid one.
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
        let longest = u64::from(Message::SHORTEST)..=u64::from(u32::MAX);
        let longest = self.longest.is_none_or(|bytes| longest.contains(&bytes));
        require(longest, "longest", "messages are cut to 8 to 4294967295 bytes; try 1MB")?;
        let loads = self.loads.iter().all(|load| *load > 0.0 && *load <= 1.0);
        require(loads, "load", "a load is above 0 and up to 1 of the hosts' links; try 0.8")?;
        let messages = self.messages.is_none_or(|messages| (1..=MOST_MESSAGES).contains(&messages));
        require(messages, "messages", "1 to 500000000 messages count; try 100000")?;
        let warm_up = self.warm_up.is_none_or(|messages| messages <= MOST_MESSAGES);
        require(warm_up, "warm-up", "0 to 500000000 messages come first; try 20000")?;
        require((1..=MOST_RUNS).contains(&self.runs), "runs", "there are 1 to 1000 runs; try 5")?;
        let one_way = self.runs == 1 || self.seeds.len() == 1;
        require(one_way, "runs", "several runs follow one seed; give one --seed, or no --runs")?;
        let echo = self.answer.is_awaited() && self.transports.contains(&Transport::Dctcp);
        require(!echo, "answer", "dctcp carries one-way messages only; try none")?;
        let sird = self.transports.contains(&Transport::Sird);
        let echo = self.answer.is_awaited() && sird;
        require(!echo, "answer", "sird carries one-way messages only; try none")?;
        let loses = sird && self.fabric.buffer != Buffers::PerPort(u64::MAX);
        require(!loses, "buffer", "sird is simulated without losses; try unlimited")?;
        let loses = sird && self.processors.host_rate.is_some();
        require(!loses, "host-rate", "sird is simulated without processors; leave it out")?;
        let concerned =
            self.peer_model == PeerModel::Apus || self.transports.contains(&Transport::Apus);
        require(
            concerned,
            "peer-model",
            "there is no apus among the transports; try --transport apus",
        )?;
        self.check_processes()?;
        self.check_core()?;
        self.check_buffers()?;
        self.check_processors()?;
        self.check_pattern()?;
        self.check_repeats()
    }

    fn check_processes(&self) -> Result<(), OptionsError> {
        let wrong = |problem: &str| Err(OptionsError::new("processes", problem));
        if !self.processes.iter().all(|number| (1..=MOST_PROCESSES).contains(number)) {
            return wrong("a host has 1 to 64 processes; try 4");
        }
        if !self.processes.is_empty() && self.peer_model != PeerModel::Apus {
            return wrong(
                "the Linux module is one for all processes of a host; try --peer-model apus",
            );
        }
        if self.processes.is_empty() && self.transports.contains(&Transport::ApusApart) {
            return wrong("apus-apart needs several processes; try 4");
        }
        Ok(())
    }

    fn check_core(&self) -> Result<(), OptionsError> {
        let Some(ratio) = self.fabric.oversubscription else { return Ok(()) };
        let plain = Fabric { oversubscription: None, ..self.fabric.clone() };
        let mut topologies = self.shapes.iter().map(|shape| plain.settings(*shape).topology);
        let is_possible = (0.01..=1_000.0).contains(&ratio)
            && topologies.all(|topology| topology.oversubscribed(ratio).is_some());
        if !is_possible {
            let problem = "the core has the 0.01th to the 1000th part of what hosts can send, in links of 1mbit to \
                           8000gbit; try 2";
            return Err(OptionsError::new("oversubscription", problem));
        }
        Ok(())
    }

    fn check_buffers(&self) -> Result<(), OptionsError> {
        let packet = Self::PACKETS.wire_bytes(Self::PACKETS.payload);
        let least = |time: Nanos| {
            let rates = self.shapes.iter().map(|shape| self.fabric.settings(*shape).topology);
            let each = rates.map(|of| of.host_rate.bytes(time).min(of.fabric_rate.bytes(time)));
            each.min().unwrap_or(0)
        };
        let bytes = match self.fabric.buffer {
            Buffers::PerPort(bytes) | Buffers::Shared(bytes) => bytes,
            Buffers::PerPortTime(time) => least(time),
        };
        if bytes < packet {
            let problem =
                format!("a full packet has {packet} bytes on the wire; try per-port=150000");
            return Err(OptionsError::new("buffer", problem));
        }
        Ok(())
    }

    fn check_processors(&self) -> Result<(), OptionsError> {
        let packet = Self::full_bytes();
        if self.processors.socket_buffer.is_some_and(|bytes| bytes < u64::from(packet)) {
            let problem = format!("a full packet has {packet} bytes on the wire; try 4MB");
            return Err(OptionsError::new("socket-buffer", problem));
        }
        Ok(())
    }

    /// Returns the length of a full-size packet on the wire.
    pub(super) fn full_bytes() -> u32 {
        Self::PACKETS.wire_bytes(Self::PACKETS.payload) as u32
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

    /// Rejects a value that is given twice: it must be a mistake, and its points would only take
    /// time.
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

/// W4 at 80 % load, as in the paper.
impl Default for SweepOptions {
    fn default() -> Self {
        defaults()
    }
}

impl Preset {
    /// Returns the configuration of apus for a workload.
    pub(super) fn config(self, workload: &Workload) -> Config {
        match self {
            Self::Sigcomm18 => preset::sigcomm18_config(workload).expect("valid for any workload"),
            Self::Shipped => Config::default(),
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&name(self))
    }
}

impl fmt::Display for PeerModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&name(self))
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&name(self))
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
