//! Scenarios: all parameters that a seed determines.
//!
//! A [`Scenario`] is a pure function of its seed, and the run is a pure function of the scenario
//! (SWARM-1).

use std::collections::BTreeMap;
use std::fmt;

use apus_proto::Config;
use apus_wire::{DATA_HEADER_LEN, Role};

use super::attack::{Attack, Position};
use super::call::{PlannedCall, ServerAction};
use super::ends::{Division, Ends};
use super::meddling::Meddling;
use super::observation::CallId;
use apus_sim::fabric::{Buffers, Settings};
use apus_sim::fault::{self, Outages};
use apus_sim::message::HostId;
use apus_sim::processor::{Cost, Costs, Processor, Stall};
use apus_workload::time::{MICROSECOND, Nanos};

/// Software on the hosts of a fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PeerModel {
    /// Usually apus only. In every tenth fabric some hosts run the Linux module; in another tenth
    /// one host is hostile, in another packets are sealed, and in another hosts are divided.
    #[default]
    Random,
    /// Apus only.
    Apus,
    /// Some hosts of each fabric run the Linux module, the others apus in the kernel profile.
    Kernel,
    /// Apus, and one host of each fabric attacks the others.
    Hostile,
    /// Apus; each host has an endpoint with shards, or several processes.
    Divided,
    /// Apus with sealed packets, and a host on the path between all of them.
    Sealed,
}

/// All parameters of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The seed.
    pub seed: u64,
    /// Protocol parameters of all transports.
    pub config: Config,
    /// Hosts, switches and links.
    pub fabric: Settings,
    /// The protocol instances on each host. Calls are between ends.
    pub division: Division,
    /// Whether the processes of a host publish their state to each other. Shards always do.
    pub processes_publish: bool,
    /// Restarts of single processes whose hosts keep running, in chronological order.
    pub restarts: Vec<(Nanos, HostId)>,
    /// Hosts that run the Linux module; all others run apus.
    pub kernel_hosts: Vec<HostId>,
    /// Length of the longest packet in bytes, headers included; drivers report it to their
    /// transports.
    pub packet_limit: u32,
    /// Whether drivers report the link rate to their transports.
    pub has_link_rate: bool,
    /// Whether applications consume messages only after processing them.
    pub consumes_late: bool,
    /// Calls in chronological order.
    pub calls: Vec<PlannedCall>,
    /// Description of the message lengths.
    pub sizes: String,
    /// Packet faults.
    pub faults: fault::Settings,
    /// Host outages.
    pub outages: Outages,
    /// How packets share datagrams; if `None`, each packet is a separate datagram.
    pub sharing: Option<Sharing>,
    /// Processors of the hosts; without them, packets take no time.
    pub processors: Option<Processors>,
    /// The overload of a run without other disturbances.
    pub overload: Option<Overload>,
    /// The attack of one host on the others.
    pub attack: Option<Attack>,
    /// Calls of honest hosts to the hostile one, which may answer with anything: times and callers.
    /// They are not checked.
    pub baits: Vec<(Nanos, HostId)>,
    /// If packets are sealed: the actions of a host on the path until [`Scenario::heal_at`].
    pub sealed: Option<Meddling>,
    /// Messages whose first packet in a session is lost once, by call, and the role of their
    /// sender. The loss depends on no other packet, and only a RESEND repairs it: it is the same in
    /// runs with and without an attack.
    pub lost: BTreeMap<CallId, Role>,
    /// End of all faults.
    pub heal_at: Nanos,
}

/// How packets share datagrams (WIRE-29), as in the drivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Maximum number of bursts that a driver gathers before the first leaves, at least 1.
    pub bursts: u32,
    /// Socket buffer of hosts without a processor, in bytes. A host with a processor reports the
    /// processor's socket buffer.
    pub receive_buffer: u64,
    /// Hosts that do not report their room (WIRE-28), like earlier versions: packets to them share
    /// no datagrams.
    pub older_hosts: Vec<HostId>,
}

/// Processors of all hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processors {
    /// The processor of each host.
    pub processor: Processor,
    /// Stalls of hosts; stalls of the same host do not overlap.
    pub stalls: Vec<(HostId, Stall)>,
}

/// A stall or a burst that overloads a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overload {
    /// Start.
    pub from: Nanos,
    /// End.
    pub until: Nanos,
    /// The host whose processor needs longest for the backlog: the server, its only client, or a
    /// stalled client.
    pub busiest: HostId,
}

impl Scenario {
    /// Returns the time that the packets of a call occupy the processor of `host`; 0 for a call
    /// between other hosts, and without processors.
    pub(crate) fn processing_time(&self, call: &PlannedCall, host: HostId) -> Nanos {
        let Some(Processors { processor, .. }) = &self.processors else { return 0 };
        let (sent, received) = if host == call.from {
            (call.request, call.response)
        } else if host == call.to {
            (call.response, call.request)
        } else {
            return 0;
        };
        let Costs { receive, send } = processor.costs;
        (self.picos(receive, received) + self.picos(send, sent)) / 1_000
    }

    /// Returns the time that a processor needs to receive a control packet, answer it, and receive
    /// a packet with `payload` bytes of payload; 0 without processors.
    pub(crate) fn repair_time(&self, payload: u32) -> Nanos {
        let Some(Processors { processor, .. }) = &self.processors else { return 0 };
        let Costs { receive, send } = processor.costs;
        (self.picos(receive, 1) + self.picos(send, 1) + self.picos(receive, payload)) / 1_000
    }

    /// Returns the time for the packets of a message in one direction, in picoseconds.
    fn picos(&self, cost: Cost, bytes: u32) -> u64 {
        let packets = u64::from(bytes.div_ceil(self.packet_limit - DATA_HEADER_LEN as u32));
        let headers = packets * (DATA_HEADER_LEN as u64 + FRAMING);
        packets * cost.picos_per_packet + (u64::from(bytes) + headers) * cost.picos_per_byte
    }
}

/// Bytes of a packet on the wire in addition to headers and payload of Homa: IPv4, UDP, Ethernet
/// with preamble and gap.
pub(crate) const FRAMING: u64 = 28 + 38;

impl Scenario {
    /// Returns whether corrupted packets are delivered unnoticed, so that only termination is
    /// promised. Sealing detects it.
    #[must_use]
    pub fn has_unnoticed_corruption(&self) -> bool {
        let is_unnoticed = self.faults.corrupted == fault::Corruption::Unnoticed;
        self.faults.corruption > 0 && is_unnoticed && self.sealed.is_none()
    }

    /// Returns whether hosts that have keys must keep them: there is no cause for new keys except
    /// the network's delays and losses. A server that has lost the session of a dormant client
    /// drops its keys (AMO-6, SEAL-11).
    pub(crate) fn keeps_keys(&self) -> bool {
        let keeps_sessions = self.config.max_dormant_sessions() >= u64::from(self.hosts());
        self.sealed == Some(Meddling::default()) && self.faults.corruption == 0 && keeps_sessions
    }

    /// Returns the stalls of an end's host.
    pub(crate) fn stalls_of(&self, host: HostId) -> Vec<Stall> {
        let stalls = self.processors.iter().flat_map(|processors| &processors.stalls);
        let host = self.ends().host_of(host);
        stalls.filter(|(each, _)| *each == host).map(|(_, stall)| *stall).collect()
    }

    /// Returns the calls with a message of `host` that loses its first packet.
    pub(crate) fn lost_at(&self, host: HostId) -> impl Iterator<Item = CallId> {
        let is_sender = move |(call, role): (&CallId, &Role)| {
            let PlannedCall { from, to, .. } = *self.calls.get(*call as usize)?;
            (host == if *role == Role::Client { from } else { to }).then_some(*call)
        };
        self.lost.iter().filter_map(is_sender)
    }

    /// Returns whether hosts answer requests of a hostile client. These messages are not planned:
    /// the order checker does not see them, so it can compute neither the bytes sent in order nor
    /// the share of the oldest message.
    pub(crate) fn serves_attacker(&self) -> bool {
        self.attack.is_some_and(|attack| attack.position == Position::Client)
    }

    /// Returns whether an endpoint belongs to an honest host.
    pub(crate) fn is_honest(&self, peer: HostId) -> bool {
        self.attack.is_none_or(|attack| peer < attack.host)
    }

    /// Returns the number of hosts.
    #[must_use]
    pub const fn hosts(&self) -> u32 {
        self.fabric.topology.shape.hosts()
    }

    /// Returns whether the ends of a host publish their state to each other (GRANT-17).
    pub(crate) const fn has_neighbours(&self) -> bool {
        match self.division {
            Division::Whole => false,
            Division::Shards(_) => true,
            Division::Processes(_) => self.processes_publish,
        }
    }

    /// Returns the ends of all hosts.
    pub(crate) const fn ends(&self) -> Ends {
        Ends::new(self.hosts(), self.division)
    }
}

/// Describes the scenario, one line for each part.
impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let topology = &self.fabric.topology;
        let delays = topology.delays;
        let micros = |nanos: Nanos| nanos as f64 / MICROSECOND as f64;
        writeln!(
            f,
            "  topology   {}, {} and {} Mbit/s, delays in ns: out {}, in {}, switch {}, link {}, additional per rack {}",
            topology.shape,
            topology.host_rate.mbps(),
            topology.fabric_rate.mbps(),
            delays.host_out,
            delays.host_in,
            delays.switch,
            delays.propagation,
            delays.per_rack,
        )?;
        match self.fabric.buffers {
            Buffers::PerPort(u64::MAX) => write!(f, "  switches   unlimited buffers")?,
            Buffers::PerPort(bytes) => write!(f, "  switches   {bytes} bytes for each port")?,
            Buffers::PerPortTime(time) => {
                write!(f, "  switches   what a link carries in {time} ns for each port")?;
            }
            Buffers::Shared(bytes) => write!(f, "  switches   {bytes} bytes for all ports of one")?,
        }
        if let Some(bytes) = self.fabric.mark_at {
            write!(f, ", marks from {bytes} waiting bytes on")?;
        }
        writeln!(f, ", packets of up to {} bytes", self.packet_limit)?;
        write!(f, "  options    {} profile", self.config.profile())?;
        for (parameter, value) in self.config.values().filter(|(p, value)| *value != p.default) {
            write!(f, ", {}={value}", parameter.name)?;
        }
        let known = if self.has_link_rate { "known" } else { "unknown" };
        writeln!(f, "; link rate {known}")?;
        if self.division != Division::Whole {
            let publish = if self.has_neighbours() { ", and publish what they do" } else { "" };
            let (division, apart) = (self.division, self.hosts());
            writeln!(
                f,
                "  division   {division:?}; the ends of a host are {apart} apart{publish}"
            )?;
        }
        for (at, end) in &self.restarts {
            writeln!(f, "  restart    end {end}, after {:.3} µs", micros(*at))?;
        }
        if !self.kernel_hosts.is_empty() {
            writeln!(f, "  modules    hosts {:?} run the Linux module", self.kernel_hosts)?;
        }
        self.write_load(f)?;
        self.write_sharing(f)?;
        self.write_processors(f)?;
        if let Some(attack) = &self.attack {
            writeln!(f, "  attack     {attack}; {} calls to it", self.baits.len())?;
        }
        if let Some(meddling) = &self.sealed {
            writeln!(f, "  sealed     {meddling}")?;
        }
        if !self.lost.is_empty() {
            writeln!(
                f,
                "  lost       the first packet of a message, for {} calls",
                self.lost.len()
            )?;
        }
        write!(f, "  faults     {:?}", self.faults)?;
        writeln!(f, ", healed after {:.3} µs", micros(self.heal_at))?;
        let Outages { partitions, pauses, crashes } = &self.outages;
        for (index, each) in partitions.iter().enumerate() {
            writeln!(f, "  partition  {index}: {each:?}")?;
        }
        pauses.iter().try_for_each(|each| writeln!(f, "  outage     {each:?}"))?;
        crashes.iter().try_for_each(|each| writeln!(f, "  outage     {each:?}"))
    }
}

impl Scenario {
    fn write_sharing(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Sharing { bursts, receive_buffer, older_hosts }) = &self.sharing else {
            return Ok(());
        };
        write!(f, "  datagrams  shared by packets of up to {bursts} bursts")?;
        if self.processors.is_none() {
            write!(f, ", {receive_buffer} bytes for a socket")?;
        }
        if !older_hosts.is_empty() {
            write!(f, "; hosts {older_hosts:?} do not state their room")?;
        }
        writeln!(f)
    }

    fn write_processors(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Processors { processor, stalls }) = &self.processors else { return Ok(()) };
        let Costs { receive, send } = processor.costs;
        writeln!(
            f,
            "  processors {} and {} ns to receive and send a packet, {} and {} ps for each byte of it, \
             {} bytes for a socket",
            receive.picos_per_packet / 1_000,
            send.picos_per_packet / 1_000,
            receive.picos_per_byte,
            send.picos_per_byte,
            processor.socket_buffer,
        )?;
        stalls
            .iter()
            .try_for_each(|(host, stall)| writeln!(f, "  outage     host {host}: {stall:?}"))?;
        self.overload.iter().try_for_each(|overload| writeln!(f, "  overload   {overload:?}"))
    }

    fn write_load(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count =
            |what: fn(&PlannedCall) -> bool| self.calls.iter().filter(|call| what(call)).count();
        let bytes: u64 = self.calls.iter().map(|c| u64::from(c.request + c.response)).sum();
        writeln!(
            f,
            "  workload   {} calls, {bytes} bytes, {}; {} with a deadline, {} cancelled, {} abandoned, \
             {} idempotent; messages are consumed {}",
            self.calls.len(),
            self.sizes,
            count(|call| call.deadline.is_some()),
            count(|call| call.cancel.is_some()),
            count(|call| call.answer == ServerAction::Abandon),
            count(|call| call.idempotent),
            if self.consumes_late { "after processing" } else { "at once" },
        )
    }
}

/// Returns the maximum number of bytes sent without a GRANT (PRIO-1).
pub(crate) fn max_unscheduled(config: &Config) -> u64 {
    config.unsched_bytes().max(config.unsched_bytes_max())
}
