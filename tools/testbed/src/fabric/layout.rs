//! Who is where in a fabric, and how does one get in?

use std::ffi::OsString;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::holder::Privilege;
use super::identity::Process;
use super::spec::Spec;
use super::tool::Tool;
use crate::error::Error;

/// The interface that every host has. Not `eth0`: what a program reads about it below `/sys/class/net` is
/// about the machine's interface of that name, and most machines have an `eth0`.
pub const INTERFACE: &str = "fab0";

/// A fabric's settings and its namespaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    pub(super) spec: Spec,
    pub(super) privilege: Privilege,
    /// The program that leads into namespaces.
    pub(super) nsenter: PathBuf,
    /// Holds the switch.
    pub(super) switch: Process,
    /// Hold the hosts.
    pub(super) hosts: Vec<Process>,
}

impl Layout {
    /// The settings.
    #[must_use]
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Name of a host: `h1` is host 0.
    #[must_use]
    pub fn name(node: usize) -> String {
        format!("h{}", node + 1)
    }

    /// The host of that name.
    ///
    /// # Errors
    ///
    /// There is none; what there is.
    pub fn node(&self, name: &str) -> Result<usize, String> {
        let number = name.strip_prefix('h').and_then(|digits| digits.parse::<usize>().ok());
        let node = number.filter(|number| (1..=self.hosts.len()).contains(number));
        node.map(|number| number - 1)
            .ok_or_else(|| format!("the hosts are h1 to h{}; try h1", self.hosts.len()))
    }

    /// Address of a host.
    ///
    /// # Panics
    ///
    /// There are not so many hosts.
    #[must_use]
    pub fn address(&self, node: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, self.number(node))
    }

    /// Its other address.
    ///
    /// # Panics
    ///
    /// There are not so many hosts.
    #[must_use]
    pub fn address_v6(&self, node: usize) -> Ipv6Addr {
        // A unique local address (RFC 4193), "apus" in ASCII.
        Ipv6Addr::new(0xfd61, 0x7075, 0x0073, 0, 0, 0, 0, u16::from(self.number(node)))
    }

    /// Its address on the wire, from the range that is administered locally.
    pub(super) fn ethernet(&self, node: usize) -> String {
        format!("02:00:0a:4d:00:{:02x}", self.number(node))
    }

    /// The switch's port that leads to a host.
    pub(super) fn port(node: usize) -> String {
        format!("p{}", node + 1)
    }

    /// The host that a port leads to.
    pub(super) fn behind(port: &str) -> Option<usize> {
        port.strip_prefix('p')?.parse::<usize>().ok()?.checked_sub(1)
    }

    fn number(&self, node: usize) -> u8 {
        assert!(node < self.hosts.len(), "there are {} hosts", self.hosts.len());
        u8::try_from(node + 1).expect("MAX_NODES is less")
    }

    /// What to write before a command so that it runs in a host; see [`super::Fabric::enter`].
    ///
    /// # Panics
    ///
    /// There are not so many hosts.
    #[must_use]
    pub fn enter(&self, node: usize) -> Vec<OsString> {
        self.privilege.enter(&self.nsenter, self.hosts[node])
    }

    /// The same for the switch.
    #[must_use]
    pub fn enter_switch(&self) -> Vec<OsString> {
        self.privilege.enter(&self.nsenter, self.switch)
    }

    /// Whether all of its namespaces are still held by those who held them.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.holders().all(Process::is_alive)
    }

    /// Those who hold its namespaces.
    pub fn holders(&self) -> impl Iterator<Item = Process> {
        std::iter::once(self.switch).chain(self.hosts.iter().copied())
    }

    /// Tells a program about the switch.
    pub(super) fn in_switch(
        &self,
        tool: Tool,
        arguments: &[&str],
        input: &str,
    ) -> Result<String, Error> {
        tool.run("switch", &self.enter_switch(), arguments, input)
    }

    /// Tells a program about a host.
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
