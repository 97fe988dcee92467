//! Network arguments: the links and the switch between the hosts of a fabric.

use std::time::Duration;

use apus_testbed::fabric::{Spec, Uplink};
use apus_workload::{Nanos, Rate, units};
use clap::Args;

/// Links and switch between the hosts, except for the rate.
#[derive(Debug, Args)]
pub(crate) struct Network {
    /// Queue limit of a switch port in bytes, for each priority; k is 1000
    #[arg(long, value_name = "BYTES", default_value = "1MB", value_parser = units::bytes)]
    buffer: u64,
    /// Longest IP packet in bytes: 1280 to 9216
    #[arg(long, value_name = "BYTES", default_value = "1500", allow_negative_numbers = true)]
    mtu: u32,
    /// Share of the packets that the switch loses at random: 0 to 0.5. Needs nftables
    #[arg(long, value_name = "SHARE", default_value = "0", allow_negative_numbers = true)]
    loss: f64,
    /// Time that each packet takes from its host to the switch, without queueing. Needs a kernel
    /// with netem
    #[arg(long, value_name = "TIME", default_value = "0us", value_parser = units::time)]
    delay: Nanos,
    /// A host's own link: `free`, so that all queues are in the switch, or `shaped` to the rate,
    /// with one queue as a network card has
    #[arg(long, value_name = "KIND", default_value = "free")]
    uplink: Uplink,
}

impl Network {
    /// Returns a fabric of `nodes` hosts with links of rate `link`.
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
