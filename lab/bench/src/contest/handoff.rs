//! The handoff contest: how often a message is passed between threads before the receiving thread
//! has it.
//!
//! A handoff is a message that one thread reads from the network and another thread receives from
//! the endpoint, with a wake-up if the latter was asleep. A thread that polls the network itself
//! needs no handoff; a dedicated engine needs exactly one per message, for any number of receiving
//! threads. More would be needless work (the Linux kernel's Homa module needed 1.148 before a fix:
//! it woke a thread before the packet was on the queue). Spurious wake-ups are counted in addition.
//!
//! The system can preempt a polling thread for milliseconds while it is not waiting. The endpoint's
//! background poller then polls in its place and hands over the messages that arrive meanwhile:
//! `keeper_turns` counts that. Seen here once in 400,000 messages, with other programs on all
//! cores.
//!
//! Threads sleep while they wait, unless another mode is requested: handoffs are most expensive
//! then. All threads of the server share a core.

use super::definition::Contest;
use super::options::ContestOptions;
use super::reading::Reading;
use crate::contenders::apus::{ReceiveMode, counters};
use crate::contenders::contender::Contender;
use ::apus::PollMode;
use apus_measure::exchange::Pair;

/// Small requests, one at a time, to servers with 1 to 4 receiving threads.
pub static HANDOFF: Contest = Contest {
    name: "handoff",
    about: "Wake-ups and handoffs per message, with 1 to 4 receiving threads",
    more: "How often a message crosses from the thread that received it to the one that waits \
           for it: never when the receiver polls itself, exactly once when another thread \
           does. Needless wake-ups are counted too.",
    example: "apus-lab bench handoff --seconds 1",
    defaults: || {
        let mut options = ContestOptions::new(64, 1);
        options.repetition.poll = PollMode::Block;
        options
    },
    contenders,
    has_shards: false,
    figures,
    compared: "handoffs_per_message",
    ratios: &[],
};

fn contenders(_: &[usize]) -> Vec<Box<dyn Contender>> {
    ReceiveMode::all().map(|receiving| Box::new(receiving) as Box<dyn Contender>).collect()
}

fn figures(pair: &Pair) -> Vec<(&'static str, Reading)> {
    let count = |name| pair.server.counters.get(name).copied().unwrap_or_default();
    let messages = count(counters::MESSAGES);
    let handoffs = count(counters::HANDOFFS);
    vec![
        ("messages", Reading::Count(messages)),
        ("handoffs", Reading::Count(handoffs)),
        ("handoffs_per_message", Reading::Each(handoffs as f64 / messages as f64)),
        ("spurious_wakeups", Reading::Count(count(counters::SPURIOUS_WAKEUPS))),
        ("keeper_turns", Reading::Count(count(counters::KEEPER_TURNS))),
    ]
}
