//! How long does it take from ready to running, and who woke whom?
//!
//! A message is handed off (`handed_off`, with the waiter who was told) by the thread that turns the loop; the waiter runs
//! again with it (`woken`, the same RPC, side and waiter). Between lies the scheduler if the waiter was asleep (it
//! recorded `wake` in between), or some hundred nanoseconds if it was spinning. Messages that nobody had to be told
//! (`waiter` 0) are counted: they cost no handoff.
//!
//! The turn to poll is passed in the same way: `pass_turn` says to which waiter, and that waiter's next `wake`, if it was
//! asleep, when it runs.

use super::threads::Threads;
use super::{Distribution, Filter};
use crate::merge::{Merged, Stamped};
use apus_trace::Side;
use apus_trace::event::Event;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// The report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Handoffs {
    /// Messages whose waiter was told.
    pub handed: usize,
    /// Messages that whoever polled took itself, or that somebody took without having waited.
    pub taken: usize,
    /// Messages whose waiter was told, and never seen to run: the trace ends before, or begins after it.
    pub unseen: usize,
    /// All delays: of waiters that were asleep, and of those that were spinning.
    pub asleep: Distribution,
    /// The same of the others.
    pub spinning: Distribution,
    /// Who told whom, the most frequent first.
    pub pairs: Vec<Pair>,
    /// How often the turn was passed.
    pub turns: usize,
    /// How long it took until the one to whom it was passed was awake, if it had been asleep.
    pub turn_delays: Distribution,
}

/// A thread that told another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Who told.
    pub from: String,
    /// Who was told.
    pub to: String,
    /// How many of them were asleep.
    pub asleep: usize,
    /// How long it took until they ran.
    pub delay: Distribution,
}

impl Handoffs {
    /// Of the RPCs that `filter` admits.
    #[must_use]
    pub fn of(merged: &Merged, filter: &Filter) -> Self {
        let threads = Threads::of(merged);
        let (mut handed, mut taken, mut unseen) = (0, 0, 0);
        let (mut asleep, mut spinning) = (Vec::new(), Vec::new());
        let mut pairs: BTreeMap<(usize, usize), (usize, Vec<i64>)> = BTreeMap::new();
        for call in filter.calls(merged) {
            for side in [Side::Client, Side::Server] {
                for told in call.all(side, Event::HandedOff) {
                    if told.b == 0 {
                        taken += 1;
                        continue;
                    }
                    handed += 1;
                    let is_it = |woken: &&_| is_answer(told, woken);
                    let Some(woken) = call.all(side, Event::Woken).find(is_it) else {
                        unseen += 1;
                        continue;
                    };
                    let delay = woken.at - told.at;
                    let slept = threads.has(woken.thread, Event::Wake, told.at, woken.at);
                    (if slept { &mut asleep } else { &mut spinning }).push(delay);
                    let pair = pairs.entry((told.thread, woken.thread)).or_default();
                    pair.0 += usize::from(slept);
                    pair.1.push(delay);
                }
            }
        }
        let pair = |((from, to), (asleep, delays)): ((usize, usize), (usize, Vec<i64>))| Pair {
            from: merged.thread_name(from),
            to: merged.thread_name(to),
            asleep,
            delay: delays.into_iter().collect(),
        };
        let mut pairs: Vec<Pair> = pairs.into_iter().map(pair).collect();
        pairs.sort_by_key(|pair| std::cmp::Reverse(pair.delay.count()));
        let (turns, turn_delays) = turns(merged);
        Self {
            handed,
            taken,
            unseen,
            asleep: asleep.into_iter().collect(),
            spinning: spinning.into_iter().collect(),
            pairs,
            turns,
            turn_delays,
        }
    }
}

fn is_answer(told: &crate::merge::Mark, woken: &crate::merge::Mark) -> bool {
    woken.b == told.b && woken.at >= told.at
}

/// How often the turn was passed, and how long that took if it woke somebody.
fn turns(merged: &Merged) -> (usize, Distribution) {
    // Who was told and has not been seen since, by process and waiter.
    let mut told: HashMap<(usize, u64), i64> = HashMap::new();
    let (mut count, mut delays) = (0, Vec::new());
    for Stamped { at, thread, record } in &merged.records {
        let key = (merged.threads[*thread].process, record.b);
        match record.event() {
            Some(Event::PassTurn) if record.b != 0 => {
                count += 1;
                told.insert(key, *at);
            }
            Some(Event::Wake) => delays.extend(told.remove(&key).map(|since| at - since)),
            // It goes to sleep again: it had been awake when it was told.
            Some(Event::Sleep) => {
                told.remove(&key);
            }
            _ => {}
        }
    }
    (count, delays.into_iter().collect())
}
