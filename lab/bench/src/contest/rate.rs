//! The rate contest: small requests per second with one core on each side.

use super::definition::{COST, Contest};
use super::options::ContestOptions;
use super::reading::Reading;
use crate::contenders::apus::{SealedApus, Sharded, TracedApus};
use crate::contenders::baseline::{SendMode, Tcp, Tls, UdpGsoEcho};
use crate::contenders::contender::Contender;
use apus_measure::exchange::Pair;
use apus_measure::exchange::{Calls, Exchange, Path, engine_counters};
use apus_measure::plan::{Replies, Side};

/// Small requests with replies of the same size, many of them concurrent.
pub static RATE: Contest = Contest {
    name: "rate",
    about: "Small messages, many outstanding at a time, one core on each side",
    more: "Requests and replies completed per second, over apus, over TCP with one system call \
           for each message, over TCP with one for everything that is ready, and over bare UDP \
           sockets that send up to 64 packets in a call and do nothing else: the ceiling. With \
           --shards, endpoints with that many shards and threads on each side, both sides on all \
           cores, are compared by replies per second of processor time.",
    example: "apus-lab bench rate --size 100 --outstanding 64",
    defaults: || ContestOptions::new(100, 64),
    contenders,
    has_shards: true,
    figures,
    compared: "krps",
    ratios: &[
        ("apus", "tcp"),
        ("apus", "tcp-batched"),
        ("apus", "udp-gso"),
        ("apus", "apus-untraced"),
        ("apus-traced", "apus-untraced"),
        ("apus-sealed", "apus"),
        ("apus-sealed", "tls-tcp"),
    ],
};

const APUS: Exchange = Exchange { calls: Calls::Many(Replies::Echo), path: Path::Udp };

fn contenders(shards: &[usize]) -> Vec<Box<dyn Contender>> {
    let mut contenders: Vec<Box<dyn Contender>> = vec![
        Box::new(APUS),
        Box::new(TracedApus { exchange: APUS, all: false }),
        Box::new(TracedApus { exchange: APUS, all: true }),
        Box::new(SealedApus(APUS)),
        Box::new(Tcp { sends: SendMode::One, replies: Replies::Echo }),
        Box::new(Tcp { sends: SendMode::Ready, replies: Replies::Echo }),
        Box::new(Tls { sends: SendMode::Ready, replies: Replies::Echo }),
        Box::new(UdpGsoEcho),
    ];
    for count in shards {
        contenders.push(Box::new(Sharded::new(*count)));
    }
    contenders
}

fn figures(pair: &Pair) -> Vec<(&'static str, Reading)> {
    let Pair { client, server } = pair;
    let krps = pair.krps();
    // Cores in use, of both sides; 2 if both spin.
    let busy = |side: &Side| side.cpu as f64 / side.elapsed as f64;
    let mut figures = vec![
        ("krps", Reading::Each(krps)),
        ("p99_us", Reading::Each(client.latency.p99 as f64 / 1e3)),
        (COST, Reading::Each((busy(client) + busy(server)) / krps * 1e6)),
    ];
    let sum = |name| {
        let counts = [client, server].map(|side| side.counters.get(name).copied());
        counts.into_iter().flatten().sum::<u64>() as f64
    };
    let messages = sum(engine_counters::MESSAGES);
    if messages > 0.0 {
        let misses = sum(engine_counters::LOCK_MISSES) / messages * 1e4;
        figures.push(("lock_misses_per_10k", Reading::Each(misses)));
    }
    figures
}
