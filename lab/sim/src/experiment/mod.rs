//! Experiments: the messages of a workload in a fabric.
//!
//! An [`Experiment`] is a value, and [`Experiment::run`] is a pure function of it: the same
//! experiment gives the same [`ExperimentReport`] on any machine.
//!
//! The messages of a run have three parts. The first are the *first contacts* between all pairs of
//! hosts, because they cost a round trip and are not part of a steady state. The *warm-up* fills
//! the queues. While the third part is submitted, all deliveries are measured.

mod backlog;
mod load;
mod measurement;
mod message_rate;
mod recovery;
mod slowdown;

pub use load::{Load, Pattern};
pub use measurement::Completion;
pub use slowdown::{Bin, CLOSINGS, MEDIUM, Slowdown};

use std::collections::VecDeque;
use std::iter::Peekable;
use std::ops::Range;

use apus_proto::Config;
use apus_workload::{PacketOverhead, Workload};

use crate::dctcp::{self, DctcpHost};
use crate::fabric::{Counters, Regions, Settings};
use crate::host::{Answer, ApusHost, Host, MixedHost, ProcessesHost, Shared};
use crate::message::{HostId, Message};
use crate::network::Network;
use crate::oracle::Oracle;
use crate::processor::{Processor, ProcessorHost, Stall};
use crate::sird::{self, SirdHost};
use crate::topology::Topology;
use apus_workload::time::{MICROSECOND, Nanos, SECOND};
use measurement::Measurement;
use recovery::Recovery;

/// The transport that carries the messages.
#[derive(Clone, Debug, PartialEq)]
pub enum Carrier {
    /// apus with this configuration.
    Apus(Config),
    /// apus with this configuration, where the processes of a host do not share state. Equal to
    /// `Apus` if a host has one process.
    Apart(Config),
    /// apus with this configuration, in the kernel profile, on every second host, and a model of
    /// the Linux module on the others ([`MixedHost`]).
    Mixed(Config),
    /// DCTCP over established connections. It needs [`Settings::mark_at`] and carries one-way
    /// messages only ([`Answer::Nothing`]).
    Dctcp(dctcp::Config),
    /// SIRD. It needs [`Settings::mark_at`], unlimited buffers and hosts without processors,
    /// because it has no loss recovery, and carries one-way messages only ([`Answer::Nothing`]).
    Sird(sird::Config),
    /// The omniscient scheduler. It uses no fabric: faults, buffers and paths have no effect, and
    /// it has no counters.
    Oracle,
}

/// All parameters of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// The fabric.
    pub fabric: Settings,
    /// Transport.
    pub carrier: Carrier,
    /// Configuration of apus that determines the wire bytes of a message, and so the load.
    pub load_config: Config,
    /// Sizes of the messages.
    pub workload: Workload,
    /// Share of time that the bottleneck is busy with the messages: links to hosts, or core links
    /// or host processors if they are busier. Above 0 and up to 1.
    pub load: f64,
    /// Traffic pattern.
    pub pattern: Pattern,
    /// Responses of receivers.
    pub answer: Answer,
    /// Division of messages into packets.
    pub packets: PacketOverhead,
    /// Messages submitted during the measurement: about as many are delivered and measured.
    pub messages: u32,
    /// Messages before the measurement.
    pub warm_up: u32,
    /// Whether all pairs of hosts exchange a first message before the workload.
    pub first_contact: bool,
    /// Processes of each host, behind one queue of its interface ([`ProcessesHost`]). A message is
    /// between the same process of two hosts. `None`: one transport, which passes a packet to the
    /// interface when the link is free. Only apus supports processes.
    pub processes: Option<u32>,
    /// Processors of the hosts; without them, packets take no time. The oracle has none.
    pub processor: Option<Processor>,
    /// Duration of a single stall of the last host's processor, after a quarter of the measurement;
    /// 0 for no stall.
    pub stall: Nanos,
    /// Seed of everything random except the paths of packets.
    pub seed: u64,
}

/// Result of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentReport {
    /// Completion times of messages.
    pub slowdown: Slowdown,
    /// Counters of the fabric during the measurement.
    pub counters: Counters,
    /// Messages delivered during the measurement.
    pub messages: u64,
    /// Messages that failed during the measurement.
    pub failed: u64,
    /// Payload bytes of the delivered messages.
    pub bytes: u64,
    /// Payload bytes per second that a host received on average, from delivered messages and, if
    /// receivers echo them, from responses.
    pub goodput: f64,
    /// Share of time that processors were busy during the measurement; `None` without processors.
    pub processor_load: Option<f64>,
    /// Time from the end of the stall until the backlog had fallen to its maximum before the stall;
    /// `None` without a stall or without a recovery.
    pub recovery: Option<Nanos>,
    /// Share of the capacity of links to hosts taken by the packets of the delivered messages.
    pub carried: f64,
    /// DATA packets that reached their hosts in the whole run.
    pub packets: u64,
    /// Duration of the run in simulated time.
    pub simulated: Nanos,
    /// Growth of the backlog, as a share of the submitted bytes.
    pub growth: f64,
    /// Growth that is compatible with a steady state: a little, plus the growth of the oracle's
    /// backlog with the same messages.
    pub allowed_growth: f64,
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Share of the messages that have been submitted.
    pub share: f64,
    /// DATA packets that have reached their hosts.
    pub packets: u64,
}

impl ExperimentReport {
    /// Returns whether the fabric carried the offered load. If not, the slowdowns have no meaning.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        self.growth <= self.allowed_growth
    }

    /// Returns the share of time that links to hosts were busy during the measurement. For networks
    /// without counters, only the packets of messages count.
    #[must_use]
    pub fn achieved_load(&self) -> f64 {
        if self.counters.time > 0 { self.counters.utilisation } else { self.carried }
    }
}

/// Time between two first contacts, of all hosts together.
const FIRST_CONTACT_GAP: Nanos = 100;
/// Time from the last first contact until the fabric is quiet. Acknowledgments that no packet
/// carries are requested after milliseconds, but do not disturb the first messages.
const QUIET: Nanos = 100 * MICROSECOND;
/// Limits of a batch of messages: most messages, and bytes after which no message is added. Less
/// than a second of work, and much more than the start of the threads costs. Chosen by us.
const BATCH: (usize, u64) = (4_096, 50_000_000);

/// Parameters of a run that do not change its result.
struct Run<'a> {
    threads: usize,
    /// Growth of the backlog that is compatible with a steady state, for the report.
    allowed: f64,
    progress: &'a mut dyn FnMut(Progress),
    observe: &'a mut dyn FnMut(Completion),
}

/// Returns the next messages, up to the first message of the measurement or from after its last
/// one.
fn next_batch(
    messages: &mut Peekable<impl Iterator<Item = Message>>,
    window: &Range<u32>,
) -> Vec<Message> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while let Some(message) = messages.next_if(|next| {
        let fits = batch.len() < BATCH.0 && bytes < BATCH.1;
        batch.is_empty() || fits && next.number != window.start && next.number != window.end
    }) {
        bytes += u64::from(message.bytes);
        batch.push(message);
    }
    batch
}

impl Experiment {
    /// Returns the growth of the backlog that is compatible with a steady state, as a share of the
    /// submitted bytes: a little, plus the growth of the oracle's backlog with the same messages.
    #[must_use]
    pub fn allowed_growth(&self) -> f64 {
        let mut oracle = Oracle::new(&self.fabric.topology, self.packets, self.answer);
        let mut run = Run { threads: 1, allowed: 0.0, progress: &mut |_| {}, observe: &mut |_| {} };
        backlog::allowed(self.drive(&mut oracle, &mut run).growth)
    }

    /// Runs the experiment in one thread. `allowed` is [`Experiment::allowed_growth`], which is
    /// computed once for several transports with the same messages. `progress` is called from time
    /// to time.
    #[must_use]
    pub fn run(&self, allowed: f64, progress: &mut dyn FnMut(Progress)) -> ExperimentReport {
        self.run_observed(1, allowed, progress, &mut |_| {})
    }

    /// Runs the experiment as [`Experiment::run`] does, in up to `threads` threads, which affects
    /// only its duration. In addition, `observe` is called with each measured message.
    #[must_use]
    pub fn run_observed(
        &self,
        threads: usize,
        allowed: f64,
        progress: &mut dyn FnMut(Progress),
        observe: &mut dyn FnMut(Completion),
    ) -> ExperimentReport {
        let mut run = Run { threads, allowed, progress, observe };
        match &self.carrier {
            Carrier::Apus(config) | Carrier::Apart(config) => {
                let publishes = matches!(self.carrier, Carrier::Apus(_));
                match self.processes {
                    Some(processes) => {
                        let hosts = || {
                            let shared = self.shared(config);
                            move |id| {
                                ProcessesHost::new(
                                    id,
                                    &shared,
                                    self.seed_of(id),
                                    processes,
                                    publishes,
                                )
                            }
                        };
                        self.drive_fabric(hosts, &mut run)
                    }
                    None => {
                        let hosts = || {
                            let shared = self.shared(config);
                            move |id| ApusHost::new(id, shared.clone(), self.seed_of(id))
                        };
                        self.drive_fabric(hosts, &mut run)
                    }
                }
            }
            Carrier::Mixed(config) => {
                let hosts = || {
                    let shared = self.shared(config);
                    move |id| MixedHost::new(id, shared.clone(), self.seed_of(id))
                };
                self.drive_fabric(hosts, &mut run)
            }
            Carrier::Dctcp(config) => {
                self.drive_fabric(|| |id| DctcpHost::new(id, *config), &mut run)
            }
            Carrier::Sird(config) => {
                self.drive_fabric(|| |id| SirdHost::new(id, *config), &mut run)
            }
            Carrier::Oracle => {
                let mut oracle = Oracle::new(&self.fabric.topology, self.packets, self.answer);
                self.drive(&mut oracle, &mut run)
            }
        }
    }

    /// Returns the shared state of hosts with apus.
    fn shared(&self, config: &Config) -> Shared {
        let sizes = self.workload.sizes();
        let longest = sizes.largest().max(Message::SHORTEST);
        let longest = longest.max(self.answer.bytes(longest));
        let rate = self.fabric.topology.host_rate;
        Shared::new(config.clone(), self.answer, rate, self.packets, longest)
    }

    /// Returns a host's seed.
    const fn seed_of(&self, id: HostId) -> u64 {
        // Multiples of an odd number differ between hosts.
        (self.seed << 32 | id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Runs the messages through a fabric. `hosts` is called for each region and returns a function
    /// that creates the hosts of that region.
    fn drive_fabric<H: Host<Body: Send> + Send, F: Fn(HostId) -> H>(
        &self,
        mut hosts: impl FnMut() -> F,
        run: &mut Run<'_>,
    ) -> ExperimentReport {
        let Some(processor) = self.processor else {
            return self.drive(&mut Regions::new(&self.fabric, run.threads, hosts), run);
        };
        let stalled = self.fabric.topology.shape.hosts() - 1;
        let hosts = || {
            let host = hosts();
            move |id| {
                let stall = self.stalled().filter(|_| id == stalled);
                ProcessorHost::new(host(id), processor, stall.into_iter().collect())
            }
        };
        self.drive(&mut Regions::new(&self.fabric, run.threads, hosts), run)
    }

    /// Returns the stall of the last host, if any.
    fn stalled(&self) -> Option<Stall> {
        if self.stall == 0 || self.processor.is_none() {
            return None;
        }
        let contacts = self.first_contacts();
        let begin = contacts.last().map_or(0, |last| last.at + QUIET);
        let before = f64::from(self.warm_up) + f64::from(self.messages) / 4.0;
        let from = begin + (before / self.messages_per_second() * SECOND as f64) as Nanos;
        Some(Stall { from, until: from + self.stall })
    }

    /// Runs the messages through a network.
    fn drive(&self, network: &mut impl Network, run: &mut Run<'_>) -> ExperimentReport {
        let first_contacts = self.first_contacts();
        let first = first_contacts.len() as u32;
        let window = first + self.warm_up..first + self.warm_up + self.messages;
        let topology = self.fabric.topology;
        let sizes = self.workload.sizes();
        let (packets_of, answer) = (self.packets, self.answer);
        let unscheduled = self.load_config.unsched_bytes() as u32;
        let counted = window.clone();
        let mut measurement =
            Measurement::new(topology, packets_of, answer, sizes, unscheduled, first, counted);
        let (mut packets, mut now, mut began) = (0, 0, (0, 0));
        let mut recovery = self.stalled().map(Recovery::new);
        let mut outcomes = VecDeque::new();

        let load = self.load(&first_contacts);
        let mut messages = first_contacts.into_iter().chain(load).peekable();
        // The load is endless.
        while let Some(&first) = messages.peek() {
            if now < first.at {
                now = first.at;
                network.advance(now, &mut |_, _| {});
            }
            if first.number == window.end {
                break;
            }
            if first.number == window.start {
                packets = network.data_packets();
                network.reset_counters();
                began = (now, measurement.wire_bytes);
                measurement.begin();
            }
            let batch = next_batch(&mut messages, &window);
            now = messages.peek().map_or(now, |next| next.at);
            network.carry(&batch, now, &mut |at, outcome| outcomes.push_back((at, outcome)));
            let mut record = |measurement: &mut Measurement, until: Nanos| {
                while let Some(&(at, outcome)) = outcomes.front().filter(|(at, _)| *at < until) {
                    outcomes.pop_front();
                    measurement.record_outcome(at, outcome).into_iter().for_each(&mut *run.observe);
                }
            };
            for message in &batch {
                record(&mut measurement, message.at);
                measurement.submitted(message);
                if let Some(recovery) = recovery.as_mut().filter(|_| message.number >= window.start)
                {
                    recovery.observe(message.at, measurement.backlog.bytes());
                }
            }
            record(&mut measurement, Nanos::MAX);
            let share = f64::from(first.number) / f64::from(window.end);
            (run.progress)(Progress { share, packets: packets + network.data_packets() });
        }
        let counters = network.counters();
        let slowdown = measurement.summary();
        let seconds = (now - began.0).max(1) as f64 / SECOND as f64;
        let bytes = measurement.bytes + measurement.response_bytes;
        let goodput = bytes as f64 / seconds / f64::from(topology.shape.hosts());
        ExperimentReport {
            messages: slowdown.by_size.iter().map(|bin| bin.count).sum(),
            slowdown,
            failed: measurement.failed,
            bytes: measurement.bytes,
            goodput,
            processor_load: self.processor.map(|_| {
                let all = counters.time as f64 * f64::from(topology.shape.hosts());
                counters.hosts.busy as f64 / all.max(1.0)
            }),
            carried: self.share_of_links(now - began.0, measurement.wire_bytes - began.1),
            packets: packets + counters.data_packets,
            recovery: recovery.and_then(|recovery| recovery.time()),
            counters,
            simulated: now,
            growth: measurement.backlog.growth(),
            allowed_growth: run.allowed,
        }
    }

    /// Returns the share of the capacity of links to hosts that `wire_bytes` bytes take in `time`.
    fn share_of_links(&self, time: Nanos, wire_bytes: u64) -> f64 {
        let Topology { shape, host_rate, .. } = self.fabric.topology;
        let all = f64::from(shape.hosts()) * host_rate.bytes(time) as f64;
        wire_bytes as f64 / all.max(1.0)
    }

    /// Returns the first contacts: one message from each process to the same one of each other
    /// host.
    fn first_contacts(&self) -> Vec<Message> {
        let hosts = self.fabric.topology.shape.hosts();
        if !self.first_contact {
            return Vec::new();
        }
        // In each round every host sends one message and receives one.
        let pairs =
            (1..hosts).flat_map(|round| (0..hosts).map(move |from| (from, (from + round) % hosts)));
        let processes = self.processes.unwrap_or(1) as usize;
        pairs
            .flat_map(|pair| std::iter::repeat_n(pair, processes))
            .zip(0..)
            .map(|((from, to), number)| {
                let at = Nanos::from(number) * FIRST_CONTACT_GAP;
                Message { number, from, to, bytes: Message::SHORTEST, at }
            })
            .collect()
    }

    /// Returns the messages a second of all hosts together.
    fn messages_per_second(&self) -> f64 {
        let topology = &self.fabric.topology;
        let links = message_rate::messages_per_second(
            self.load,
            topology,
            &self.workload,
            &self.packets,
            &self.load_config,
            self.answer,
        );
        let Some(Processor { costs, .. }) = &self.processor else { return links };
        let one_host = message_rate::processed_per_second(
            costs,
            topology.host_rate,
            &self.workload,
            &self.packets,
            &self.load_config,
            self.answer,
        );
        links.min(self.load * one_host * f64::from(topology.shape.hosts()))
    }

    /// Returns the messages of the workload.
    fn load(&self, first_contacts: &[Message]) -> Load {
        let topology = &self.fabric.topology;
        let sizes = self.workload.sizes();
        let per_second = self.messages_per_second();
        let begin = first_contacts.last().map_or(0, |last| last.at + QUIET);
        let hosts = topology.shape.hosts();
        let first = first_contacts.len() as u32;
        Load::new(sizes.clone(), hosts, self.pattern, per_second, begin, first, self.seed)
    }
}
