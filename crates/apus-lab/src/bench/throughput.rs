//! How many bytes per second go from client to server in large messages?

use super::{Experiment, Options, Pair};
use crate::apus::Apus;
use crate::baseline::{Sends, Tcp, UdpGso};
use crate::contender::{Contender, Replies, Side};

/// Large requests with short replies, one after another. What the server received counts.
pub static THROUGHPUT: Experiment = Experiment {
    name: "throughput",
    defaults: || Options::new(500_000, 8),
    contenders,
    figures,
    samples: false,
    compared: "gbps",
    ratios: &[("apus", "tcp"), ("apus", "udp-gso")],
};

fn contenders() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(Apus::Many(Replies::Short)),
        Box::new(UdpGso),
        Box::new(Tcp { sends: Sends::One, replies: Replies::Short }),
    ]
}

fn figures(pair: &Pair) -> Vec<(&'static str, f64)> {
    let Pair { client, server } = pair;
    let bytes_per_ns = server.bytes as f64 / server.elapsed as f64;
    // Processor time per nanosecond, of both sides; 2 if both spin.
    let busy = |side: &Side| side.cpu as f64 / side.elapsed as f64;
    let cpu = busy(client) + busy(server);
    vec![("gbps", bytes_per_ns * 8.0), ("cpu_ns_per_kb", cpu / bytes_per_ns * 1000.0)]
}
