//! Scenarios: everything that a seed determines.
//!
//! A [`Scenario`] is a pure function of its seed, and the run is a pure function of the scenario (SWARM-1).

use std::fmt;

use apus_proto::Config;

use super::call::{PlannedCall, ServerAction};
use apus_sim::fabric::{Buffers, Settings};
use apus_sim::fault::{self, Outages};
use apus_sim::message::HostId;
use apus_workload::time::{MICROSECOND, Nanos};

/// Software on the hosts of a fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PeerModel {
    /// Usually apus only; in every tenth fabric some hosts run the Linux module.
    #[default]
    Random,
    /// Apus only.
    Apus,
    /// Some hosts of each fabric run the Linux module, the others apus in the kernel profile.
    Kernel,
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
    /// Hosts that run the Linux module; all others run apus.
    pub kernel_hosts: Vec<HostId>,
    /// Length of the longest packet in bytes, headers included; drivers report it to their transports.
    pub packet_limit: u32,
    /// Whether drivers report the link rate to their transports.
    pub has_link_rate: bool,
    /// Whether applications consume messages only when they have processed them.
    pub consumes_late: bool,
    /// Calls in chronological order.
    pub calls: Vec<PlannedCall>,
    /// Description of the message lengths.
    pub sizes: String,
    /// Packet faults.
    pub faults: fault::Settings,
    /// Host outages.
    pub outages: Outages,
    /// End of all faults.
    pub heal_at: Nanos,
}

impl Scenario {
    /// Returns whether corrupted packets are delivered unnoticed, so that only termination is promised.
    #[must_use]
    pub fn has_unnoticed_corruption(&self) -> bool {
        self.faults.corruption > 0 && self.faults.corrupted == fault::Corruption::Unnoticed
    }

    /// Returns the number of hosts.
    #[must_use]
    pub const fn hosts(&self) -> u32 {
        self.fabric.topology.shape.hosts()
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
            Buffers::Shared(bytes) => write!(f, "  switches   {bytes} bytes for all ports of one")?,
        }
        writeln!(f, ", packets of up to {} bytes", self.packet_limit)?;
        write!(f, "  options    {} profile", self.config.profile())?;
        for (parameter, value) in self.config.values().filter(|(p, value)| *value != p.default) {
            write!(f, ", {}={value}", parameter.name)?;
        }
        let known = if self.has_link_rate { "known" } else { "unknown" };
        writeln!(f, "; link rate {known}")?;
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

/// Returns the limit of granted and not received bytes (GRANT-5), computed from configuration and link rate as
/// `docs/spec/grants.md` defines it.
pub(crate) fn max_incoming(scenario: &Scenario) -> u64 {
    let config = &scenario.config;
    if config.max_incoming() > 0 {
        return config.max_incoming();
    }
    let known =
        if scenario.has_link_rate { scenario.fabric.topology.host_rate.mbps() } else { 25_000 };
    let mbps = if config.link_mbps() > 0 { config.link_mbps() } else { known };
    (mbps * 128 / 8).max(40_000)
}

/// Returns the maximum number of bytes sent without a GRANT (PRIO-1).
pub(crate) fn max_unscheduled(config: &Config) -> u64 {
    config.unsched_bytes().max(config.unsched_bytes_max())
}
