//! What is asked of a fabric?

use std::time::Duration;

use apus_lab::fabric::{Spec, Uplink};
use apus_sim::{Nanos, Rate, words};
use clap::Args;

/// Settings of a fabric.
#[derive(Debug, Args)]
pub(super) struct Settings {
    /// Hosts: 2 to 128
    #[arg(long, value_name = "HOSTS", default_value = "8", allow_negative_numbers = true)]
    nodes: usize,
    /// Rate of every link, 1mbit to 100gbit: bits on the wire, preamble and gap included
    #[arg(long, value_name = "RATE", default_value = "200mbit", value_parser = words::rate)]
    link: Rate,
    #[command(flatten)]
    network: Network,
}

/// What is between the hosts, but for the rate of the links.
#[derive(Debug, Args)]
pub(crate) struct Network {
    /// Bytes that wait at a port of the switch, for each priority; k is 1000
    #[arg(long, value_name = "BYTES", default_value = "1MB", value_parser = words::bytes)]
    buffer: u64,
    /// Longest IP packet in bytes: 1280 to 9216
    #[arg(long, value_name = "BYTES", default_value = "1500", allow_negative_numbers = true)]
    mtu: u32,
    /// Share of the packets that the switch loses at random: 0 to 0.5. Needs nftables
    #[arg(long, value_name = "SHARE", default_value = "0", allow_negative_numbers = true)]
    loss: f64,
    /// Time that each packet takes from its host to the switch, beside what it waits. Needs a kernel with
    /// netem
    #[arg(long, value_name = "TIME", default_value = "0us", value_parser = words::time)]
    delay: Nanos,
    /// A host's own link: `free`, so that all queues are in the switch, or `shaped` to the rate, with one
    /// queue as a network card has
    #[arg(long, value_name = "KIND", default_value = "free")]
    uplink: Uplink,
}

impl Settings {
    /// The same for apus-lab.
    pub(super) fn spec(&self) -> Spec {
        self.network.spec(self.nodes, self.link)
    }
}

impl Network {
    /// Between so many hosts, with links of that rate.
    pub(crate) fn spec(&self, nodes: usize, link: Rate) -> Spec {
        Spec {
            nodes,
            link,
            buffer: self.buffer,
            mtu: self.mtu,
            loss: self.loss,
            delay: Duration::from_nanos(self.delay),
            uplink: self.uplink,
        }
    }
}
