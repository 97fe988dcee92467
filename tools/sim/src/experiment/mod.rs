//! What happens to the messages of a workload in a fabric?
//!
//! An [`Experiment`] is a value; [`Experiment::run`] is a pure function of it: the same experiment gives the
//! same [`Report`], on any machine.
//!
//! Messages come in three parts. *Greetings* make all pairs of hosts known to each other, because first
//! contacts cost a round trip and belong to no steady state. The *warm-up* fills the queues. While the third
//! part is handed over, everything is counted that is delivered.

mod backlog;
mod cost;
mod load;
mod slowdown;
mod tally;

pub use load::{Load, Pattern};
pub use slowdown::{Bin, CLOSINGS, Slowdown};

use apus_proto::Config;
use apus_workload::{PacketOverhead, Workload};

use crate::dctcp::{self, DctcpHost};
use crate::fabric::{Counters, Fabric, Settings};
use crate::host::{Answer, ApusHost, MixedHost, Shared};
use crate::message::{HostId, Message};
use crate::network::Network;
use crate::oracle::Oracle;
use crate::topology::Topology;
use apus_workload::time::{MICROSECOND, Nanos};
use tally::Tally;

/// The transport that carries the messages.
#[derive(Clone, Debug, PartialEq)]
pub enum Carrier {
    /// apus, with this configuration.
    Apus(Config),
    /// apus with this configuration, which has the kernel profile, on every second host, and a model of the Linux
    /// module on the others ([`MixedHost`]).
    Mixed(Config),
    /// DCTCP over connections that are established; needs [`Settings::mark_at`], and carries one-way
    /// messages only ([`Answer::Nothing`]).
    Dctcp(dctcp::Config),
    /// The omniscient scheduler, which needs no fabric: its faults, buffers and ways of packets do not
    /// matter, and it counts nothing.
    Oracle,
}

/// Everything that decides a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// The fabric.
    pub fabric: Settings,
    /// Who carries the messages.
    pub carrier: Carrier,
    /// How the load is reckoned: what apus with this configuration needs for a message.
    pub reckoned_with: Config,
    /// Sizes of the messages.
    pub workload: Workload,
    /// Share of the links to hosts that is busy, above 0 and up to 1.
    pub load: f64,
    /// Who sends to whom.
    pub pattern: Pattern,
    /// What receivers answer.
    pub answer: Answer,
    /// How messages are cut into packets.
    pub packets: PacketOverhead,
    /// Messages that are handed over in the window of measurement: about as many are delivered and count.
    pub messages: u32,
    /// Messages before those.
    pub warm_up: u32,
    /// Whether all pairs of hosts are made known to each other first.
    pub greet: bool,
    /// Decides everything that is random, but for the ways of packets.
    pub seed: u64,
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// How long messages took.
    pub slowdown: Slowdown,
    /// What the fabric saw in the window of measurement.
    pub counters: Counters,
    /// Messages that were delivered in it.
    pub messages: u64,
    /// Messages that failed in it.
    pub failed: u64,
    /// Payload bytes of those that were delivered.
    pub bytes: u64,
    /// Share of the links to hosts that the packets of the delivered messages took.
    pub carried: f64,
    /// Data packets that reached their hosts in the whole run.
    pub packets: u64,
    /// How long the run lasted in the fabric's time.
    pub simulated: Nanos,
    /// Share of the bytes handed over by which the backlog grew.
    pub growth: f64,
    /// How much of that is no sign of a fabric that cannot carry what it is offered: a little, and what the
    /// oracle's backlog grew with the same messages.
    pub allowed_growth: f64,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Share of the messages that have been handed over.
    pub share: f64,
    /// Data packets that have reached their hosts.
    pub packets: u64,
}

impl Report {
    /// Whether the fabric carried what it was offered. If not, the slowdowns mean nothing.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        self.growth <= self.allowed_growth
    }

    /// Share of the links to hosts that was busy in the window of measurement; without a fabric that counts,
    /// with the packets of messages alone.
    #[must_use]
    pub fn achieved_load(&self) -> f64 {
        if self.counters.time > 0 { self.counters.utilisation } else { self.carried }
    }
}

/// Between two greetings, of all hosts together.
const GREETING_GAP: Nanos = 100;
/// After the last greeting, until everything is quiet: acknowledgments that no packet carries are asked
/// for after milliseconds, but do no harm to the first messages.
const QUIET: Nanos = 100 * MICROSECOND;
/// Messages, and bytes of messages, between two reports of progress at most: less than a second's work.
const PROGRESS_EVERY: (u32, u64) = (4_096, 50_000_000);

impl Experiment {
    /// Share of the bytes handed over by which the backlog may grow in a steady state: a little, and what the
    /// oracle's backlog grows with the same messages.
    #[must_use]
    pub fn allowed_growth(&self) -> f64 {
        let mut oracle = Oracle::new(&self.fabric.topology, self.packets, self.answer);
        backlog::allowed(self.drive(&mut oracle, 0.0, &mut |_| {}).growth)
    }

    /// Runs it. `allowed` is [`Experiment::allowed_growth`]: who compares several carriers of the same
    /// messages needs it once. `progress` learns from time to time how far it is.
    #[must_use]
    pub fn run(&self, allowed: f64, progress: &mut dyn FnMut(Progress)) -> Report {
        match &self.carrier {
            Carrier::Apus(config) => {
                let shared = self.shared(config);
                let mut fabric = Fabric::new(&self.fabric, |id| {
                    ApusHost::new(id, shared.clone(), self.seed_of(id))
                });
                self.drive(&mut fabric, allowed, progress)
            }
            Carrier::Mixed(config) => {
                let shared = self.shared(config);
                let mut fabric = Fabric::new(&self.fabric, |id| {
                    MixedHost::new(id, shared.clone(), self.seed_of(id))
                });
                self.drive(&mut fabric, allowed, progress)
            }
            Carrier::Dctcp(config) => {
                let mut fabric = Fabric::new(&self.fabric, |id| DctcpHost::new(id, *config));
                self.drive(&mut fabric, allowed, progress)
            }
            Carrier::Oracle => {
                let mut oracle = Oracle::new(&self.fabric.topology, self.packets, self.answer);
                self.drive(&mut oracle, allowed, progress)
            }
        }
    }

    /// What hosts with apus share.
    fn shared(&self, config: &Config) -> Shared {
        let longest = self.workload.sizes().largest().max(Message::SHORTEST);
        let rate = self.fabric.topology.host_rate;
        Shared::new(config.clone(), self.answer, rate, self.packets, longest)
    }

    /// A host's own seed.
    const fn seed_of(&self, id: HostId) -> u64 {
        // Multiples of an odd number are different for different hosts.
        (self.seed << 32 | id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Lets a network carry the messages. `allowed` is what the report says about growth.
    fn drive(
        &self,
        network: &mut impl Network,
        allowed: f64,
        progress: &mut dyn FnMut(Progress),
    ) -> Report {
        let greetings = self.greetings();
        let first = greetings.len() as u32;
        let window = first + self.warm_up..first + self.warm_up + self.messages;
        let topology = self.fabric.topology;
        let sizes = self.workload.sizes();
        let mut tally =
            Tally::new(topology, self.packets, self.answer, sizes, first, window.clone());
        let (mut packets, mut now, mut began) = (0, 0, (0, 0));
        let mut silent = (0, 0);

        for message in greetings.iter().copied().chain(self.load(&greetings)) {
            now = message.at;
            network.advance(now, &mut |at, outcome| tally.tell(at, outcome));
            if message.number == window.end {
                break;
            }
            if message.number == window.start {
                packets = network.counters().data_packets;
                network.reset_counters();
                began = (now, tally.wire_bytes);
                tally.begin();
            }
            network.submit(&message);
            tally.submitted(&message);
            silent = (silent.0 + 1, silent.1 + u64::from(message.bytes));
            if silent.0 >= PROGRESS_EVERY.0 || silent.1 >= PROGRESS_EVERY.1 {
                silent = (0, 0);
                let share = f64::from(message.number) / f64::from(window.end);
                let packets = packets + network.counters().data_packets;
                progress(Progress { share, packets });
            }
        }
        let counters = network.counters();
        let slowdown = tally.summary();
        Report {
            messages: slowdown.by_size.iter().map(|bin| bin.count).sum(),
            slowdown,
            failed: tally.failed,
            bytes: tally.bytes,
            carried: self.share_of_links(now - began.0, tally.wire_bytes - began.1),
            packets: packets + counters.data_packets,
            counters,
            simulated: now,
            growth: tally.backlog.growth(),
            allowed_growth: allowed,
        }
    }

    /// Share of the links to hosts that so many bytes take in this time.
    fn share_of_links(&self, time: Nanos, wire_bytes: u64) -> f64 {
        let Topology { shape, host_rate, .. } = self.fabric.topology;
        let all = f64::from(shape.hosts()) * host_rate.bytes(time) as f64;
        wire_bytes as f64 / all.max(1.0)
    }

    /// The first messages, one from each host to each other one.
    fn greetings(&self) -> Vec<Message> {
        let hosts = self.fabric.topology.shape.hosts();
        if !self.greet {
            return Vec::new();
        }
        // In each round every host sends one message and gets one.
        let pairs =
            (1..hosts).flat_map(|round| (0..hosts).map(move |from| (from, (from + round) % hosts)));
        pairs
            .zip(0..)
            .map(|((from, to), number)| {
                let at = Nanos::from(number) * GREETING_GAP;
                Message { number, from, to, bytes: Message::SHORTEST, at }
            })
            .collect()
    }

    /// The messages of the workload.
    fn load(&self, greetings: &[Message]) -> Load {
        let topology = &self.fabric.topology;
        let sizes = self.workload.sizes();
        let per_second = cost::messages_per_second(
            self.load,
            topology,
            &self.workload,
            &self.packets,
            &self.reckoned_with,
            self.answer,
        );
        let begin = greetings.last().map_or(0, |last| last.at + QUIET);
        let hosts = topology.shape.hosts();
        let first = greetings.len() as u32;
        Load::new(sizes.clone(), hosts, self.pattern, per_second, begin, first, self.seed)
    }
}
