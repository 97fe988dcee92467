//! Random fabrics.

use super::random::SeededRng;
use apus_sim::fabric::{Buffers, Settings, Spreading};
use apus_sim::topology::{Delays, Shape, Topology};
use apus_workload::time::{Rate, SECOND};

/// Generates a small fabric. Also returns its longest packet: header and payload, without IP and
/// UDP headers.
pub(super) fn generate(rng: &mut SeededRng, seed: u64) -> (Settings, u32) {
    let shape = shape(rng);
    let host_mbps = rng.one_of(&[1_000, 10_000, 10_000, 25_000, 100_000]);
    let fabric_mbps = host_mbps * rng.one_of(&[1, 1, 2, 4]);
    let rate = |mbps| Rate::from_mbps(mbps).expect("one of the rates above");
    let topology = Topology {
        shape,
        host_rate: rate(host_mbps),
        fabric_rate: rate(fabric_mbps),
        delays: delays(rng),
    };
    let packet_limit = rng.one_of(&[1_232, 1_472, 1_472, 1_472, 4_000, 8_972]);
    let buffers = match rng.within(0..10) {
        0..4 => Buffers::PerPort(u64::MAX),
        4..7 => Buffers::PerPort(rng.scale(3 * u64::from(packet_limit), 500_000)),
        _ => Buffers::Shared(rng.scale(8 * u64::from(packet_limit), 2_000_000)),
    };
    let spreading = rng.one_of(&[Spreading::PerPacket, Spreading::PerFlow]);
    // Link idleness is not evaluated here.
    let sample_every = SECOND;
    // Some switches mark all queued packets, others only those behind a longer queue.
    let mark_at = rng.percent(60).then(|| rng.scale(0, 100_000));
    let only_core_marks = rng.percent(30);
    let plain = Settings::new(topology, seed);
    let settings = Settings { spreading, buffers, mark_at, only_core_marks, sample_every, ..plain };
    (settings, packet_limit)
}

/// Generates 2 to 40 hosts, often in one rack.
fn shape(rng: &mut SeededRng) -> Shape {
    if rng.percent(60) {
        return Shape { racks: 1, hosts_per_rack: rng.scale(2, 40) as u32, spines: 0 };
    }
    let racks = rng.within(2..=4);
    Shape { racks, hosts_per_rack: rng.within(1..=10), spines: rng.within(1..=4) }
}

fn delays(rng: &mut SeededRng) -> Delays {
    let long = rng.percent(15);
    Delays {
        switch: rng.scale(0, 1_000),
        host_out: rng.scale(0, 3_000),
        host_in: rng.scale(0, 3_000),
        propagation: if long { rng.scale(1_000, 100_000) } else { rng.scale(0, 500) },
        per_rack: if rng.percent(30) { rng.scale(100, 50_000) } else { 0 },
    }
}
