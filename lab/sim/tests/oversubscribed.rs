//! An oversubscribed core: receivers cannot see the queue in it, and switches mark the packets that
//! wait there.

use apus_proto::Config;
use apus_sim::fabric::Settings;
use apus_sim::host::{Answer, ApusHost, Shared};
use apus_sim::{Fabric, Message, Network, Outcome, preset};
use apus_workload::{PacketOverhead, Workload};

const PACKETS: PacketOverhead = PacketOverhead::UDP_OVER_ETHERNET;
const SIZE: u32 = 2_000_000;
/// Messages of each host of the first rack, to a host of the second one.
const MESSAGES: u32 = 1;

/// Result of sending the messages of eight hosts through a core with a quarter of their rate.
#[derive(Debug)]
struct Run {
    marked: u64,
    /// Longest queue towards a spine, after the unscheduled bytes have passed.
    longest: u64,
    /// Share of the core that carried messages until the last one had arrived.
    carried: f64,
}

fn run(config: &Config) -> Run {
    let mut topology = preset::sigcomm18();
    topology.shape = "2x8x2".parse().unwrap();
    let topology = topology.oversubscribed(4.0).unwrap();
    let mut settings = Settings::new(topology, 1);
    settings.mark_at = Some(12_000);
    settings.only_core_marks = true;
    let shared = Shared::new(config.clone(), Answer::Nothing, topology.host_rate, PACKETS, SIZE);
    let mut fabric =
        Fabric::new(&settings, |id| ApusHost::new(id, shared.clone(), u64::from(id) + 1));
    let mut last = 0;
    let mut delivered = 0;
    for number in 0..8 * MESSAGES {
        let from = number % 8;
        fabric.submit(&Message { number, from, to: from + 8, bytes: SIZE, at: 0 });
    }
    fabric.advance(1_000_000, &mut |_, _| {});
    fabric.reset_counters();
    fabric.advance(1_000_000_000, &mut |now, outcome| match outcome {
        Outcome::Delivered(_) => (last, delivered) = (now, delivered + 1),
        Outcome::Failed(number) => panic!("message {number} failed"),
        Outcome::Done(_) => {}
    });
    assert_eq!(delivered, 8 * MESSAGES);
    let counters = fabric.counters();
    let core = topology.fabric_rate.time(PACKETS.wire_bytes(SIZE) * u64::from(delivered)) / 2;
    Run {
        marked: counters.marked,
        longest: counters.tor_to_spine.max,
        carried: core as f64 / last as f64,
    }
}

/// GRANT-18.
#[test]
fn marks_keep_the_queue_in_the_core_short_and_its_links_full() {
    let workload: Workload = SIZE.to_string().parse().unwrap();
    let config = preset::sigcomm18_config(&workload).unwrap();
    let deaf = config.to_builder().marked_incoming(0).build().unwrap();
    let (without, with) = (run(&deaf), run(&config));
    println!("without {without:?}\nwith {with:?}");
    assert_eq!(without.marked, 0, "packets say that they may be marked only if marks are heeded");
    assert!(with.marked > 0 && with.longest * 2 < without.longest, "{with:?}, {without:?}");
    assert!(with.carried > 0.95 * without.carried, "{with:?}, {without:?}");
}
