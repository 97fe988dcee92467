//! Which hosts, switches and links are there?

use super::dice::Dice;
use apus_sim::fabric::{Buffers, Settings, Spreading};
use apus_sim::topology::{Delays, Shape, Topology};
use apus_workload::time::{Rate, SECOND};

/// A small fabric, and the longest packet that it carries (header and payload, without IP and UDP).
pub(super) fn draw(dice: &mut Dice, seed: u64) -> (Settings, u32) {
    let shape = shape(dice);
    let host_mbps = dice.one_of(&[1_000, 10_000, 10_000, 25_000, 100_000]);
    let fabric_mbps = host_mbps * dice.one_of(&[1, 1, 2, 4]);
    let rate = |mbps| Rate::from_mbps(mbps).expect("one of the rates above");
    let topology = Topology {
        shape,
        host_rate: rate(host_mbps),
        fabric_rate: rate(fabric_mbps),
        delays: delays(dice),
    };
    let packet_limit = dice.one_of(&[1_232, 1_472, 1_472, 1_472, 4_000, 8_972]);
    let buffers = match dice.within(0..10) {
        0..4 => Buffers::PerPort(u64::MAX),
        4..7 => Buffers::PerPort(dice.scale(3 * u64::from(packet_limit), 500_000)),
        _ => Buffers::Shared(dice.scale(8 * u64::from(packet_limit), 2_000_000)),
    };
    let spreading = dice.one_of(&[Spreading::PerPacket, Spreading::PerFlow]);
    // Nobody looks at who idles here.
    let sample_every = SECOND;
    (Settings { spreading, buffers, sample_every, ..Settings::new(topology, seed) }, packet_limit)
}

/// 2 to 40 hosts; often one rack.
fn shape(dice: &mut Dice) -> Shape {
    if dice.percent(60) {
        return Shape { racks: 1, hosts_per_rack: dice.scale(2, 40) as u32, spines: 0 };
    }
    let racks = dice.within(2..=4);
    Shape { racks, hosts_per_rack: dice.within(1..=10), spines: dice.within(1..=4) }
}

fn delays(dice: &mut Dice) -> Delays {
    let long = dice.percent(15);
    Delays {
        switch: dice.scale(0, 1_000),
        host_out: dice.scale(0, 3_000),
        host_in: dice.scale(0, 3_000),
        propagation: if long { dice.scale(1_000, 100_000) } else { dice.scale(0, 500) },
        per_rack: if dice.percent(30) { dice.scale(100, 50_000) } else { 0 },
    }
}
