//! What does a seed decide?
//!
//! Everything. A [`Scenario`] is a pure function of its seed, and the run is a pure function of the scenario.

use std::fmt;

use apus_proto::Config;

use super::call::{Answer, Call};
use super::draw;
use apus_sim::fabric::{Buffers, Settings};
use apus_sim::fault::{self, Outages};
use apus_sim::message::HostId;
use apus_workload::time::{MICROSECOND, Nanos};

/// What runs on the hosts of a fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Peers {
    /// Mostly apus alone; in every tenth fabric some hosts run the Linux module.
    #[default]
    Drawn,
    /// Apus alone.
    Apus,
    /// Some hosts of each fabric run the Linux module, and the others apus in the kernel profile.
    Kernel,
}

/// Everything that decides a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Where it was drawn from.
    pub seed: u64,
    /// Parameters of all transports.
    pub config: Config,
    /// Hosts, switches, links.
    pub fabric: Settings,
    /// Hosts that run the Linux module; all others run apus.
    pub kernel_hosts: Vec<HostId>,
    /// Bytes of the longest packet, headers included; what drivers tell their transports.
    pub packet_limit: u32,
    /// Whether drivers tell their transports the rate of the link.
    pub knows_rate: bool,
    /// Whether applications take messages only when they are through with them.
    pub takes_late: bool,
    /// What is done, in order of time.
    pub calls: Vec<Call>,
    /// How the sizes were drawn, in words.
    pub sizes: String,
    /// What goes wrong with packets.
    pub faults: fault::Settings,
    /// What goes wrong with hosts.
    pub outages: Outages,
    /// When the faults end.
    pub heal_at: Nanos,
}

impl Scenario {
    /// What a seed decides, with peers as they are drawn.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        Self::draw_with(seed, Peers::Drawn)
    }

    /// What a seed decides, with these peers.
    #[must_use]
    pub fn draw_with(seed: u64, peers: Peers) -> Self {
        draw::scenario(seed, peers)
    }

    /// Whether corrupted packets get through, so that nothing is promised but that everything ends.
    #[must_use]
    pub fn lets_corruption_through(&self) -> bool {
        self.faults.corruption > 0 && self.faults.corrupted == fault::Corruption::Unnoticed
    }

    /// Number of hosts.
    #[must_use]
    pub const fn hosts(&self) -> u32 {
        self.fabric.topology.shape.hosts()
    }
}

/// For people: what was drawn, one line for each thing that is not as usual.
impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let topology = &self.fabric.topology;
        let delays = topology.delays;
        let micros = |nanos: Nanos| nanos as f64 / MICROSECOND as f64;
        writeln!(
            f,
            "  topology   {}, {} and {} Mbit/s, delays in ns: out {}, in {}, switch {}, link {}, more per rack {}",
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
            Buffers::Shared(bytes) => write!(f, "  switches   {bytes} bytes for all ports of one")?,
        }
        writeln!(f, ", packets of up to {} bytes", self.packet_limit)?;
        write!(f, "  options    {} profile", self.config.profile())?;
        for (parameter, value) in self.config.values().filter(|(p, value)| *value != p.default) {
            write!(f, ", {}={value}", parameter.name)?;
        }
        let known = if self.knows_rate { "known" } else { "not known" };
        writeln!(f, "; rate of the link {known}")?;
        if !self.kernel_hosts.is_empty() {
            writeln!(f, "  modules    hosts {:?} run the Linux module", self.kernel_hosts)?;
        }
        self.write_load(f)?;
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
    fn write_load(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |what: fn(&Call) -> bool| self.calls.iter().filter(|call| what(call)).count();
        let bytes: u64 = self.calls.iter().map(|c| u64::from(c.request + c.response)).sum();
        writeln!(
            f,
            "  workload   {} calls, {bytes} bytes, {}; {} with a deadline, {} cancelled, {} abandoned, \
             {} idempotent; messages are taken {}",
            self.calls.len(),
            self.sizes,
            count(|call| call.deadline.is_some()),
            count(|call| call.cancel.is_some()),
            count(|call| call.answer == Answer::Abandon),
            count(|call| call.idempotent),
            if self.takes_late { "late" } else { "at once" },
        )
    }
}

/// The limit of what may be granted and not received (GRANT-5), worked out from the configuration and the
/// link as `docs/spec/grants.md` says it.
pub(crate) fn max_incoming(scenario: &Scenario) -> u64 {
    let config = &scenario.config;
    if config.max_incoming() > 0 {
        return config.max_incoming();
    }
    let known =
        if scenario.knows_rate { scenario.fabric.topology.host_rate.mbps() } else { 25_000 };
    let mbps = if config.link_mbps() > 0 { config.link_mbps() } else { known };
    (mbps * 128 / 8).max(40_000)
}

/// The most bytes that may leave without a GRANT (PRIO-1).
pub(crate) fn most_unscheduled(config: &Config) -> u64 {
    config.unsched_bytes().max(config.unsched_bytes_max())
}
