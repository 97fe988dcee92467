//! The round trip contest: the time of one request and its reply.

use super::definition::Contest;
use super::options::ContestOptions;
use super::reading::Reading;
use crate::contenders::apus::{SealedApus, TracedApus};
use crate::contenders::baseline::{SendMode, Tcp, Tls, Udp};
use crate::contenders::contender::Contender;
use apus_measure::exchange::Pair;
use apus_measure::exchange::{Calls, Exchange, Path};
use apus_measure::plan::Replies;

/// One client, one server, one request at a time.
pub static RTT: Contest = Contest {
    name: "rtt",
    about: "One client, one server, one request at a time",
    more: "The time from a request to its reply, over apus, over a bare UDP socket (unconnected, \
           the cheapest way to talk to many peers, and connected) and over TCP. Packets have the \
           same size on the wire.",
    example: "apus-lab bench rtt --size 100 --seconds 1",
    defaults: || ContestOptions::new(100, 1),
    contenders,
    has_shards: false,
    figures,
    compared: "p50_us",
    ratios: &[
        ("apus", "udp"),
        ("apus", "tcp"),
        ("apus", "apus-untraced"),
        ("apus-traced", "apus-untraced"),
        ("apus-sealed", "apus"),
        ("apus-sealed", "tls-tcp"),
    ],
};

const APUS: Exchange = Exchange { calls: Calls::OneByOne, path: Path::Udp };

fn contenders(_: &[usize]) -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(APUS),
        Box::new(TracedApus { exchange: APUS, all: false }),
        Box::new(TracedApus { exchange: APUS, all: true }),
        Box::new(SealedApus(APUS)),
        Box::new(Udp { connected: false }),
        Box::new(Udp { connected: true }),
        Box::new(Tcp { sends: SendMode::One, replies: Replies::Echo }),
        Box::new(Tls { sends: SendMode::One, replies: Replies::Echo }),
    ]
}

fn figures(pair: &Pair) -> Vec<(&'static str, Reading)> {
    let micros = |nanoseconds: u64| Reading::Each(nanoseconds as f64 / 1e3);
    let latency = pair.client.latency;
    vec![
        ("p50_us", micros(latency.p50)),
        ("p99_us", micros(latency.p99)),
        ("p999_us", micros(latency.p999)),
        ("samples", Reading::Count(latency.samples)),
    ]
}
