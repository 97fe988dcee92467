//! Two loads that once slowed the kernel module down by a factor of ten.
//!
//! Two clients flood a server with messages just long enough to be paced: the pacer became the
//! bottleneck, and its queue was searched from the wrong end. Thousands of requests wait in the
//! send queue: every packet paid for all of them. The benchmark `exchange` of apus-proto measures
//! the processor time of a packet under such loads; this test measures the effect on messages.

use apus_proto::Config;
use apus_sim::fabric::Settings;
use apus_sim::host::{Answer, ApusHost, Shared};
use apus_sim::{Delays, Fabric, HostId, Message, Network, Outcome, Topology};
use apus_workload::PacketOverhead;
use apus_workload::{Nanos, Rate};

const PACKETS: PacketOverhead = PacketOverhead::UDP_OVER_ETHERNET;

/// Returns one rack with links as in the kernel's test bed.
fn rack(hosts: u32) -> Topology {
    let rate = Rate::from_mbps(25_000).unwrap();
    let delays = Delays { switch: 250, host_out: 1_000, host_in: 500, propagation: 0, per_rack: 0 };
    let shape = format!("1x{hosts}x0").parse().unwrap();
    Topology { shape, host_rate: rate, fabric_rate: rate, delays }
}

/// Returns the time from submission to the response of each message, by number.
fn carry(topology: Topology, messages: &[Message]) -> Vec<Nanos> {
    let longest = messages.iter().map(|message| message.bytes).max().unwrap();
    let rate = topology.host_rate;
    let shared = Shared::new(Config::default(), Answer::Echo, rate, PACKETS, longest);
    let mut fabric = Fabric::new(&Settings::new(topology, 1), |id| {
        ApusHost::new(id, shared.clone(), u64::from(id) + 1)
    });
    let mut done = vec![0; messages.len()];
    let mut left = messages.len();
    let mut tell = |now: Nanos, outcome: Outcome| match outcome {
        Outcome::Done(number) => {
            let number = number as usize;
            done[number] = now - messages[number].at;
            left -= 1;
        }
        Outcome::Failed(number) => panic!("message {number} failed"),
        Outcome::Delivered(_) => {}
    };
    for message in messages {
        fabric.advance(message.at, &mut tell);
        fabric.submit(message);
    }
    // Longer than any of these messages takes: a message that is incomplete then never completes.
    fabric.advance(messages.last().unwrap().at + 1_000_000_000, &mut tell);
    assert_eq!(left, 0, "messages without a response");
    done
}

#[test]
fn two_clients_that_flood_a_server_get_all_of_its_link() {
    const EACH: u32 = 5_000;
    const BYTES: u32 = 1_000;
    assert!(u64::from(BYTES) >= Config::default().defer_min_bytes(), "responses are paced");
    let topology = rack(3);
    let message = |number: u32| Message { number, from: number % 2, to: 2, bytes: BYTES, at: 0 };
    let messages: Vec<Message> = (0..2 * EACH).map(message).collect();
    let took = *carry(topology, &messages).iter().max().unwrap();
    let link = topology.host_rate.time(PACKETS.wire_bytes(BYTES) * u64::from(2 * EACH));
    assert!(took < link + link / 10, "{took} ns for what the link carries in {link} ns");
}

#[test]
fn short_messages_pass_thousands_of_standing_requests() {
    const STANDING: u32 = 2_000;
    const SHORT: u32 = 200;
    let topology = rack(17);
    let link = topology.host_rate.time(PACKETS.wire_bytes(100_000) * u64::from(STANDING));
    let gap = link * 9 / 10 / u64::from(SHORT);
    let long = (0..STANDING).map(|i| (1 + i % 16, 100_000, 0));
    let short = (0..SHORT).map(|i| (1 + i % 16, 100, Nanos::from(i + 1) * gap));
    let messages: Vec<Message> = long
        .chain(short)
        .zip(0..)
        .map(|((to, bytes, at), number): ((HostId, u32, Nanos), u32)| Message {
            number,
            from: 0,
            to,
            bytes,
            at,
        })
        .collect();
    let took = carry(topology, &messages);
    let (long, short) = took.split_at(STANDING as usize);

    let whole = *long.iter().max().unwrap();
    assert!(whole < link + link / 10, "{whole} ns for what the link carries in {link} ns");

    let ideal = 2 * topology.unloaded(0, 1, 1, 0, PACKETS.wire_bytes(100));
    let mut short = short.to_vec();
    short.sort_unstable();
    let p99 = short[short.len() * 99 / 100];
    // Packets in the interface cannot be overtaken: a burst of the client's own.
    let burst = topology.host_rate.time(Config::default().burst_bytes() * 11 / 10);
    assert!(
        p99 < burst + 2 * ideal,
        "p99 of short messages {p99} ns, {ideal} ns on an idle fabric"
    );
}
