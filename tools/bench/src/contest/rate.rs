//! How many small requests per second does one core on each side handle?

use super::{Experiment, Options, Pair, Reading};
use apus_contenders::apus::{Apus, Calls, Path, TracedApus};
use apus_contenders::baseline::{SendMode, Tcp};
use apus_contenders::contender::{Contender, Replies};

/// Small requests with replies of the same size, many of them under way.
pub static RATE: Experiment = Experiment {
    name: "rate",
    defaults: || Options::new(100, 64),
    contenders,
    figures,
    compared: "krps",
    ratios: &[
        ("apus", "tcp"),
        ("apus", "tcp-batched"),
        ("apus", "apus-untraced"),
        ("apus-traced", "apus-untraced"),
    ],
};

const APUS: Apus = Apus { calls: Calls::Many(Replies::Echo), path: Path::Udp };

fn contenders() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(APUS),
        Box::new(TracedApus { exchange: APUS, all: false }),
        Box::new(TracedApus { exchange: APUS, all: true }),
        Box::new(Tcp { sends: SendMode::One, replies: Replies::Echo }),
        Box::new(Tcp { sends: SendMode::Ready, replies: Replies::Echo }),
    ]
}

fn figures(pair: &Pair) -> Vec<(&'static str, Reading)> {
    let client = &pair.client;
    vec![
        ("krps", Reading::Each(client.messages as f64 / client.elapsed as f64 * 1e6)),
        ("p99_us", Reading::Each(client.latency.p99 as f64 / 1e3)),
    ]
}
