//! A fabric that lives as long as a value: creation, addresses and counters.

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
    /// Dropping them ends them; the switch is the first.
    _holders: Vec<Holder>,
}

impl Fabric {
    /// Creates the namespaces, connects them and shapes the links.
    ///
    /// # Errors
    ///
    /// The settings are invalid, the user may not create namespaces, a system program is missing,
    /// or the kernel lacks a feature. Nothing is left behind.
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

    /// Returns the words to put in front of a command that is to run in a host.
    ///
    /// The command keeps its process number, its standard streams and its working directory. It
    /// sees itself as root if this is not root's fabric.
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

    /// Runs lines of `ip -batch` in a host: its interface [`INTERFACE`](super::INTERFACE) gets another MTU, for example, or
    /// another address.
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
