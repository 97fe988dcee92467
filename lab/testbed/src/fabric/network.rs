//! A fabric tied to the lifetime of a value: creation, addresses and counters.

use std::ffi::OsString;
use std::net::Ipv4Addr;

use super::counters::PortCounters;
use super::holder::{Holder, Privilege};
use super::layout::Layout;
use super::spec::Spec;
use super::tool::Tool;
use super::{loss, shaping, wiring};
use apus_measure::error::Error;

/// A fabric. Dropping the value removes it.
///
/// Programs that still run in a host then lose its interface. The namespace of that host is removed
/// when they end.
#[derive(Debug)]
pub struct Fabric {
    layout: Layout,
    /// The holders, the switch's first. Dropping them ends them.
    _holders: Vec<Holder>,
}

impl Fabric {
    /// Creates the namespaces, connects them and shapes the links.
    ///
    /// # Errors
    ///
    /// The settings are invalid, the user lacks the privilege to create namespaces, a system
    /// program is missing, or the kernel lacks a feature. The system is left unchanged.
    pub fn up(spec: &Spec) -> Result<Self, Error> {
        spec.check()?;
        let nsenter = Tool::Nsenter.find()?;
        let (privilege, switch) = Privilege::first()?;
        let hosts = privilege.hosts(spec.nodes, &nsenter, switch.process())?;
        let layout = Layout {
            spec: spec.clone(),
            privilege,
            nsenter,
            switch: switch.process(),
            hosts: hosts.iter().map(Holder::process).collect(),
        };
        let fabric = Self { layout, _holders: [switch].into_iter().chain(hosts).collect() };
        wiring::connect(&fabric.layout)?;
        shaping::shape(&fabric.layout)?;
        loss::begin(&fabric.layout)?;
        Ok(fabric)
    }

    /// Returns the addresses of the hosts and the commands that enter them.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the IPv4 address of a host. Host 0 is called `h1`.
    ///
    /// # Panics
    ///
    /// `node` is out of range.
    #[must_use]
    pub fn address(&self, node: usize) -> Ipv4Addr {
        self.layout.address(node)
    }

    /// Returns the prefix of a command that runs in a host.
    ///
    /// The command keeps its process ID, its standard streams and its working directory. It runs as
    /// root of the user namespace if this is not root's fabric.
    ///
    /// # Panics
    ///
    /// `node` is out of range.
    #[must_use]
    pub fn enter(&self, node: usize) -> Vec<OsString> {
        self.layout.enter(node)
    }

    /// Takes the link of a host down, or up again. Its IPv6 address is lost with the link.
    ///
    /// # Errors
    ///
    /// `ip` fails.
    ///
    /// # Panics
    ///
    /// `node` is out of range.
    pub fn set_link(&self, node: usize, up: bool) -> Result<(), Error> {
        self.configure(node, &wiring::link(&self.layout, node, up))
    }

    /// Runs lines of `ip -batch` in a host, for example to change the MTU or an address of its
    /// [`INTERFACE`](super::INTERFACE).
    ///
    /// # Errors
    ///
    /// `ip` fails.
    ///
    /// # Panics
    ///
    /// `node` is out of range.
    pub fn configure(&self, node: usize, lines: &str) -> Result<(), Error> {
        self.layout.in_host(node, Tool::Ip, &["-batch", "-"], lines).map(drop)
    }

    /// Returns the counters of the switch for each port and level.
    ///
    /// # Errors
    ///
    /// `tc` fails.
    pub fn counters(&self) -> Result<Vec<PortCounters>, Error> {
        self.layout.counters()
    }

    /// Returns the number of packets dropped because of [`Spec::loss`].
    ///
    /// # Errors
    ///
    /// `nft` fails.
    pub fn lost(&self) -> Result<u64, Error> {
        self.layout.lost()
    }
}
