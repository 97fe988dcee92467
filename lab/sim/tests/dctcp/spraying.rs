//! DCTCP on packets that are spread over paths and overtake each other.
//!
//! Users of DCTCP keep a flow on one path; the published simulations of Homa spray. The baseline
//! must handle both, or it would be weaker in that fabric than Linux, which tolerates reordering.

use apus_sim::dctcp::{Config, Counters, DctcpHost, FULL_FRAME};
use apus_sim::fabric::{Buffers, Settings, Spreading};
use apus_sim::{Fabric, Message, Network, Outcome, preset};
use apus_workload::Nanos;
use apus_workload::time::MILLISECOND;

/// Half the hosts of the paper's fabric send four megabytes each to hosts in other racks, as fast
/// as possible. Returns the counters of each host, and when its message was delivered.
fn permutation(spreading: Spreading) -> (Vec<Counters>, Vec<Nanos>) {
    let settings = Settings {
        spreading,
        mark_at: Some(12 * FULL_FRAME),
        buffers: Buffers::PerPort(500 * FULL_FRAME),
        ..Settings::new(preset::sigcomm18(), 1)
    };
    let mut fabric = Fabric::new(&settings, |id| DctcpHost::new(id, Config::default()));
    for from in 0..72 {
        let (to, bytes) = ((from + 72) % 144, 4_000_000);
        fabric.submit(&Message { number: from, from, to, bytes, at: 0 });
    }
    let mut delivered = Vec::new();
    fabric.advance(40 * MILLISECOND, &mut |at, outcome| {
        if matches!(outcome, Outcome::Delivered(_)) {
            delivered.push(at);
        }
    });
    let senders = fabric.hosts().take(72);
    (senders.flat_map(DctcpHost::connections).map(|(_, info)| info.counters).collect(), delivered)
}

/// Four megabytes take 3.4 ms at 10 Gbit/s.
#[test]
fn spraying_is_not_mistaken_for_loss() {
    let (counters, delivered) = permutation(Spreading::PerPacket);
    assert_eq!(delivered.len(), 72);
    assert!(delivered.iter().all(|at| *at < 4 * MILLISECOND), "{delivered:?}");
    let again: u64 = counters.iter().map(|counters| counters.retransmissions).sum();
    let segments: u64 = counters.iter().map(|counters| counters.segments).sum();
    assert!(again * 50 < segments, "{again} of {segments}");
    assert!(counters.iter().all(|counters| counters.timeouts == 0));
}

/// Hashing puts several flows on one link while others are idle: some take longer, and no packet is
/// reordered.
#[test]
fn hashing_collides_and_does_not_reorder() {
    let (counters, delivered) = permutation(Spreading::PerFlow);
    assert_eq!(delivered.len(), 72);
    assert!(delivered.last().is_some_and(|last| *last > 4 * MILLISECOND));
    assert!(counters.iter().all(|counters| counters.duplicates == 0 && counters.undone == 0));
}

#[test]
fn the_same_run_gives_the_same_result() {
    assert_eq!(permutation(Spreading::PerPacket), permutation(Spreading::PerPacket));
}
