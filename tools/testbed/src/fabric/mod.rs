//! What is a network of several hosts on one machine made of?
//!
//! Of network namespaces: one for each host, and one for a switch that connects them. They belong to
//! *processes* and have no names, so the kernel removes them, and every interface in them, when these
//! processes end; how the program that made them ends does not matter.
//!
//! ```text
//!   host h1 ── fab0 ════ p1 ┐                 ┌ p2 ════ fab0 ── host h2
//!              │            │     bridge      │          │
//!     a NIC: one queue,     ├──  (switch)  ───┤     10.77.0.2, fd61:7075:73::2
//!     the link's rate       │                 │
//!                        p1 and p2: the link's rate, eight queues in strict order of their
//!                        priority, each as long as the buffer
//! ```
//!
//! [`Fabric`] is for experiments: it ends with the value. A [`standing`] fabric is for people: it stays
//! until it is taken down. What both have in common is [`Layout`]: who is where and how to get in.
//!
//! | file | question |
//! |---|---|
//! | `spec` | what can be asked for |
//! | `holder`, `identity` | which processes hold the namespaces, and how they are known again |
//! | `tool`, `refusal` | how the system's programs are used, and what it means when they refuse |
//! | `wiring`, `shaping`, `loss` | what these programs are told |
//! | `layout`, `counters` | who is where; what the switch has counted |
//! | `crossing`, `island` | two hosts with a router of one's own between them, instead of a switch; one host by itself |
//! | `standing` | fabrics that outlive the command that made them |
//!
//! # Invariants
//!
//! - **F1** Nothing is created in a namespace that was there before, so nothing that was there before can
//!   be touched.
//! - **F2** A namespace lives as long as its holder and what runs in it; holders live as long as the
//!   process that started them.
//! - **F3** No process is ended, and none is entered, that this module did not start: processes of other
//!   commands are known by their number *and* the instant at which they began.
//!
//! # What differs from wires
//!
//! - A token bucket lets a packet go and makes the next one wait. The first packet over an idle link
//!   arrives at once, where a wire would take as long as the packet has bits; the rate is the same.
//! - Packets that are cut from one long send ("segmentation offload") are cut where they leave the host:
//!   the switch sees the packets that a wire would carry. Checksums are not reckoned: nothing can falsify
//!   a packet on the way.
//! - Addresses are known everywhere from the beginning: no ARP, no neighbour discovery, no flooding.

mod counters;
mod crossing;
mod holder;
mod identity;
mod island;
mod layout;
mod loss;
mod refusal;
mod shaping;
mod spec;
pub mod standing;
mod tool;
mod wiring;

pub use counters::PortCounters;
pub use crossing::{Crossing, Place};
pub use identity::Process;
pub use island::Island;
pub use layout::{INTERFACE, Layout};
pub use refusal::Refusal;
pub use shaping::LEVELS;
pub use spec::{MAX_NODES, Spec, Uplink};
pub use tool::Tool;

use std::ffi::OsString;
use std::net::Ipv4Addr;

use crate::error::Error;
use holder::{Holder, Privilege};

/// A fabric for as long as this value lives. Dropping it removes everything.
///
/// What still runs in a host then loses its interface, and the namespace of that host goes when it ends.
#[derive(Debug)]
pub struct Fabric {
    layout: Layout,
    /// Dropping them ends them; the switch is the first.
    _holders: Vec<Holder>,
}

impl Fabric {
    /// Makes the namespaces, wires them up and shapes the links.
    ///
    /// # Errors
    ///
    /// The settings make no sense, the user may not create namespaces, a program of the system is
    /// missing, or the kernel lacks something. Nothing is left behind then.
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

    /// Who is where, and how to get in.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Address of a host; the first one is 0 (and is called `h1`).
    ///
    /// # Panics
    ///
    /// There are not so many hosts.
    #[must_use]
    pub fn address(&self, node: usize) -> Ipv4Addr {
        self.layout.address(node)
    }

    /// What to write before a command so that it runs in a host; the first one is 0.
    ///
    /// The command keeps its process number, its standard streams and its place in the file system. It
    /// sees itself as root if this is not root's fabric.
    ///
    /// # Panics
    ///
    /// There are not so many hosts.
    #[must_use]
    pub fn enter(&self, node: usize) -> Vec<OsString> {
        self.layout.enter(node)
    }

    /// What the switch has counted at each port, level by level.
    ///
    /// # Errors
    ///
    /// `tc` fails.
    pub fn counters(&self) -> Result<Vec<PortCounters>, Error> {
        self.layout.counters()
    }

    /// Packets that were lost because [`Spec::loss`] asked for it.
    ///
    /// # Errors
    ///
    /// `nft` fails.
    pub fn lost(&self) -> Result<u64, Error> {
        self.layout.lost()
    }
}
