//! A source, a router program under test, and a sink: three namespaces in a row.
//!
//! ```text
//!   source ── gen0 ════ in0 ── router ── out0 ════ far0 ── sink
//! ```
//!
//! The router's namespace has no addresses, so the kernel itself does not forward. The sink has no
//! address either, so it sends no replies.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use super::error::FabricError;
use super::holder::{Holder, Privilege};
use super::tool::Tool;
use apus_measure::error::{Doing, Error};

/// A namespace of a [`RouterPath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathNode {
    /// Sends packets.
    Source,
    /// Forwards packets.
    Router,
    /// Receives packets; the kernel counts them.
    Sink,
}

impl PathNode {
    const fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Router => "router",
            Self::Sink => "sink",
        }
    }
}

/// Two hosts with a router between them. Dropping the value removes all namespaces.
#[derive(Debug)]
pub struct RouterPath {
    privilege: Privilege,
    nsenter: PathBuf,
    router: Holder,
    /// Source and sink.
    ends: Vec<Holder>,
}

impl RouterPath {
    /// The source's interface.
    pub const SOURCE: &'static str = "gen0";
    /// The router's interface towards the source.
    pub const IN: &'static str = "in0";
    /// The router's interface towards the sink.
    pub const OUT: &'static str = "out0";
    /// The sink's interface.
    pub const SINK: &'static str = "far0";
    /// Destination Ethernet address of packets for the router on [`RouterPath::IN`]. It differs
    /// from the interface's address, so the kernel discards these packets early, as addressed to
    /// another host, at no cost.
    pub const IN_ADDRESS: [u8; 6] = [0x02, 0, 0x0a, 0x4e, 0, 1];
    /// Ethernet address of [`RouterPath::OUT`].
    pub const OUT_ADDRESS: [u8; 6] = [0x02, 0, 0x0a, 0x4e, 0, 2];

    /// Creates the namespaces and the links between them.
    ///
    /// # Errors
    ///
    /// The user lacks the privilege to create namespaces, or a system program is missing. The
    /// system is left unchanged.
    pub fn up() -> Result<Self, Error> {
        let nsenter = Tool::Nsenter.find()?;
        let (privilege, router) = Privilege::first()?;
        let ends = privilege.hosts(2, &nsenter, router.process())?;
        let path = Self { privilege, nsenter, router, ends };
        path.wire()?;
        Ok(path)
    }

    /// Returns the prefix of a command that runs in `node`.
    #[must_use]
    pub fn enter(&self, node: PathNode) -> Vec<OsString> {
        self.privilege.enter(&self.nsenter, self.holder(node).process())
    }

    /// Returns the number of packets that the kernel has received at the sink's interface.
    ///
    /// # Errors
    ///
    /// The namespace has ended, or the kernel's table has an unknown format.
    pub fn arrived(&self) -> Result<u64, Error> {
        let file = format!("/proc/{}/net/dev", self.holder(PathNode::Sink).process().pid);
        let text = fs::read_to_string(&file).doing(|| format!("read {file}"))?;
        received(&text, Self::SINK).ok_or_else(|| {
            Error::from(FabricError::Strange {
                place: PathNode::Sink.name().to_owned(),
                command: format!("cat {file}"),
                problem: format!("no count of packets at {}", Self::SINK),
            })
        })
    }

    const fn holder(&self, node: PathNode) -> &Holder {
        let [source, sink] = self.ends.as_slice() else { panic!("two ends") };
        match node {
            PathNode::Source => source,
            PathNode::Router => &self.router,
            PathNode::Sink => sink,
        }
    }

    /// Creates the links. `addrgenmode none` keeps IPv6 from sending unsolicited packets.
    fn wire(&self) -> Result<(), Error> {
        let (source, sink) = (self.holder(PathNode::Source), self.holder(PathNode::Sink));
        let link = |near: &str, address: [u8; 6], far: &str, holder: &Holder| {
            let address = address.map(|byte| format!("{byte:02x}")).join(":");
            format!(
                "link add name {near} address {address} type veth peer name {far} netns {}\n\
                 link set dev {near} addrgenmode none up\n",
                holder.process().pid
            )
        };
        let mut own = Self::IN_ADDRESS;
        own[4] = 1;
        let links = link(Self::IN, own, Self::SOURCE, source)
            + &link(Self::OUT, Self::OUT_ADDRESS, Self::SINK, sink);
        self.configure(PathNode::Router, &links)?;
        let up = |name| format!("link set dev {name} addrgenmode none up\n");
        self.configure(PathNode::Source, &up(Self::SOURCE))?;
        self.configure(PathNode::Sink, &up(Self::SINK))
    }

    /// Runs commands of `ip` in `node`, one per line.
    pub(crate) fn configure(&self, node: PathNode, lines: &str) -> Result<(), Error> {
        Tool::Ip.run(node.name(), &self.enter(node), &["-batch", "-"], lines).map(drop)
    }
}

/// Extracts the count of received packets from the table of `/proc/net/dev`, proc_pid_net(5): bytes
/// first, then packets.
fn received(table: &str, interface: &str) -> Option<u64> {
    let counts = table
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find_map(|(name, counts)| (name.trim() == interface).then_some(counts))?;
    counts.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_is_understood() {
        let table = "Inter-|   Receive                |  Transmit\n face |bytes    packets errs\n    \
                     lo:       0       7    0\n  far0: 6000     100    0    0\n";
        assert_eq!(received(table, "far0"), Some(100));
        assert_eq!(received(table, "lo"), Some(7));
        assert_eq!(received(table, "gen0"), None);
    }
}
