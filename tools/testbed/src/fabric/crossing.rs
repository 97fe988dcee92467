//! What does a network look like in which a program of one's own is the router?
//!
//! ```text
//!   source ── gen0 ════ in0 ── router ── out0 ════ far0 ── sink
//! ```
//!
//! Three namespaces and two cables. The router's namespace has no addresses, so that the kernel forwards
//! nothing itself; the sink has none either, so that nobody answers.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use super::holder::{Holder, Privilege};
use super::refusal::Refusal;
use super::tool::Tool;
use crate::error::{Doing, Error};

/// A namespace of a [`Crossing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where packets come from.
    Source,
    /// Where they are forwarded.
    Router,
    /// Where they are counted.
    Sink,
}

impl Place {
    const fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Router => "router",
            Self::Sink => "sink",
        }
    }
}

/// Two hosts and a router, for as long as this value lives. Dropping it removes everything.
#[derive(Debug)]
pub struct Crossing {
    privilege: Privilege,
    nsenter: PathBuf,
    router: Holder,
    /// Source and sink.
    ends: Vec<Holder>,
}

impl Crossing {
    /// The source's interface.
    pub const SOURCE: &'static str = "gen0";
    /// The router's interface towards the source.
    pub const IN: &'static str = "in0";
    /// The router's interface towards the sink.
    pub const OUT: &'static str = "out0";
    /// The sink's interface.
    pub const SINK: &'static str = "far0";
    /// Ethernet address of the router at [`Crossing::IN`]. It is the program's and not the interface's own, so
    /// that the kernel takes packets to it for somebody else's, and spends nothing on them.
    pub const IN_ADDRESS: [u8; 6] = [0x02, 0, 0x0a, 0x4e, 0, 1];
    /// Ethernet address of [`Crossing::OUT`].
    pub const OUT_ADDRESS: [u8; 6] = [0x02, 0, 0x0a, 0x4e, 0, 2];

    /// Makes the namespaces and the cables.
    ///
    /// # Errors
    ///
    /// The user may not create namespaces, or a program of the system is missing. Nothing is left behind.
    pub fn up() -> Result<Self, Error> {
        let nsenter = Tool::Nsenter.find()?;
        let (privilege, router) = Privilege::first()?;
        let ends = privilege.hosts(2, &nsenter, router.process())?;
        let crossing = Self { privilege, nsenter, router, ends };
        crossing.wire()?;
        Ok(crossing)
    }

    /// What to write before a command so that it runs in one of the places.
    #[must_use]
    pub fn enter(&self, place: Place) -> Vec<OsString> {
        self.privilege.enter(&self.nsenter, self.holder(place).process())
    }

    /// Packets that have come to the sink's interface, as the kernel counts them there.
    ///
    /// # Errors
    ///
    /// The namespace is gone, or the kernel counts in an unknown way.
    pub fn arrived(&self) -> Result<u64, Error> {
        let file = format!("/proc/{}/net/dev", self.holder(Place::Sink).process().pid);
        let text = fs::read_to_string(&file).doing(|| format!("read {file}"))?;
        received(&text, Self::SINK).ok_or_else(|| {
            Error::Fabric(Refusal::Strange {
                place: Place::Sink.name().to_owned(),
                command: format!("cat {file}"),
                problem: format!("no count of packets at {}", Self::SINK),
            })
        })
    }

    const fn holder(&self, place: Place) -> &Holder {
        let [source, sink] = self.ends.as_slice() else { panic!("two ends") };
        match place {
            Place::Source => source,
            Place::Router => &self.router,
            Place::Sink => sink,
        }
    }

    /// Creates the cables. An interface without IPv6 addresses of its own making stays silent.
    fn wire(&self) -> Result<(), Error> {
        let (source, sink) = (self.holder(Place::Source), self.holder(Place::Sink));
        let cable = |near: &str, address: [u8; 6], far: &str, holder: &Holder| {
            let address = address.map(|byte| format!("{byte:02x}")).join(":");
            format!(
                "link add name {near} address {address} type veth peer name {far} netns {}\n\
                 link set dev {near} addrgenmode none up\n",
                holder.process().pid
            )
        };
        let mut own = Self::IN_ADDRESS;
        own[4] = 1;
        let cables = cable(Self::IN, own, Self::SOURCE, source)
            + &cable(Self::OUT, Self::OUT_ADDRESS, Self::SINK, sink);
        self.tell(Place::Router, &cables)?;
        let up = |name| format!("link set dev {name} addrgenmode none up\n");
        self.tell(Place::Source, &up(Self::SOURCE))?;
        self.tell(Place::Sink, &up(Self::SINK))
    }

    fn tell(&self, place: Place, lines: &str) -> Result<(), Error> {
        Tool::Ip.run(place.name(), &self.enter(place), &["-batch", "-"], lines).map(drop)
    }
}

/// Packets received, in the table of `/proc/net/dev`: see proc_pid_net(5). Bytes come first, then packets.
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
