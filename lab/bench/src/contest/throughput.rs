//! The throughput contest: bytes per second from client to server in large messages.

use super::definition::Contest;
use super::options::ContestOptions;
use super::reading::Reading;
use crate::contenders::apus::SealedApus;
use crate::contenders::baseline::{SendMode, Tcp, Tls, UdpGso};
use crate::contenders::contender::Contender;
use apus_measure::exchange::Pair;
use apus_measure::exchange::{Calls, Exchange, Path};
use apus_measure::plan::{Replies, Side};

/// Large requests with short replies, one after another. The bytes received by the server count.
pub static THROUGHPUT: Contest = Contest {
    name: "throughput",
    about: "Large messages, a few outstanding at a time",
    more: "Payload carried in one direction, and the processor time that it takes both sides, \
           over apus, over UDP with segmentation offload and over TCP.",
    example: "apus-lab bench throughput --size 500000 --outstanding 8",
    defaults: || ContestOptions::new(500_000, 8),
    contenders,
    has_shards: false,
    figures,
    compared: "gbps",
    ratios: &[
        ("apus", "tcp"),
        ("apus", "udp-gso"),
        ("apus-sealed", "apus"),
        ("apus-sealed", "tls-tcp"),
    ],
};

fn contenders(_: &[usize]) -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(Exchange { calls: Calls::Many(Replies::Short), path: Path::Udp }),
        Box::new(SealedApus(Exchange { calls: Calls::Many(Replies::Short), path: Path::Udp })),
        Box::new(UdpGso),
        Box::new(Tcp { sends: SendMode::One, replies: Replies::Short }),
        Box::new(Tls { sends: SendMode::One, replies: Replies::Short }),
    ]
}

fn figures(pair: &Pair) -> Vec<(&'static str, Reading)> {
    let Pair { client, server } = pair;
    let gbps = pair.gbps();
    // Processor time per nanosecond, of both sides; 2 if both spin.
    let busy = |side: &Side| side.cpu as f64 / side.elapsed as f64;
    let cpu = busy(client) + busy(server);
    vec![("gbps", Reading::Each(gbps)), ("cpu_ns_per_kb", Reading::Each(cpu / gbps * 8000.0))]
}
