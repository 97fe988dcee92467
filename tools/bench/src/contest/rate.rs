//! The rate contest: small requests per second with one core on each side.

use super::{Contest, Options, Pair, Reading};
use apus_contenders::apus::{Apus, Calls, Path, SealedApus, TracedApus};
use apus_contenders::baseline::{SendMode, Tcp, Tls};
use apus_contenders::contender::{Contender, Replies};

/// Small requests with replies of the same size, many of them outstanding.
pub static RATE: Contest = Contest {
    name: "rate",
    about: "Small messages, many outstanding at a time, one core on each side",
    more: "Requests and replies completed per second, over apus, over TCP with one system call \
           for each message, and over TCP with one for everything that is ready.",
    example: "apus bench rate --size 100 --outstanding 64",
    defaults: || Options::new(100, 64),
    contenders,
    figures,
    compared: "krps",
    ratios: &[
        ("apus", "tcp"),
        ("apus", "tcp-batched"),
        ("apus", "apus-untraced"),
        ("apus-traced", "apus-untraced"),
        ("apus-sealed", "apus"),
        ("apus-sealed", "tls-tcp"),
    ],
};

const APUS: Apus = Apus { calls: Calls::Many(Replies::Echo), path: Path::Udp };

fn contenders() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(APUS),
        Box::new(TracedApus { exchange: APUS, all: false }),
        Box::new(TracedApus { exchange: APUS, all: true }),
        Box::new(SealedApus(APUS)),
        Box::new(Tcp { sends: SendMode::One, replies: Replies::Echo }),
        Box::new(Tcp { sends: SendMode::Ready, replies: Replies::Echo }),
        Box::new(Tls { sends: SendMode::Ready, replies: Replies::Echo }),
    ]
}

fn figures(pair: &Pair) -> Vec<(&'static str, Reading)> {
    let client = &pair.client;
    vec![
        ("krps", Reading::Each(client.messages as f64 / client.elapsed as f64 * 1e6)),
        ("p99_us", Reading::Each(client.latency.p99 as f64 / 1e3)),
    ]
}
