//! Handoffs: the time from ready to running, and the pairs of waking and woken threads.
//!
//! The leader hands a message to a waiter (`handed_off`, which contains the notified waiter), and
//! the waiter continues with it (`woken`, with the same RPC, side and waiter). The delay between
//! them is the scheduler's if the waiter slept (it recorded `wake` in between), or some hundred
//! nanoseconds if it was spinning. Messages without a notified waiter (`waiter` 0) are counted;
//! they cost no handoff.
//!
//! The poll role is passed in the same way: `pass_turn` contains the waiter, and the delay ends
//! with that waiter's next `wake` if it slept.

use super::distribution::Distribution;
use super::filter::RpcFilter;
use super::thread_records::ThreadRecords;
use crate::merge::{MergedTraces, TimedRecord};
use apus_trace::Side;
use apus_trace::event::Event;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Report on handoffs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Handoffs {
    /// Messages whose waiter was notified.
    #[serde(rename = "handed")]
    pub handoffs: usize,
    /// Messages taken by the leader itself, or by a thread without waiting.
    #[serde(rename = "taken")]
    pub without_handoff: usize,
    /// Messages whose waiter was notified and has no later record: the trace ends before that
    /// record, or starts after it.
    #[serde(rename = "unseen")]
    pub unmatched: usize,
    /// Delays of waiters that were asleep.
    pub asleep: Distribution,
    /// Delays of waiters that were spinning.
    pub spinning: Distribution,
    /// Pairs of notifying and notified threads, the most frequent first.
    pub pairs: Vec<ThreadPair>,
    /// Number of times that the poll role was passed.
    #[serde(rename = "turns")]
    pub role_passes: usize,
    /// Delays until a sleeping waiter that received the poll role was awake.
    #[serde(rename = "turn_delays")]
    pub role_delays: Distribution,
}

/// A notifying thread and a notified thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadPair {
    /// Name of the notifying thread.
    pub from: String,
    /// Name of the notified thread.
    pub to: String,
    /// Number of handoffs to it while it slept.
    pub asleep: usize,
    /// Delays until it ran.
    pub delay: Distribution,
}

impl Handoffs {
    /// Builds the report on the RPCs that match `filter`.
    #[must_use]
    pub fn of(merged: &MergedTraces, filter: &RpcFilter) -> Self {
        let threads = ThreadRecords::of(merged);
        let (mut handoffs, mut without_handoff, mut unmatched) = (0, 0, 0);
        let (mut asleep, mut spinning) = (Vec::new(), Vec::new());
        let mut pairs: BTreeMap<(usize, usize), (usize, Vec<i64>)> = BTreeMap::new();
        for rpc in filter.rpcs(merged) {
            for side in [Side::Client, Side::Server] {
                for notified in rpc.all(side, Event::HandedOff) {
                    if notified.b == 0 {
                        without_handoff += 1;
                        continue;
                    }
                    handoffs += 1;
                    let is_it = |woken: &&_| is_matching(notified, woken);
                    let Some(woken) = rpc.all(side, Event::Woken).find(is_it) else {
                        unmatched += 1;
                        continue;
                    };
                    let delay = woken.at - notified.at;
                    let slept = threads.has(woken.thread, Event::Wake, notified.at, woken.at);
                    (if slept { &mut asleep } else { &mut spinning }).push(delay);
                    let pair = pairs.entry((notified.thread, woken.thread)).or_default();
                    pair.0 += usize::from(slept);
                    pair.1.push(delay);
                }
            }
        }
        let pair =
            |((from, to), (asleep, delays)): ((usize, usize), (usize, Vec<i64>))| ThreadPair {
                from: merged.thread_name(from),
                to: merged.thread_name(to),
                asleep,
                delay: delays.into_iter().collect(),
            };
        let mut pairs: Vec<ThreadPair> = pairs.into_iter().map(pair).collect();
        pairs.sort_by_key(|pair| std::cmp::Reverse(pair.delay.count()));
        let (role_passes, role_delays) = role_passes(merged);
        Self {
            handoffs,
            without_handoff,
            unmatched,
            asleep: asleep.into_iter().collect(),
            spinning: spinning.into_iter().collect(),
            pairs,
            role_passes,
            role_delays,
        }
    }
}

fn is_matching(notified: &crate::merge::RpcRecord, woken: &crate::merge::RpcRecord) -> bool {
    woken.b == notified.b && woken.at >= notified.at
}

/// Returns the number of times that the poll role was passed, and the delays if the waiter slept.
fn role_passes(merged: &MergedTraces) -> (usize, Distribution) {
    // Time of the notification of each waiter that has not run since, by process and waiter.
    let mut notified: HashMap<(usize, u64), i64> = HashMap::new();
    let (mut count, mut delays) = (0, Vec::new());
    for TimedRecord { at, thread, record } in &merged.records {
        let key = (merged.threads[*thread].process, record.b);
        match record.event() {
            Some(Event::PassTurn) if record.b != 0 => {
                count += 1;
                notified.insert(key, *at);
            }
            Some(Event::Wake) => delays.extend(notified.remove(&key).map(|since| at - since)),
            // The thread goes to sleep again, so it was awake when it was notified.
            Some(Event::Sleep) => {
                notified.remove(&key);
            }
            _ => {}
        }
    }
    (count, delays.into_iter().collect())
}
