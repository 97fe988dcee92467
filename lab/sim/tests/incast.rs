//! Incast: one host has many outstanding calls whose responses arrive at the same time.

use apus_proto::Config;
use apus_sim::fabric::{Buffers, Settings};
use apus_sim::host::{Answer, ApusHost, Shared};
use apus_sim::{Fabric, HostId, Message, Network, Outcome, preset};
use apus_workload::{Nanos, PacketOverhead, Workload};

const PACKETS: PacketOverhead = PacketOverhead::UDP_OVER_ETHERNET;
/// Bytes of a request and of its response.
const SIZES: (u32, u32) = (100, 10_000);

/// Result of one host's calls to all others of its rack.
#[derive(Debug)]
struct Incast {
    /// Packets that the switch dropped.
    dropped: u64,
    /// Share of the client's link that carried responses until the last had arrived.
    carried: f64,
    /// Longest queue towards the client.
    longest: u64,
}

fn run(calls: u32, config: &Config) -> Incast {
    let mut topology = preset::sigcomm18();
    topology.shape = "1x16x0".parse().unwrap();
    let mut settings = Settings::new(topology, 1);
    settings.buffers = Buffers::PerPort(200_000);
    let answer = Answer::Bytes(SIZES.1);
    let shared = Shared::new(config.clone(), answer, topology.host_rate, PACKETS, SIZES.1);
    let mut fabric =
        Fabric::new(&settings, |id| ApusHost::new(id, shared.clone(), u64::from(id) + 1));
    let mut done = Vec::new();
    let mut tell = |now: Nanos, outcome: Outcome| match outcome {
        Outcome::Done(_) => done.push(now),
        Outcome::Failed(number) => panic!("call {number} failed"),
        Outcome::Delivered(_) => {}
    };
    let call = |number: u32, at: Nanos| {
        let to = 1 + number % 15 as HostId;
        Message { number, from: 0, to, bytes: SIZES.0, at }
    };
    // Establishes contact with all servers.
    for number in 0..15 {
        fabric.submit(&call(number, 0));
    }
    let begin = 10_000_000;
    fabric.advance(begin, &mut tell);
    fabric.reset_counters();
    for number in 0..calls {
        fabric.submit(&call(15 + number, begin));
    }
    fabric.advance(begin + 2_000_000_000, &mut tell);
    assert_eq!(done.len() as u32, 15 + calls, "calls without a response");
    let link = topology.host_rate.time(PACKETS.wire_bytes(SIZES.1) * u64::from(calls));
    let counters = fabric.counters();
    Incast {
        dropped: counters.dropped,
        carried: link as f64 / (done.last().unwrap() - begin) as f64,
        longest: counters.tor_to_host.max,
    }
}

/// PRIO-15, with the configuration of the preset; `limit` is `incast_unsched_bytes`.
fn config(limit: u64) -> Config {
    let workload: Workload = "10000".parse().unwrap();
    let config = preset::sigcomm18_config(&workload).unwrap().to_builder();
    config.max_client_rpcs(6_000).incast_unsched_bytes(limit).build().unwrap()
}

#[test]
fn five_thousand_responses_at_once_lose_no_packet() {
    for calls in [50, 300, 1_000, 5_000] {
        let limited = run(calls, &config(100_000));
        assert_eq!(limited.dropped, 0, "{calls} calls: {limited:?}");
        assert!(limited.carried >= 0.95, "{calls} calls: {limited:?}");
        assert!(limited.longest <= 200_000, "{calls} calls: {limited:?}");
    }
}

/// Without the limit, the same calls overflow the buffer.
#[test]
fn unlimited_unscheduled_responses_overflow_the_buffer() {
    let unlimited = run(300, &config(0));
    assert!(unlimited.dropped > 1_000, "{unlimited:?}");
    assert!(unlimited.carried < 0.5, "{unlimited:?}");
}
