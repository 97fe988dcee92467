//! Conversion of load into messages per second.
//!
//! Load is the share of time that the links to hosts are busy with a message and its overhead:
//! headers, grants, and the response that confirms its arrival. SIGCOMM 2018 counts in the same
//! way, but its one-way messages have no response, its headers are shorter, and it sends a grant
//! per DATA packet. Where the paper's counting leaves less room for payload than apus does (W4,
//! W5), the offered payload is capped at the paper's: published slowdowns belong to that number of
//! messages a second.
//!
//! Where the links between racks and spines have less room for uniform destinations than the links
//! to hosts, load refers to those links: an oversubscribed core limits the throughput of the
//! fabric.
//!
//! All transports get the messages that make up this load for apus, so that they carry the same
//! traffic.

use apus_proto::Config;
use apus_wire::Kind;
use apus_workload::{PacketOverhead, SizeDistribution, Workload};

use crate::host::{Answer, wire_bytes};
use crate::processor::Costs;
use crate::published;
use crate::topology::Topology;
use apus_workload::time::Rate;

/// Returns the messages per second, of all hosts together, that correspond to `load`.
pub(super) fn messages_per_second(
    load: f64,
    topology: &Topology,
    workload: &Workload,
    packets: &PacketOverhead,
    config: &Config,
    answer: Answer,
) -> f64 {
    let sizes = workload.sizes();
    let per_message: f64 =
        sizes.iter().map(|(size, share)| share * exchange(size, packets, config, answer)).sum();
    let bytes_per_second = topology.host_rate.mbps() as f64 * 1e6 / 8.0;
    let messages = match published::payload_share(&workload.to_string()) {
        Some(share) => (1.0 / per_message).min(share / payload(sizes, answer)),
        None => 1.0 / per_message,
    };
    let hosts = load * topology.uniform_capacity() * bytes_per_second;
    hosts * f64::from(topology.shape.hosts()) * messages
}

/// Returns the message rate that keeps one host's processor always busy. A message takes the time
/// of its packets, grants and response, at the sender and at the receiver; with uniform traffic
/// every host is as often a sender as a receiver.
pub(super) fn processed_per_second(
    costs: &Costs,
    link: Rate,
    workload: &Workload,
    packets: &PacketOverhead,
    config: &Config,
    answer: Answer,
) -> f64 {
    let picos =
        |wire_bytes| (costs.receive.picos(wire_bytes) + costs.send.picos(wire_bytes)) as f64;
    let full = packets.payload;
    let max_incoming = max_incoming(config, link);
    let wire = |payload| packets.wire_bytes(payload) as u32;
    let way = |size: u32| {
        let rest = size % full;
        f64::from(size / full) * picos(wire(full))
            + if rest > 0 || size == 0 { picos(wire(rest)) } else { 0.0 }
            + grants(size, packets, config, max_incoming)
                * picos(wire_bytes(packets, Kind::Grant.header_len(), 0))
    };
    let exchange = |size: u32| way(size) + way(answer.bytes(size));
    let per_message: f64 =
        workload.sizes().iter().map(|(size, share)| share * exchange(size)).sum();
    1e12 / per_message
}

/// Returns the mean payload bytes of a message and its response.
fn payload(sizes: &SizeDistribution, answer: Answer) -> f64 {
    match answer {
        Answer::Nothing => sizes.mean(),
        Answer::Echo => 2.0 * sizes.mean(),
        Answer::Bytes(bytes) => sizes.mean() + f64::from(bytes),
    }
}

/// Returns the bytes on links to hosts for a message of this size and its response.
fn exchange(size: u32, packets: &PacketOverhead, config: &Config, answer: Answer) -> f64 {
    one_way(size, packets, config) + one_way(answer.bytes(size), packets, config)
}

/// Returns the bytes on links to hosts for one message: its packets, and the grants for its
/// scheduled part.
fn one_way(size: u32, packets: &PacketOverhead, config: &Config) -> f64 {
    let grant = f64::from(wire_bytes(packets, Kind::Grant.header_len(), 0));
    // With max_incoming=0 this is a GRANT per packet, which changes the load little: a GRANT is
    // short.
    packets.wire_bytes(size) as f64 + grant * grants(size, packets, config, config.max_incoming())
}

/// Returns the number of GRANTs for one message.
fn grants(size: u32, packets: &PacketOverhead, config: &Config, max_incoming: u64) -> f64 {
    let scheduled = f64::from(size.saturating_sub(config.unsched_bytes_max() as u32));
    (scheduled / granted_at_once(packets, config, max_incoming)).ceil()
}

/// Returns the bytes that may be granted and not received, for a link of this rate (GRANT-5).
fn max_incoming(config: &Config, link: Rate) -> u64 {
    match config.max_incoming() {
        0 => (link.mbps() * 128 / 8).max(40_000),
        fixed => fixed,
    }
}

/// Returns the bytes that one GRANT adds when packets arrive one by one and `max_incoming` bytes
/// may be granted and not received (GRANT-7).
fn granted_at_once(packets: &PacketOverhead, config: &Config, max_incoming: u64) -> f64 {
    let window = match config.window() {
        0 => max_incoming / (config.max_overcommit() + 1),
        fixed => fixed,
    };
    let step = config.grant_increment().min(window.div_ceil(2)).max(1);
    let packet = u64::from(packets.payload);
    (step.div_ceil(packet) * packet) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Delays;

    #[test]
    fn full_packets_at_full_load_are_as_many_as_the_links_carry() {
        let delays = Delays { switch: 0, host_out: 0, host_in: 0, propagation: 0, per_rack: 0 };
        let rate = Rate::from_mbps(10_000).unwrap();
        let shape = "1x2x0".parse().unwrap();
        let topology = Topology { shape, host_rate: rate, fabric_rate: rate, delays };
        let packets = PacketOverhead::UDP_OVER_ETHERNET;
        let workload: Workload = packets.payload.to_string().parse().unwrap();
        let config = Config::default();
        let rate =
            |answer| messages_per_second(1.0, &topology, &workload, &packets, &config, answer);
        assert!((rate(Answer::Echo) - 1.25e9 / 1538.0).abs() < 1.0, "both directions are used");
        assert!((rate(Answer::Nothing) - 2.0 * 1.25e9 / (1538.0 + 123.0)).abs() < 1.0);
    }

    #[test]
    fn an_oversubscribed_core_has_the_load() {
        let topology = crate::preset::sigcomm18();
        let packets = PacketOverhead::UDP_OVER_ETHERNET;
        let (workload, config) = ("100".parse().unwrap(), Config::default());
        let rate = |topology: &Topology| {
            messages_per_second(0.8, topology, &workload, &packets, &config, Answer::Nothing)
        };
        let twice = topology.oversubscribed(2.0).unwrap();
        let share = rate(&twice) / rate(&topology);
        assert!((share - 0.5 * 143.0 / 128.0).abs() < 1e-9, "{share}");
    }

    #[test]
    fn grants_count_by_the_step() {
        let packets = PacketOverhead::UDP_OVER_ETHERNET;
        let config = Config::builder().window(20_000).grant_increment(1).build().unwrap();
        assert_eq!(granted_at_once(&packets, &config, config.max_incoming()), 1416.0);
        let config = Config::builder().window(3_000).build().unwrap();
        assert_eq!(granted_at_once(&packets, &config, config.max_incoming()), 2832.0);
    }
}
