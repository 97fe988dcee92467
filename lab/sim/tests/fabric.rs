//! Behaviour of simulated links and switches.
//!
//! The hosts here have no transport: each sends the packets of its list, as fast as its link
//! accepts them, and records arrivals.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use apus_sim::fabric::{Buffers, Settings, Spreading};
use apus_sim::{Delays, Fabric, Host, HostId, Message, Network, Outcome, Packet, Topology};
use apus_workload::{Nanos, Rate};
use proptest::prelude::*;

/// An arrived packet: time and number.
type Arrival = (Nanos, Packet, u32);

/// Sends a list of packets.
#[derive(Debug)]
struct Sender {
    id: HostId,
    list: VecDeque<(Packet, u32)>,
    arrivals: Rc<RefCell<Vec<Arrival>>>,
}

impl Host for Sender {
    type Body = u32;

    fn submit(&mut self, _now: Nanos, _message: &Message) {}

    fn receive(&mut self, now: Nanos, packet: &Packet, number: &u32) {
        self.arrivals.borrow_mut().push((now, *packet, *number));
    }

    fn transmit(&mut self, _now: Nanos, packet: &mut Packet, body: &mut u32) -> bool {
        let Some(next) = self.list.pop_front() else { return false };
        (*packet, *body) = next;
        true
    }

    fn next_timeout(&self) -> Option<Nanos> {
        None
    }

    fn handle_timeout(&mut self, _now: Nanos) {}

    fn poll_outcome(&mut self) -> Option<Outcome> {
        None
    }

    fn id(&self) -> HostId {
        self.id
    }
}

fn settings(shape: &str) -> Settings {
    let delays = Delays { switch: 250, host_out: 1_000, host_in: 500, propagation: 0, per_rack: 0 };
    let topology = Topology {
        shape: shape.parse().unwrap(),
        host_rate: Rate::from_mbps(10_000).unwrap(),
        fabric_rate: Rate::from_mbps(40_000).unwrap(),
        delays,
    };
    Settings::new(topology, 1)
}

fn packet(from: HostId, to: HostId, wire_bytes: u32, priority: u8) -> Packet {
    let (flow, ecn_capable, marked) = (0, true, false);
    Packet { from, to, flow, wire_bytes, payload: 1, priority, ecn_capable, marked }
}

/// Runs until all packets have arrived. Returns the arrivals, in order, and the fabric.
fn carry(settings: &Settings, packets: &[Packet]) -> (Vec<Arrival>, Fabric<Sender>) {
    let arrivals = Rc::new(RefCell::new(Vec::new()));
    let mut fabric = Fabric::new(settings, |id| {
        let mine = packets.iter().copied().zip(0..).filter(|(packet, _)| packet.from == id);
        Sender { id, list: mine.collect(), arrivals: Rc::clone(&arrivals) }
    });
    for from in 0..settings.topology.shape.hosts() {
        // Makes the fabric serve the host.
        fabric.submit(&Message { number: 0, from, to: 0, bytes: 8, at: 0 });
    }
    fabric.advance(10_000_000, &mut |_, _| {});
    let arrivals = arrivals.borrow().clone();
    (arrivals, fabric)
}

fn numbers(arrivals: &[Arrival]) -> Vec<u32> {
    arrivals.iter().map(|(_, _, number)| *number).collect()
}

#[test]
fn an_urgent_packet_waits_for_the_one_on_the_link_and_for_no_other() {
    let mut packets: Vec<Packet> = (0..10).map(|i| packet(i % 2, 2, 1_538, 0)).collect();
    packets.push(packet(3, 2, 1_538, 0));
    packets.push(packet(3, 2, 84, 7));
    let (arrivals, _) = carry(&settings("1x4x0"), &packets);
    let at = numbers(&arrivals).iter().position(|number| *number == 11).unwrap();
    // Host 3's second packet reaches the switch after its first one has left; three full packets
    // arrive at that time.
    assert!(at <= 3, "{:?}", numbers(&arrivals));
    let (others, urgent) = (&arrivals[at - 1], &arrivals[at]);
    assert_eq!(urgent.0 - others.0, 67, "right behind the packet that was on the link");
}

#[test]
fn packets_of_one_level_leave_in_order_and_back_to_back() {
    let packets: Vec<Packet> = (0..20).map(|_| packet(0, 1, 1_538, 3)).collect();
    let (arrivals, _) = carry(&settings("1x2x0"), &packets);
    assert_eq!(numbers(&arrivals), (0..20).collect::<Vec<_>>());
    assert!(arrivals.windows(2).all(|pair| pair[1].0 - pair[0].0 == 1_230));
}

#[test]
fn a_full_port_drops_the_last_packets() {
    let packets: Vec<Packet> = (0..40).map(|i| packet(i % 4, 4, 1_000, 0)).collect();
    let buffers = Buffers::PerPort(5_000);
    let (arrivals, fabric) = carry(&Settings { buffers, ..settings("1x5x0") }, &packets);
    let counters = fabric.counters();
    assert_eq!(counters.dropped + arrivals.len() as u64, 40);
    // Four packets arrive while one leaves.
    assert!((10..=20).contains(&arrivals.len()), "{} of 40", arrivals.len());
    assert_eq!(counters.tor_to_host.max, 5_000);
    // 10 Gbit/s carry as much in 4 µs.
    let buffers = Buffers::PerPortTime(4_000);
    let same = carry(&Settings { buffers, ..settings("1x5x0") }, &packets).1.counters();
    assert_eq!(same.tor_to_host.max, 5_000);
}

#[test]
fn ports_of_a_switch_share_its_buffer_if_configured() {
    let packets: Vec<Packet> = (0..60).map(|i| packet(i % 6, 6 + i % 2, 1_000, 0)).collect();
    let arrived = |buffers| carry(&Settings { buffers, ..settings("1x8x0") }, &packets).0.len();
    assert_eq!(arrived(Buffers::PerPort(30_000)), 60, "room for all");
    assert!(arrived(Buffers::Shared(30_000)) < 60, "as much for both as one had");
    assert_eq!(arrived(Buffers::Shared(60_000)), 60);
}

#[test]
fn a_port_marks_ecn_capable_packets_from_its_threshold_on() {
    let mut packets: Vec<Packet> = (0..20).map(|i| packet(i % 2, 2, 1_000, 0)).collect();
    for packet in packets.iter_mut().skip(1).step_by(2) {
        packet.ecn_capable = false;
    }
    let mark_at = Some(3_000);
    let (arrivals, fabric) = carry(&Settings { mark_at, ..settings("1x3x0") }, &packets);
    let marked = arrivals.iter().filter(|(_, packet, _)| packet.marked).count() as u64;
    assert_eq!(fabric.counters().marked, marked);
    assert!(marked >= 3, "{marked} of 20");
    assert!(arrivals.iter().all(|(_, packet, _)| packet.ecn_capable || !packet.marked));
    let first = arrivals.iter().position(|(_, packet, _)| packet.marked).unwrap();
    assert!(first >= 3, "the first three found less than 3,000 bytes");
    let settings = Settings { mark_at, only_core_marks: true, ..settings("1x3x0") };
    assert_eq!(carry(&settings, &packets).1.counters().marked, 0, "a port to a host");
}

#[test]
fn an_oversubscribed_core_carries_its_links_capacity() {
    let packets: Vec<Packet> = (0..400).map(|i| packet(i % 8, 8 + i % 8, 1_538, 0)).collect();
    let last =
        |spines: u32| carry(&settings(&format!("2x8x{spines}")), &packets).0.last().unwrap().0;
    let (one, two) = (last(1), last(2));
    // 400 packets of 1,538 bytes over 40 Gbit/s take 123 µs; eight hosts send for 62 µs.
    assert!((123_000..130_000).contains(&one), "{one} ns over one link");
    assert!((61_500..75_000).contains(&two), "{two} ns over two");
}

#[test]
fn racks_may_be_at_different_distances() {
    let mut settings = settings("3x2x1");
    settings.topology.delays.per_rack = 10_000;
    for to in [2, 4] {
        let (arrivals, _) = carry(&settings, &[packet(0, to, 84, 0)]);
        assert_eq!(arrivals[0].0, settings.topology.unloaded(0, to, 1, 0, 84));
    }
    let near = settings.topology.unloaded(0, 2, 1, 0, 84);
    assert_eq!(settings.topology.unloaded(0, 4, 1, 0, 84) - near, 10_000);
}

proptest! {
    /// Every packet arrives once at its host or is dropped, and no packet remains.
    #[test]
    fn no_packet_is_lost_or_doubled(
        pairs in proptest::collection::vec((0u32..6, 0u32..5, 84u32..1_538, 0u8..8), 1..200),
        per_port in 2_000u64..20_000,
        flow in any::<bool>(),
    ) {
        let packets: Vec<Packet> = pairs
            .into_iter()
            .map(|(from, other, bytes, priority)| {
                packet(from, other + u32::from(other >= from), bytes, priority)
            })
            .collect();
        let spreading = if flow { Spreading::PerFlow } else { Spreading::PerPacket };
        let buffers = Buffers::PerPort(per_port);
        let (arrivals, fabric) = carry(&Settings { spreading, buffers, ..settings("3x2x2") }, &packets);
        let mut seen = vec![0; packets.len()];
        for (_, packet, number) in &arrivals {
            prop_assert_eq!(packet.to, packets[*number as usize].to);
            seen[*number as usize] += 1;
        }
        prop_assert!(seen.iter().all(|count| *count <= 1));
        prop_assert_eq!(arrivals.len() as u64 + fabric.counters().dropped, packets.len() as u64);
        prop_assert_eq!(fabric.under_way(), 0);
    }
}
