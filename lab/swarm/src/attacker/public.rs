//! Information available to every attacker.

use apus_proto::Config;
use apus_sim::message::HostId;

use crate::generator::random::SeededRng;

/// Public information: addresses, ports, the program and its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Public {
    /// Number of honest hosts.
    pub(crate) hosts: u32,
    /// The attacker's own host.
    pub(crate) own: HostId,
    /// The main victim.
    pub(crate) target: HostId,
    /// Length of the longest packet in bytes.
    pub(crate) packet_limit: u32,
    pub(crate) config: Config,
}

impl Public {
    /// Draws an honest host, mostly the target.
    pub(super) fn victim(&self, rng: &mut SeededRng) -> HostId {
        if rng.percent(70) { self.target } else { rng.within(0..self.hosts) }
    }

    /// Draws two honest hosts: a client and a server.
    pub(super) fn pair(&self, rng: &mut SeededRng) -> (HostId, HostId) {
        let client = rng.within(0..self.hosts);
        (client, (client + rng.within(1..self.hosts)) % self.hosts)
    }

    /// Draws an address that no host has.
    pub(super) fn unknown_address(&self, rng: &mut SeededRng) -> HostId {
        rng.within(self.own + 1..60_000)
    }
}
