//! Scenario: messages whose best order is obvious, and random messages that a slow model of the
//! rule replays step by step.

use apus_workload::PacketOverhead;
use proptest::prelude::*;

use super::Oracle;
use crate::host::Answer;
use crate::message::{HostId, Message, Outcome};
use crate::network::Network;
use crate::topology::{Delays, Topology};
use apus_workload::time::{Nanos, Rate};

/// Packets of a kilobyte, with a tenth more for headers.
const PACKETS: PacketOverhead = PacketOverhead { payload: 1_000, overhead: 100, minimum: 150 };

/// Returns two racks of three hosts; links of hosts at `mbps` Mbit/s.
fn topology(mbps: u64) -> Topology {
    Topology {
        shape: "2x3x1".parse().unwrap(),
        host_rate: Rate::from_mbps(mbps).unwrap(),
        fabric_rate: Rate::from_mbps(40_000).unwrap(),
        delays: Delays { switch: 250, host_out: 1_000, host_in: 500, propagation: 10, per_rack: 3 },
    }
}

/// Returns when each message is delivered, in the order of submission. Checks that each is reported
/// once, and done at once.
fn delivered(topology: &Topology, messages: &[Message]) -> Vec<Nanos> {
    let mut oracle = Oracle::new(topology, PACKETS, Answer::Nothing);
    let mut told = vec![None; messages.len()];
    let mut last = (0, None);
    let mut tell = |at, outcome| {
        assert!(at >= last.0, "{outcome:?} at {at} after {last:?}");
        match outcome {
            Outcome::Delivered(number) => {
                assert_eq!(told[number as usize].replace(at), None, "message {number}");
            }
            Outcome::Done(number) => {
                assert_eq!(last, (at, Some(Outcome::Delivered(number))));
            }
            Outcome::Failed(number) => panic!("message {number} failed"),
        }
        last = (at, Some(outcome));
    };
    for message in messages {
        oracle.advance(message.at, &mut tell);
        oracle.submit(message);
    }
    oracle.advance(Nanos::MAX, &mut tell);
    told.into_iter().map(|at| at.expect("everything is delivered")).collect()
}

fn message(number: u32, from: HostId, to: HostId, bytes: u32, at: Nanos) -> Message {
    Message { number, from, to, bytes, at }
}

/// Returns how long each message had to wait, in nanoseconds.
fn waits(topology: &Topology, messages: &[Message]) -> Vec<Nanos> {
    let alone = |m: &Message| m.at + topology.ideal(m.from, m.to, m.bytes, &PACKETS);
    let at = delivered(topology, messages);
    at.iter().zip(messages).map(|(at, m)| at.checked_sub(alone(m)).expect("ORACLE-2")).collect()
}

/// Returns the picoseconds of a message on the link of a host.
fn work(topology: &Topology, bytes: u32) -> u64 {
    topology.host_rate.picos(PACKETS.wire_bytes(bytes))
}

#[test]
fn an_unloaded_message_takes_its_ideal() {
    for mbps in [1_000, 10_000, 25_000, 100_000, 400_000] {
        let topology = topology(mbps);
        for (to, bytes) in [(1, 4), (3, 4), (3, 1_000), (5, 1_001), (3, 7_654_321)] {
            let one = message(0, 0, to, bytes, 123);
            let ideal = topology.ideal(0, to, bytes, &PACKETS);
            assert_eq!(delivered(&topology, &[one]), [123 + ideal], "{mbps} Mbit/s, {one:?}");
        }
    }
}

/// The ideal of a link without delays is 0 if packets take less than half a nanosecond.
#[test]
fn no_message_arrives_before_it_is_sent() {
    let mut topology = topology(8_000_000);
    topology.fabric_rate = topology.host_rate;
    topology.delays = Delays { switch: 0, host_out: 0, host_in: 0, propagation: 0, per_rack: 0 };
    assert_eq!(topology.ideal(0, 1, 4, &PACKETS), 0);
    assert_eq!(delivered(&topology, &[message(0, 0, 1, 4, 7), message(1, 0, 1, 4, 7)]), [8, 9]);
}

#[test]
fn the_shorter_of_two_goes_first_at_a_receiver() {
    let topology = topology(10_000);
    let messages = [message(0, 0, 3, 50_000, 0), message(1, 1, 3, 10_000, 0)];
    assert_eq!(waits(&topology, &messages), [11_000 * 8 / 10, 0]);
}

#[test]
fn the_shorter_of_two_goes_first_at_a_sender() {
    let topology = topology(10_000);
    let messages = [message(0, 0, 3, 50_000, 0), message(1, 0, 4, 10_000, 0)];
    assert_eq!(waits(&topology, &messages), [11_000 * 8 / 10, 0]);
}

#[test]
fn the_remaining_length_determines_the_order() {
    let topology = topology(10_000);
    // 55,000 bytes take 44 µs; after 40 of them 5,000 bytes remain.
    let late = [message(0, 0, 3, 50_000, 0), message(1, 1, 3, 10_000, 40_000)];
    assert_eq!(waits(&topology, &late), [0, 4_000]);
    let early = [message(0, 0, 3, 50_000, 0), message(1, 1, 3, 10_000, 30_000)];
    assert_eq!(waits(&topology, &early), [8_800, 0]);
}

#[test]
fn the_older_of_two_equals_goes_first() {
    let topology = topology(10_000);
    let messages = [message(0, 0, 3, 10_000, 0), message(1, 1, 3, 10_000, 0)];
    assert_eq!(waits(&topology, &messages), [0, 8_800]);
}

/// Message 2 precedes 0 at their sender; therefore 1, which 0 blocked at its receiver, transmits
/// meanwhile.
#[test]
fn a_stopped_message_makes_room_elsewhere() {
    let topology = topology(10_000);
    let messages = [
        message(0, 0, 3, 30_000, 0),
        message(1, 1, 3, 40_000, 500),
        message(2, 0, 4, 10_000, 1_000),
    ];
    // Message 1 has 8.8 µs of its 35.2 left when 0 resumes with 25.4 µs, one less than 1 has.
    assert_eq!(waits(&topology, &messages), [8_800, 500 + 25_400, 0]);
}

#[test]
fn a_link_never_idles_while_a_message_waits_for_it_alone() {
    let topology = topology(10_000);
    let sizes = [9_000, 4_000, 6_000, 2_000];
    let messages: Vec<_> = (0..).zip(sizes).map(|(i, bytes)| message(i, i, 5, bytes, 0)).collect();
    // In order of length, each starts when its predecessor ends.
    let expected = sizes.map(|bytes| {
        let before = sizes.iter().filter(|&&other| other < bytes);
        before.map(|&other| work(&topology, other)).sum::<u64>().div_ceil(1_000)
    });
    assert_eq!(waits(&topology, &messages), expected);
}

#[test]
fn the_core_never_limits() {
    let mut topology = topology(10_000);
    topology.fabric_rate = Rate::from_mbps(1_000).unwrap();
    assert!(topology.core_capacity() < 1.0);
    let messages = [0, 1, 2].map(|i| message(i, i, i + 3, 100_000, 0));
    assert_eq!(waits(&topology, &messages), [0, 0, 0]);
}

/// Returns all outcomes of the messages.
fn outcomes(answer: Answer, messages: &[Message]) -> Vec<(Nanos, Outcome)> {
    let mut oracle = Oracle::new(&topology(10_000), PACKETS, answer);
    let mut told = Vec::new();
    for message in messages {
        oracle.submit(message);
    }
    oracle.advance(Nanos::MAX, &mut |at, outcome| told.push((at, outcome)));
    told
}

#[test]
fn a_response_starts_when_the_message_has_arrived() {
    let ideal = topology(10_000).ideal(0, 3, 10_000, &PACKETS);
    let messages = [message(7, 0, 3, 10_000, 5)];
    let (there, back) = (5 + ideal, 5 + 2 * ideal);
    let told = outcomes(Answer::Echo, &messages);
    assert_eq!(told, [(there, Outcome::Delivered(7)), (back, Outcome::Done(7))]);
    let told = outcomes(Answer::Nothing, &messages);
    assert_eq!(told, [(there, Outcome::Delivered(7)), (there, Outcome::Done(7))]);
}

#[test]
fn responses_are_scheduled_like_other_messages() {
    let topology = topology(10_000);
    let ideal = |bytes| topology.ideal(0, 3, bytes, &PACKETS);
    let back = ideal(10_000);
    // The response to 0 waits for 1, which has a byte less left.
    let messages = [message(0, 0, 3, 10_000, 0), message(1, 4, 0, 9_999, back)];
    let told = outcomes(Answer::Echo, &messages);
    let before = work(&topology, 9_999).div_ceil(1_000);
    assert!(told.contains(&(back + ideal(9_999), Outcome::Delivered(1))), "{told:?}");
    assert!(told.contains(&(2 * back + before, Outcome::Done(0))), "{told:?}");
    assert!(told.is_sorted_by_key(|(at, _)| *at));
}

/// The rule in the module head, applied again in every small step of time.
fn model(topology: &Topology, messages: &[Message]) -> Vec<Nanos> {
    // All events fall on multiples of this.
    let step = gcd(1_000, topology.host_rate.picos(1));
    let works: Vec<u64> = messages.iter().map(|m| work(topology, m.bytes)).collect();
    let mut remaining = works.clone();
    let mut ends = vec![0; messages.len()];
    let mut now = 0;
    while remaining.iter().any(|&picos| picos > 0) {
        let known = |&i: &usize| messages[i].at * 1_000 <= now && remaining[i] > 0;
        let mut order: Vec<usize> = (0..messages.len()).filter(known).collect();
        order.sort_by_key(|&i| (remaining[i], i));
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        for i in order {
            let Message { from, to, .. } = messages[i];
            if !senders.contains(&from) && !receivers.contains(&to) {
                senders.push(from);
                receivers.push(to);
                remaining[i] -= step;
                ends[i] = now + step;
            }
        }
        now += step;
    }
    let at = |i: usize| {
        let Message { from, to, bytes, at, .. } = messages[i];
        let waited = ends[i] - at * 1_000 - works[i];
        at + topology.ideal(from, to, bytes, &PACKETS) + waited.div_ceil(1_000)
    };
    (0..messages.len()).map(at).collect()
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

proptest! {
    #[test]
    fn outcomes_agree_with_the_model(
        mbps in prop::sample::select(vec![4_000u64, 10_000, 16_000]),
        hosts in 2u32..=6,
        drafts in prop::collection::vec((0u32..60, 0u32..60, 4u32..400, 0u64..1_000), 1..30),
    ) {
        let topology = topology(mbps);
        let mut messages: Vec<Message> = drafts
            .iter()
            .map(|&(from, further, bytes, at)| {
                let to = from + 1 + further % (hosts - 1);
                message(0, from % hosts, to % hosts, bytes, at)
            })
            .collect();
        messages.sort_by_key(|m| m.at);
        for (number, message) in (0..).zip(&mut messages) {
            message.number = number;
        }
        prop_assert_eq!(delivered(&topology, &messages), model(&topology, &messages));
    }
}
