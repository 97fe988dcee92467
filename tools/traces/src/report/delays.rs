//! How long do packets take, stage by stage?
//!
//! A burst of DATA packets lives from `data_sent`, when the protocol lets it go, to `data_received`, when the protocol at
//! the other end has handled a piece of it:
//!
//! - waited: from `queued`, when the message was given to the protocol, to `data_sent`: other messages, grants;
//! - to kernel: from `data_sent` to the next `to_kernel` of the RPC: other packets of the same batch;
//! - network: from there to the last `from_kernel` of the RPC before `data_received`: both kernels, the wire, until the
//!   receiver looks;
//! - handled: from there to `data_received`: other packets of the same batch, parsing, copying;
//! - lived: from `data_sent` to `data_received`, all of that but waiting.
//!
//! Each received piece is paired with the last burst before it that held its first byte. Told apart are requests and
//! responses; messages of one burst (short), the bursts of longer ones that needed no grant (unscheduled), those that a
//! grant allowed (granted: `grant_used` says so), and those that were sent again. Of GRANT packets: how long from
//! `grant_sent` to `grant_received`, and from there to the burst that used it; of RESEND packets the first of these.
//! Both ends have to be there. Negative times are shorter than what is known about the clocks; or the driver had no
//! room, and sent packets before the end of their batch, when `to_kernel` is recorded.

use super::{Distribution, Filter};
use crate::merge::{Call, Mark, Merged};
use apus_trace::Side::{self, Client, Server};
use apus_trace::event::{DataFields, Event};
use serde::Serialize;
use std::collections::BTreeMap;

/// The report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Delays {
    /// Kinds of packets, those of which there are some.
    pub kinds: Vec<Kind>,
    /// Pieces that came of which the burst is not in the sender's trace, or there is no such trace.
    pub unpaired: usize,
}

/// Packets of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kind {
    /// Like `request, short`.
    pub name: &'static str,
    /// The stages, each with its times.
    pub stages: Vec<(&'static str, Distribution)>,
}

/// Names of kinds and stages in the order in which they are shown.
const KINDS: [&str; 10] = [
    "request, short",
    "request, unscheduled",
    "request, granted",
    "request, sent again",
    "response, short",
    "response, unscheduled",
    "response, granted",
    "response, sent again",
    GRANT,
    RESEND,
];
const GRANT: &str = "GRANT";
const RESEND: &str = "RESEND";
const STAGES: [&str; 7] =
    ["waited", "to kernel", "network", "handled", "lived", "came", "was used"];

/// Times by the places of kind and stage.
#[derive(Default)]
struct Found {
    times: BTreeMap<(usize, usize), Vec<i64>>,
    unpaired: usize,
}

impl Delays {
    /// Of the RPCs that `filter` admits.
    #[must_use]
    pub fn of(merged: &Merged, filter: &Filter) -> Self {
        let mut found = Found::default();
        for call in filter.calls(merged) {
            for sender in [Client, Server] {
                found.data(call, sender);
                found.control(call, sender, [Event::GrantSent, Event::GrantReceived], GRANT);
                found.control(call, sender, [Event::ResendSent, Event::ResendReceived], RESEND);
                found.grants_used(call, sender);
            }
        }
        let kind = |(kind, name): (usize, &'static str)| {
            let times = found.times.range((kind, 0)..(kind + 1, 0));
            let stage = |(&(_, stage), times): (&(usize, usize), &Vec<i64>)| {
                (STAGES[stage], times.iter().copied().collect())
            };
            let stages: Vec<_> = times.map(stage).collect();
            (!stages.is_empty()).then_some(Kind { name, stages })
        };
        let kinds = KINDS.into_iter().enumerate().filter_map(kind).collect();
        Self { kinds, unpaired: found.unpaired }
    }
}

impl Found {
    fn note(&mut self, kind: &str, stage: &str, nanos: i64) {
        let place = |names: &[&str], name| names.iter().position(|it| *it == name);
        let key = place(&KINDS, kind).zip(place(&STAGES, stage)).expect("names from above");
        self.times.entry(key).or_default().push(nanos);
    }

    /// The message that `sender` sends.
    fn data(&mut self, call: &Call, sender: Side) {
        let sent: Vec<&Mark> = call.all(sender, Event::DataSent).collect();
        for came in call.all(sender.other(), Event::DataReceived) {
            let piece = data(came);
            let holds = |burst: &&&Mark| {
                let DataFields { offset, length, .. } = data(burst);
                let end = u64::from(offset) + u64::from(length);
                offset <= piece.offset && u64::from(piece.offset) < end.max(1)
            };
            // The clocks may be wrong by more than it took: then the first one it is.
            let before = sent.iter().filter(holds).rfind(|burst| burst.at <= came.at);
            let Some(burst) = before.or_else(|| sent.iter().find(holds)) else {
                self.unpaired += 1;
                continue;
            };
            self.burst(call, sender, burst, came);
        }
    }

    fn burst(&mut self, call: &Call, sender: Side, burst: &Mark, came: &Mark) {
        let kind = kind(call, sender, burst);
        if let Some(queued) = call.first(sender, Event::Queued) {
            self.note(kind, "waited", burst.at - queued.at);
        }
        let left = call.all(sender, Event::ToKernel).find(|mark| mark.at >= burst.at);
        let batch = call.last_until(sender.other(), Event::FromKernel, came.at);
        if let Some(left) = left {
            self.note(kind, "to kernel", left.at - burst.at);
        }
        if let Some((left, batch)) = left.zip(batch) {
            self.note(kind, "network", batch.at - left.at);
        }
        if let Some(batch) = batch {
            self.note(kind, "handled", came.at - batch.at);
        }
        self.note(kind, "lived", came.at - burst.at);
    }

    /// Control packets that `sender` sends; each is found again by what it says, in order.
    fn control(&mut self, call: &Call, sender: Side, [left, came]: [Event; 2], kind: &str) {
        let mut rest: Vec<&Mark> = call.all(sender.other(), came).collect();
        for sent in call.all(sender, left) {
            let Some(place) = rest.iter().position(|mark| same(mark, sent)) else { continue };
            let came = rest.remove(place);
            self.note(kind, "came", came.at - sent.at);
        }
    }

    /// Grants that `sender` of a message got: when the first burst left that needed them.
    fn grants_used(&mut self, call: &Call, sender: Side) {
        let mut before = 0;
        for grant in call.all(sender, Event::GrantReceived) {
            let uses = |used: &&Mark| used.at >= grant.at && used.b > before;
            if let Some(used) = call.all(sender, Event::GrantUsed).find(uses) {
                self.note(GRANT, "was used", used.at - grant.at);
            }
            before = before.max(grant.b);
        }
    }
}

const fn data(mark: &Mark) -> DataFields {
    DataFields::from_numbers(mark.a, mark.b)
}

/// Whether two control packets say the same. The priority is the sender's business.
fn same(a: &Mark, b: &Mark) -> bool {
    match a.event {
        Event::GrantReceived => a.b == b.b,
        _ => (data(a).offset, data(a).length) == (data(b).offset, data(b).length),
    }
}

fn kind(call: &Call, sender: Side, burst: &Mark) -> &'static str {
    let DataFields { offset, length, retransmitted, .. } = data(burst);
    let end = u64::from(offset) + u64::from(length);
    let whole = call.length(sender).is_some_and(|all| u64::from(length) >= all);
    let place = if retransmitted {
        3
    } else if whole {
        0
    } else if call.all(sender, Event::GrantUsed).any(|used| used.b == end) {
        2
    } else {
        1
    };
    KINDS[place + if sender == Client { 0 } else { 4 }]
}
