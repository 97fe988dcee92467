//! Layout of a fabric: its settings, its namespaces, the addresses of its hosts, and the commands
//! that enter them.

use std::ffi::OsString;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::holder::Privilege;
use super::identity::Process;
use super::spec::Spec;
use super::tool::Tool;
use apus_measure::error::Error;

/// The interface of every host. The name is not `eth0`: `/sys/class/net` in a namespace entered
/// without a new mount shows the machine's interfaces, and most machines have an `eth0`.
pub const INTERFACE: &str = "fab0";

/// Settings and namespaces of a fabric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    pub(super) spec: Spec,
    pub(super) privilege: Privilege,
    /// Path of `nsenter`.
    pub(super) nsenter: PathBuf,
    /// Holder of the switch's namespace.
    pub(super) switch: Process,
    /// Holders of the hosts' namespaces.
    pub(super) hosts: Vec<Process>,
}

impl Layout {
    /// Returns the settings.
    #[must_use]
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns the name of a host: host 0 is `h1`.
    #[must_use]
    pub fn name(node: usize) -> String {
        format!("h{}", node + 1)
    }

    /// Returns the index of the host with this name.
    ///
    /// # Errors
    ///
    /// No host has this name; the message lists the names that exist.
    pub fn node(&self, name: &str) -> Result<usize, String> {
        let number = name.strip_prefix('h').and_then(|digits| digits.parse::<usize>().ok());
        let node = number.filter(|number| (1..=self.hosts.len()).contains(number));
        node.map(|number| number - 1)
            .ok_or_else(|| format!("the hosts are h1 to h{}; try h1", self.hosts.len()))
    }

    /// Returns the IPv4 address of a host.
    ///
    /// # Panics
    ///
    /// `node` is out of range.
    #[must_use]
    pub fn address(&self, node: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, self.number(node))
    }

    /// Returns the IPv6 address of a host.
    ///
    /// # Panics
    ///
    /// `node` is out of range.
    #[must_use]
    pub fn address_v6(&self, node: usize) -> Ipv6Addr {
        // A unique local address (RFC 4193), "apus" in ASCII.
        Ipv6Addr::new(0xfd61, 0x7075, 0x0073, 0, 0, 0, 0, u16::from(self.number(node)))
    }

    /// Returns the Ethernet address of a host, from the locally administered range.
    pub(super) fn ethernet(&self, node: usize) -> String {
        format!("02:00:0a:4d:00:{:02x}", self.number(node))
    }

    /// Returns the name of the switch's port that leads to a host.
    pub(super) fn port(node: usize) -> String {
        format!("p{}", node + 1)
    }

    /// Returns the host that a port leads to.
    pub(super) fn behind(port: &str) -> Option<usize> {
        port.strip_prefix('p')?.parse::<usize>().ok()?.checked_sub(1)
    }

    fn number(&self, node: usize) -> u8 {
        assert!(node < self.hosts.len(), "there are {} hosts", self.hosts.len());
        u8::try_from(node + 1).expect("MAX_NODES is less")
    }

    /// Returns the prefix of a command that runs in a host; see [`super::Fabric::enter`].
    ///
    /// # Panics
    ///
    /// `node` is out of range.
    #[must_use]
    pub fn enter(&self, node: usize) -> Vec<OsString> {
        self.privilege.enter(&self.nsenter, self.hosts[node])
    }

    /// Returns the prefix of a command that runs in the switch.
    #[must_use]
    pub fn enter_switch(&self) -> Vec<OsString> {
        self.privilege.enter(&self.nsenter, self.switch)
    }

    /// Returns whether all holders of the namespaces are running.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.holders().all(Process::is_alive)
    }

    /// Returns the holders of the namespaces, starting with the switch's.
    pub fn holders(&self) -> impl Iterator<Item = Process> {
        std::iter::once(self.switch).chain(self.hosts.iter().copied())
    }

    /// Runs a program in the switch.
    pub(super) fn in_switch(
        &self,
        tool: Tool,
        arguments: &[&str],
        input: &str,
    ) -> Result<String, Error> {
        tool.run("switch", &self.enter_switch(), arguments, input)
    }

    /// Runs a program in a host.
    pub(super) fn in_host(
        &self,
        node: usize,
        tool: Tool,
        arguments: &[&str],
        input: &str,
    ) -> Result<String, Error> {
        tool.run(&Self::name(node), &self.enter(node), arguments, input)
    }
}
