//! Packet delays, by stage.
//!
//! A burst of DATA packets is measured from `data_sent`, when the sender's transport emits it, to
//! `data_received`, when the receiver's transport has handled a piece of it:
//!
//! - waited: from `queued`, when the transport received the message, to `data_sent`. Causes: other
//!   messages, grants.
//! - to kernel: from `data_sent` to the RPC's next `to_kernel`. Cause: other packets of the same
//!   batch.
//! - network: from there to the RPC's last `from_kernel` before `data_received`. Contains both
//!   kernels, the network, and the time until the receiver polls.
//! - handled: from there to `data_received`. Contains other packets of the same batch, parsing and
//!   copying.
//! - lived: from `data_sent` to `data_received`: the sum of all stages but waiting.
//!
//! Each received piece is paired with the last earlier burst that contains its first byte. The
//! report distinguishes requests from responses, and by kind: messages of one burst (short), bursts
//! of longer messages that needed no grant (unscheduled), bursts allowed by a grant (granted, from
//! `grant_used`), and retransmissions. For GRANT packets it contains the times from `grant_sent`
//! to `grant_received` and from there to the burst that used the grant; for RESEND packets the time
//! to reception. Both ends must be traced. Negative times are smaller than the uncertainty of the
//! clocks. They also occur if the driver ran out of room and sent packets before the end of their
//! batch, which is when `to_kernel` is recorded.

use super::distribution::Distribution;
use super::filter::RpcFilter;
use crate::merge::{MergedTraces, RpcRecord, TracedRpc};
use apus_trace::Side::{self, Client, Server};
use apus_trace::event::{DataFields, Event};
use serde::Serialize;
use std::collections::BTreeMap;

/// Report on packet delays.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Delays {
    /// Kinds of packets that occur.
    pub kinds: Vec<PacketDelays>,
    /// Number of received pieces without a matching burst in the sender's trace, or without a
    /// sender's trace.
    pub unpaired: usize,
}

/// Delays of one kind of packets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PacketDelays {
    /// Name of the kind, for instance `request, short`.
    pub name: &'static str,
    /// Stages and their durations.
    pub stages: Vec<(&'static str, Distribution)>,
}

/// Names of kinds and stages, in display order.
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

/// Durations by indices of kind and stage.
#[derive(Default)]
struct DelayCollector {
    times: BTreeMap<(usize, usize), Vec<i64>>,
    unpaired: usize,
}

impl Delays {
    /// Builds the report on the RPCs that match `filter`.
    #[must_use]
    pub fn of(merged: &MergedTraces, filter: &RpcFilter) -> Self {
        let mut collector = DelayCollector::default();
        for rpc in filter.rpcs(merged) {
            for sender in [Client, Server] {
                collector.data(rpc, sender);
                collector.control(rpc, sender, [Event::GrantSent, Event::GrantReceived], GRANT);
                collector.control(rpc, sender, [Event::ResendSent, Event::ResendReceived], RESEND);
                collector.grants_used(rpc, sender);
            }
        }
        let kind = |(kind, name): (usize, &'static str)| {
            let times = collector.times.range((kind, 0)..(kind + 1, 0));
            let stage = |(&(_, stage), times): (&(usize, usize), &Vec<i64>)| {
                (STAGES[stage], times.iter().copied().collect())
            };
            let stages: Vec<_> = times.map(stage).collect();
            (!stages.is_empty()).then_some(PacketDelays { name, stages })
        };
        let kinds = KINDS.into_iter().enumerate().filter_map(kind).collect();
        Self { kinds, unpaired: collector.unpaired }
    }
}

impl DelayCollector {
    fn add(&mut self, kind: &str, stage: &str, nanos: i64) {
        let place = |names: &[&str], name| names.iter().position(|it| *it == name);
        let key = place(&KINDS, kind).zip(place(&STAGES, stage)).expect("names from above");
        self.times.entry(key).or_default().push(nanos);
    }

    /// Collects the delays of the message transmitted by `sender`.
    fn data(&mut self, rpc: &TracedRpc, sender: Side) {
        let sent: Vec<&RpcRecord> = rpc.all(sender, Event::DataSent).collect();
        for arrival in rpc.all(sender.other(), Event::DataReceived) {
            let piece = data(arrival);
            let holds = |burst: &&&RpcRecord| {
                let DataFields { offset, length, .. } = data(burst);
                let end = u64::from(offset) + u64::from(length);
                offset <= piece.offset && u64::from(piece.offset) < end.max(1)
            };
            // If the clock error exceeds the delay, no burst is earlier; the first burst is used
            // then.
            let before = sent.iter().filter(holds).rfind(|burst| burst.at <= arrival.at);
            let Some(burst) = before.or_else(|| sent.iter().find(holds)) else {
                self.unpaired += 1;
                continue;
            };
            self.burst(rpc, sender, burst, arrival);
        }
    }

    fn burst(&mut self, rpc: &TracedRpc, sender: Side, burst: &RpcRecord, arrival: &RpcRecord) {
        let kind = kind(rpc, sender, burst);
        if let Some(queued) = rpc.first(sender, Event::Queued) {
            self.add(kind, "waited", burst.at - queued.at);
        }
        let departure = rpc.all(sender, Event::ToKernel).find(|record| record.at >= burst.at);
        let batch = rpc.last_until(sender.other(), Event::FromKernel, arrival.at);
        if let Some(departure) = departure {
            self.add(kind, "to kernel", departure.at - burst.at);
        }
        if let Some((departure, batch)) = departure.zip(batch) {
            self.add(kind, "network", batch.at - departure.at);
        }
        if let Some(batch) = batch {
            self.add(kind, "handled", arrival.at - batch.at);
        }
        self.add(kind, "lived", arrival.at - burst.at);
    }

    /// Collects the delays of control packets transmitted by `sender`. Packets are paired by
    /// content, in order.
    fn control(
        &mut self,
        rpc: &TracedRpc,
        sender: Side,
        [departure, arrival]: [Event; 2],
        kind: &str,
    ) {
        let mut rest: Vec<&RpcRecord> = rpc.all(sender.other(), arrival).collect();
        for sent in rpc.all(sender, departure) {
            let Some(place) = rest.iter().position(|record| same(record, sent)) else { continue };
            let arrival = rest.remove(place);
            self.add(kind, "came", arrival.at - sent.at);
        }
    }

    /// Collects the times from each grant received by `sender` to the first burst that needed it.
    fn grants_used(&mut self, rpc: &TracedRpc, sender: Side) {
        let mut before = 0;
        for grant in rpc.all(sender, Event::GrantReceived) {
            let uses = |used: &&RpcRecord| used.at >= grant.at && used.b > before;
            if let Some(used) = rpc.all(sender, Event::GrantUsed).find(uses) {
                self.add(GRANT, "was used", used.at - grant.at);
            }
            before = before.max(grant.b);
        }
    }
}

const fn data(record: &RpcRecord) -> DataFields {
    DataFields::from_numbers(record.a, record.b)
}

/// Returns whether two control packets have the same content. The priority is chosen by the sender
/// and ignored.
fn same(a: &RpcRecord, b: &RpcRecord) -> bool {
    match a.event {
        Event::GrantReceived => a.b == b.b,
        _ => (data(a).offset, data(a).length) == (data(b).offset, data(b).length),
    }
}

fn kind(rpc: &TracedRpc, sender: Side, burst: &RpcRecord) -> &'static str {
    let DataFields { offset, length, retransmitted, .. } = data(burst);
    let end = u64::from(offset) + u64::from(length);
    let whole = rpc.length(sender).is_some_and(|all| u64::from(length) >= all);
    let place = if retransmitted {
        3
    } else if whole {
        0
    } else if rpc.all(sender, Event::GrantUsed).any(|used| used.b == end) {
        2
    } else {
        1
    };
    KINDS[place + if sender == Client { 0 } else { 4 }]
}
