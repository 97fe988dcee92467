//! The network of a transport: two hosts in namespaces, one isolated host, or the loopback
//! interface.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use super::transport::Transport;
use apus_testbed::error::Error;
use apus_testbed::fabric::{Fabric, IsolatedHost, Spec, Tool};
use apus_testbed::process::Spawner;
use apus_workload::Rate;

/// The two sides of a network; in a fabric, its two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Clients,
    Servers,
}

/// A network for one transport. Dropping it removes it.
pub(super) enum TestNetwork {
    /// Two hosts with links to a switch.
    Hosts(Fabric),
    /// One namespace.
    Isolated(IsolatedHost),
    /// The loopback interface of this host.
    Loopback,
}

/// Rate of the links: more than the processes of a small machine use.
const LINK_MBPS: u64 = 1_000;

/// Mounts a small disk on the folder `$0`, and executes the program in the other arguments. The
/// mount belongs to the namespace of the process and ends with it.
const WITH_DISK: &str = "mount -t tmpfs -o size=16m,mode=0700 apus-soak \"$0\" && exec \"$@\"";

impl TestNetwork {
    /// Creates the namespaces.
    pub(super) fn make(transport: Transport) -> Result<Self, Error> {
        if transport == Transport::Memory {
            return IsolatedHost::up().map(Self::Isolated);
        }
        let link = Rate::from_mbps(LINK_MBPS).expect("a valid rate");
        Fabric::up(&Spec { nodes: 2, link, ..Spec::default() }).map(Self::Hosts)
    }

    /// Returns whether processes have namespaces, and may mount a disk.
    pub(super) const fn has_namespaces(&self) -> bool {
        !matches!(self, Self::Loopback)
    }

    /// Returns whether clients and servers are on different hosts.
    pub(super) const fn has_hosts(&self) -> bool {
        matches!(self, Self::Hosts(_))
    }

    /// Returns the address that endpoints listen on.
    pub(super) const fn listen(&self) -> Ipv4Addr {
        match self {
            Self::Hosts(_) => Ipv4Addr::UNSPECIFIED,
            Self::Isolated(_) | Self::Loopback => Ipv4Addr::LOCALHOST,
        }
    }

    /// Returns the address of the server that listens on `port`.
    pub(super) fn server(&self, port: u16) -> SocketAddr {
        let address = match self {
            Self::Hosts(fabric) => fabric.address(Side::Servers as usize),
            Self::Isolated(_) | Self::Loopback => Ipv4Addr::LOCALHOST,
        };
        (address, port).into()
    }

    /// Returns the spawner of a side's processes. With `disk`, each process has its own small disk
    /// on that folder.
    pub(super) fn spawner(
        &self,
        side: Side,
        program: &Path,
        disk: Option<&Path>,
    ) -> Result<Spawner, Error> {
        let mut prefix = match self {
            Self::Hosts(fabric) => fabric.enter(side as usize),
            Self::Isolated(host) => host.enter(),
            Self::Loopback => return Ok(Spawner::Processes(program.to_owned())),
        };
        if let Some(disk) = disk {
            prefix.push(Tool::Unshare.find()?.into_os_string());
            prefix.extend(["--mount", "--", "/bin/sh", "-c", WITH_DISK].map(OsString::from));
            prefix.push(disk.as_os_str().to_owned());
        }
        Ok(Spawner::Command { prefix, program: program.as_os_str().to_owned() })
    }

    /// Takes the link of a side's host up or down, if the side has its own host.
    pub(super) fn set_link(&self, side: Side, up: bool) -> Result<(), Error> {
        match self {
            Self::Hosts(fabric) => fabric.set_link(side as usize, up),
            Self::Isolated(_) | Self::Loopback => Ok(()),
        }
    }

    /// Runs lines of `ip -batch` in a side's host, if the side has its own host.
    pub(super) fn configure(&self, side: Side, lines: &str) -> Result<(), Error> {
        match self {
            Self::Hosts(fabric) => fabric.configure(side as usize, lines),
            Self::Isolated(_) | Self::Loopback => Ok(()),
        }
    }

    /// Returns the address of a side's host, if the side has its own host.
    pub(super) fn address(&self, side: Side) -> Option<Ipv4Addr> {
        match self {
            Self::Hosts(fabric) => Some(fabric.address(side as usize)),
            Self::Isolated(_) | Self::Loopback => None,
        }
    }
}
