//! Made-up packets of exchanges, for tests.

use super::counters::Counters;
use super::packet::{Content, Packet};
use super::watch::Captured;

pub(super) const SERVER: u16 = 4_000;
const CLIENT: u16 = 40_000;
/// So close to the maximum that sequence numbers wrap.
const FIRST: u32 = u32::MAX - 100;

/// A packet: its sender, the microseconds since the previous packet, and its bytes, or the bytes
/// that it acknowledges.
#[derive(Clone, Copy, Debug)]
pub(super) enum Made {
    Client(u64, u32),
    Server(u64, u32),
    Ack(u64, u32),
}

/// Returns an exchange with Nagle's algorithm and an ACK after `wait` microseconds.
pub(super) fn stalled(wait: u64) -> Vec<Made> {
    use Made::{Ack, Client, Server};
    vec![Client(10, 4), Ack(wait, 4), Client(6, 60), Server(9, 64)]
}

/// Returns a connection with these exchanges, after a first one without waits.
pub(super) fn tcp(exchanges: &[Vec<Made>]) -> Captured {
    let mut at = 1_700_000_000_000_000_000;
    let mut packets = Vec::new();
    let packet = |at, from_client, sequence, acknowledged, bytes, opens, ends| {
        let (from, to) = if from_client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        Packet {
            at,
            from,
            to,
            content: Content::Tcp { sequence, acknowledged, bytes, opens, ends },
        }
    };
    let (mut ours, mut theirs) = (FIRST.wrapping_add(1), 5_001_u32);
    packets.push(packet(at, true, FIRST, 0, 0, true, false));
    packets.push(packet(at + 1, false, 5_000, ours, 0, true, false));
    packets.push(packet(at + 2, true, ours, theirs, 0, false, false));
    for exchange in [stalled(5)].iter().chain(exchanges) {
        let began = ours;
        for made in exchange {
            let (Made::Client(after, _) | Made::Server(after, _) | Made::Ack(after, _)) = made;
            at += after * 1_000;
            match *made {
                Made::Client(_, bytes) => {
                    packets.push(packet(at, true, ours, theirs, bytes, false, false));
                    ours = ours.wrapping_add(bytes);
                }
                Made::Server(_, bytes) => {
                    packets.push(packet(at, false, theirs, ours, bytes, false, false));
                    theirs = theirs.wrapping_add(bytes);
                }
                Made::Ack(_, bytes) => {
                    let acknowledged = began.wrapping_add(bytes);
                    packets.push(packet(at, false, theirs, acknowledged, 0, false, false));
                }
            }
        }
    }
    packets.push(packet(at + 5, true, ours, theirs, 0, false, true));
    packets.push(packet(at + 6, false, theirs, ours.wrapping_add(1), 0, false, false));
    let delayed_acks = exchanges.len() as u64;
    Captured { packets, counted: Some(Counters { delayed_acks, segments: 9 }) }
}

/// Returns `calls` calls of apus that take 6 us each.
pub(super) fn apus(calls: u64) -> Captured {
    let data = |at, from, to, call| {
        let content = Content::Apus { kind: 0x10, call, bytes: 64 };
        Packet { at, from, to, content }
    };
    let pair = |call: u64| {
        let at = call * 10_000;
        [data(at, CLIENT, SERVER, 2 * call), data(at + 6_000, SERVER, CLIENT, 2 * call)]
    };
    let mut packets: Vec<Packet> = (0..calls).flat_map(pair).collect();
    let content = Content::Apus { kind: 0x18, call: 0, bytes: 0 };
    packets.push(Packet { at: calls * 10_000, from: CLIENT, to: SERVER, content });
    Captured { packets, counted: None }
}
