//! SIRD in a rack: the guarantees of its receivers and senders.

use std::collections::{HashMap, HashSet};

use apus_sim::fabric::Settings;
use apus_sim::sird::{Config, SirdHost};
use apus_sim::{Fabric, HostId, Message, Network, Outcome, Topology, preset};
use apus_workload::time::{MICROSECOND, MILLISECOND};
use apus_workload::{Nanos, PacketOverhead};

const PACKETS: PacketOverhead = PacketOverhead::UDP_OVER_ETHERNET;

/// A rack whose hosts run SIRD.
struct Rack {
    topology: Topology,
    config: Config,
    fabric: Fabric<SirdHost>,
    submitted: u32,
    delivered: HashMap<u32, Nanos>,
    done: HashSet<u32>,
}

impl Rack {
    fn new(adjust: impl FnOnce(Config) -> Config) -> Self {
        let mut topology = preset::sigcomm18();
        topology.shape = "1x8x0".parse().unwrap();
        let config = adjust(Config::new(&topology, PACKETS));
        let settings = Settings {
            mark_at: Some(config.marking_threshold),
            only_core_marks: true,
            ..Settings::new(topology, 1)
        };
        let fabric = Fabric::new(&settings, |id| SirdHost::new(id, config));
        Self {
            topology,
            config,
            fabric,
            submitted: 0,
            delivered: HashMap::new(),
            done: HashSet::new(),
        }
    }

    fn send(&mut self, from: HostId, to: HostId, bytes: u32) -> u32 {
        let number = self.submitted;
        self.submitted += 1;
        self.fabric.submit(&Message { number, from, to, bytes, at: self.fabric.now() });
        number
    }

    fn run(&mut self, time: Nanos) {
        let until = self.fabric.now() + time;
        self.fabric.advance(until, &mut |at, outcome| match outcome {
            Outcome::Delivered(number) => assert_eq!(self.delivered.insert(number, at), None),
            Outcome::Done(number) => {
                assert!(self.delivered.contains_key(&number) && self.done.insert(number));
            }
            Outcome::Failed(number) => panic!("message {number} failed"),
        });
    }

    /// Returns the time that a message took from host 1 to host 0 in an idle rack, and the best
    /// possible one.
    fn alone(bytes: u32) -> (Nanos, Nanos, Self) {
        let mut rack = Self::new(|config| config);
        let number = rack.send(1, 0, bytes);
        rack.run(10 * MILLISECOND);
        let took = rack.delivered[&number];
        (took, rack.topology.ideal(1, 0, bytes, &PACKETS), rack)
    }
}

#[test]
fn a_short_message_takes_the_best_possible_time() {
    for bytes in [8, 1_416, 1_417, 5_000] {
        let (took, best, _) = Rack::alone(bytes);
        assert!(took.abs_diff(best) <= 1, "{bytes} bytes: {took}, {best}");
    }
}

/// A request and a credit take the first round trip; then credit keeps the link as busy as its pace
/// allows.
#[test]
fn a_long_message_waits_a_round_trip_for_credit() {
    for bytes in [14 * PACKETS.payload, 706 * PACKETS.payload] {
        let (took, best, rack) = Rack::alone(bytes);
        let control = rack.topology.unloaded(1, 0, 1, 0, u64::from(PACKETS.minimum));
        let full = rack.config.full_packet();
        let slower = rack.config.pace(full) - rack.topology.host_rate.time(full);
        let packets = u64::from(bytes.div_ceil(PACKETS.payload));
        let expected = best + 2 * control + (packets - 1) * slower;
        // Packet times are rounded.
        assert!(took.abs_diff(expected) <= packets, "{bytes} bytes: {took}, {expected}");
    }
}

/// Seven senders with several messages each: credit is given up to the limit, and never beyond.
/// With a pace, no more is in flight than the link carries in a round-trip time.
#[test]
fn credit_never_exceeds_the_global_limit() {
    for paced in [true, false] {
        let mut rack = Rack::new(|config| Config {
            pace_percent: if paced { config.pace_percent } else { 0 },
            ..config
        });
        for round in 0..4 {
            for from in 1..8 {
                rack.send(from, 0, 20_000 + 5_000 * round + from);
            }
        }
        let mut most = 0;
        while rack.delivered.len() < 28 {
            rack.run(MICROSECOND);
            most = most.max(rack.fabric.host(0).in_flight());
            assert!(rack.fabric.now() < 10 * MILLISECOND, "{} delivered", rack.delivered.len());
        }
        let (limit, full) = (rack.config.global_limit, rack.config.full_packet());
        let queue = rack.fabric.counters().tor_to_host.max;
        if paced {
            assert!(most <= rack.config.bdp + full, "{most} of {limit}");
            assert!(queue <= 2 * full, "{queue}");
        } else {
            assert!((limit - full..=limit).contains(&most), "{most} of {limit}");
            assert!((2 * full..limit).contains(&queue), "{queue}: part of what is credited");
        }
        assert_eq!(rack.fabric.host(0).in_flight(), 0);
        // 28 messages of 27,504 bytes on average.
        let link = rack.topology.host_rate.time(28 * PACKETS.wire_bytes(27_504));
        let last = *rack.delivered.values().max().unwrap();
        assert!(last < link * 21 / 20, "{last}: the link carried data for {link}");
    }
}

/// The messages to a receiver are served by remaining bytes.
#[test]
fn the_shortest_message_is_credited_first() {
    let mut rack = Rack::new(|config| config);
    let long = rack.send(1, 0, 400_000);
    rack.run(50 * MICROSECOND);
    let (short, best) = (rack.send(2, 0, 40_000), rack.topology.ideal(2, 0, 40_000, &PACKETS));
    let at = rack.fabric.now();
    rack.run(MILLISECOND);
    let took = rack.delivered[&short] - at;
    assert!(took < best + 25 * MICROSECOND, "{took}, best {best}");
    assert!(rack.delivered[&long] > rack.delivered[&short]);
}

/// Half of the uplink is shared in turn: many short messages for one receiver do not hold up a
/// longer one for another.
#[test]
fn every_second_packet_is_for_the_receivers_in_turn() {
    let mut rack = Rack::new(|config| config);
    let short: Vec<u32> = (0..10).map(|_| rack.send(1, 2, 4_000)).collect();
    let long = rack.send(1, 3, 8_000);
    rack.run(MILLISECOND);
    let before = short.iter().filter(|number| rack.delivered[number] < rack.delivered[&long]);
    // Every second turn is its own: 6 of 24 packets. The other 18 belong to messages with three
    // packets each, and the last of these is not complete before it.
    assert_eq!(before.count(), 5);
}

/// Sends from host 1 to five receivers at once, and from host 2 to the first of them. Returns the
/// smallest limit that the first receiver had for host 1, the mean unused credit of host 1, and the
/// time of the message of host 2.
fn busy_sender(threshold: impl FnOnce(&Config) -> u64) -> (u64, u64, Nanos) {
    let mut rack = Rack::new(|config| Config { sender_threshold: threshold(&config), ..config });
    for to in 3..8 {
        rack.send(1, to, 600_000);
    }
    rack.run(300 * MICROSECOND);
    // Longer, so that the busy sender's messages precede it.
    let other = rack.send(2, 3, 700_000);
    let (at, mut least, mut unused, mut samples) = (rack.fabric.now(), u64::MAX, 0, 0);
    while !rack.delivered.contains_key(&other) {
        rack.run(MICROSECOND);
        least = least.min(rack.fabric.host(3).sender_limit(1).unwrap());
        unused += rack.fabric.host(1).unused_credit();
        samples += 1;
        assert!(samples < 10_000, "never delivered");
    }
    rack.run(10 * MILLISECOND);
    assert_eq!(rack.delivered.len(), 6, "all messages complete");
    (least, unused / samples, rack.delivered[&other] - at)
}

/// Credit that a busy sender would hold unused is given to another sender instead.
#[test]
fn a_busy_sender_gets_less_credit() {
    let (least, unused, took) = busy_sender(|config| config.sender_threshold);
    let (most, hoarded, slower) = busy_sender(|_| u64::MAX);
    let config = Rack::new(|config| config).config;
    assert_eq!(most, config.bdp);
    assert!(least < config.bdp / 2, "{least}");
    assert!(hoarded > 3 * config.bdp, "{hoarded}: from five receivers");
    assert!(unused < hoarded / 2, "{unused}, {hoarded}");
    assert!(took * 20 < slower * 19, "{took}, {slower}");
}

/// Messages of many lengths between all hosts all arrive, and twice in the same way.
#[test]
fn all_messages_arrive_and_runs_repeat() {
    let run = || {
        let mut rack = Rack::new(|config| config);
        for round in 0..40 {
            for from in 0..8 {
                let to = (from + 1 + round % 7) % 8;
                rack.send(from, to, 8 + (round * 7_919 + from * 104_729) % 60_000);
            }
            rack.run(20 * MICROSECOND);
        }
        rack.run(20 * MILLISECOND);
        assert_eq!((rack.delivered.len(), rack.done.len()), (320, 320));
        assert!(rack.fabric.hosts().all(|host| host.in_flight() + host.unused_credit() == 0));
        rack.delivered
    };
    assert_eq!(run(), run());
}
