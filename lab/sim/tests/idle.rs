//! Exact time of messages on an idle fabric.
//!
//! `Topology::ideal` is the basis of slowdown. If hosts or switches added a nanosecond that it
//! lacks, or omitted one, all published comparisons would be wrong.

use apus_sim::fabric::Settings;
use apus_sim::host::{Answer, ApusHost, Shared};
use apus_sim::{Fabric, HostId, Message, Network, Outcome, Topology, preset};
use apus_workload::Nanos;
use apus_workload::{PacketOverhead, Workload};

const PACKETS: PacketOverhead = PacketOverhead::UDP_OVER_ETHERNET;
const LONGEST: u32 = 1_000_000;

fn fabric(topology: Topology) -> Fabric<ApusHost> {
    let config = preset::sigcomm18_config(&Workload::published(4)).unwrap();
    let shared = Shared::new(config, Answer::Nothing, topology.host_rate, PACKETS, LONGEST);
    Fabric::new(&Settings::new(topology, 1), |id| ApusHost::new(id, shared.clone(), u64::from(id)))
}

/// Every packet's time on the link is rounded to a nanosecond, the ideal as a whole.
fn rounding(bytes: u32) -> Nanos {
    Nanos::from(bytes.div_ceil(PACKETS.payload) / 2)
}

/// Returns the nanoseconds from submission to delivery of messages that are far apart in time.
fn took(fabric: &mut Fabric<ApusHost>, from: HostId, to: HostId, sizes: &[u32]) -> Vec<Nanos> {
    let gap = 2_000_000;
    let mut took = Vec::new();
    for (number, bytes) in (0..).zip(sizes) {
        let at = fabric.now() + gap;
        fabric.advance(at, &mut |_, _| {});
        fabric.submit(&Message { number, from, to, bytes: *bytes, at });
        fabric.advance(at + gap, &mut |now, outcome| {
            if outcome == Outcome::Delivered(number) {
                took.push(now - at);
            }
        });
    }
    took
}

#[test]
fn a_message_takes_the_ideal_time() {
    let topology = preset::sigcomm18();
    let mut fabric = fabric(topology);
    // The first message establishes contact between the hosts. Unscheduled messages need no grants.
    let sizes = [8, 8, 100, 1_416, 1_417, 1_500, 2_832, 9_000];
    for (from, to) in [(0, 1), (0, 16), (143, 7)] {
        let took = took(&mut fabric, from, to, &sizes);
        for (bytes, took) in sizes.iter().zip(took).skip(1) {
            let ideal = topology.ideal(from, to, *bytes, &PACKETS);
            assert!(took <= ideal + rounding(*bytes), "{bytes} bytes: {took}, ideally {ideal}");
            // A short last packet may take another spine and overtake its predecessor.
            let last = PACKETS.wire_bytes((bytes - 1) % PACKETS.payload + 1);
            let passed = u64::from(*bytes > PACKETS.payload) * topology.host_rate.time(last);
            assert!(took + passed + rounding(*bytes) >= ideal, "{bytes} bytes: {took} < {ideal}");
        }
    }
}

/// Grants arrive in time: the link never idles. The only loss is the shorter packet at the end of
/// the unscheduled bytes.
#[test]
fn a_long_message_keeps_its_link_busy() {
    let topology = preset::sigcomm18();
    let mut fabric = fabric(topology);
    let sizes = [8, 20_000, 100_000, LONGEST];
    let took = took(&mut fabric, 0, 16, &sizes);
    for (bytes, took) in sizes.iter().zip(took).skip(1) {
        let ideal = topology.ideal(0, 16, *bytes, &PACKETS);
        assert!(took + rounding(*bytes) >= ideal, "{bytes} bytes: {took} ns, ideally {ideal}");
        assert!(took <= ideal + 300, "{bytes} bytes: {took} ns, ideally {ideal}");
    }
}

#[test]
fn no_packet_is_in_flight_after_all_messages_are_delivered() {
    let mut fabric = fabric(preset::sigcomm18());
    let took = took(&mut fabric, 5, 100, &[50_000, 8]);
    assert_eq!((took.len(), fabric.under_way()), (2, 0));
    let live = fabric.host(5).transport().live();
    assert_eq!((live.client_rpcs, live.send_bytes, live.incoming_bytes), (0, 0, 0));
}
