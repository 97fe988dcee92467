//! Hosts: a client with many ports. Requirement CAP-18.

use crate::world::{Conduct, SERVER, World};
use apus_proto::{Config, DropReason, FailureKind, Refusal};
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);
const REFUSED: FailureKind = FailureKind::Refused(Refusal::Overloaded);

fn calls_from(world: &mut World, host: u8, clients: u16) -> Vec<usize> {
    let new = |port| world.client(host, port, Conduct::Honest);
    let clients: Vec<usize> = (1..=clients).map(new).collect();
    for client in &clients {
        world.call(*client, 100);
        world.run(MILLISECOND / 100);
    }
    world.run(MILLISECOND);
    clients
}

/// The attack as it was shown: 10,000 ports of one host filled the table of peers, and no other
/// client was served for ten seconds.
#[test]
fn a_host_with_many_ports_keeps_no_other_away() {
    const PORTS: u16 = 10_500;
    let mut world = World::new(Config::default());
    let before = calls_from(&mut world, 2, 1);
    let ports = calls_from(&mut world, 1, PORTS);
    assert_eq!(world.ended(&ports), (u32::from(PORTS), 0), "they are served one after the other");
    let metrics = world.ends[SERVER].transport.metrics();
    assert_eq!(metrics.live.peers, 5_001);
    assert_eq!(metrics.admission.peers_displaced, u64::from(PORTS) - 5_000);

    let after = calls_from(&mut world, 3, 1);
    assert_eq!(world.ended(&after), (1, 0), "an unknown client is served at once");
    // The session of the previous one was not lost: it is not asked again.
    let asked = world.ends[SERVER].transport.metrics().admission.challenges_sent;
    world.call(before[0], 100);
    world.run(MILLISECOND);
    assert_eq!(world.ended(&before), (2, 0));
    assert_eq!(world.ends[SERVER].transport.metrics().admission.challenges_sent, asked);
}

/// Two hosts fill the table, none of them with more than it may have: newcomers of other hosts
/// displace their peers.
#[test]
fn the_largest_host_makes_room() {
    let config = Config::builder().max_peers(100).max_peers_per_host(60).build().unwrap();
    let mut world = World::new(config);
    for (host, ports) in [(1, 50), (2, 50)] {
        let clients = calls_from(&mut world, host, ports);
        assert_eq!(world.ended(&clients), (u32::from(ports), 0));
    }
    for host in 3..=30 {
        let client = calls_from(&mut world, host, 1);
        assert_eq!(world.ended(&client), (1, 0), "host {host}");
    }
    let metrics = world.ends[SERVER].transport.metrics();
    assert_eq!((metrics.live.peers, metrics.admission.peers_displaced), (100, 28));
}

/// Peers with live requests stay: the host's next client is refused with a reason. Clients of other
/// hosts are served.
#[test]
fn a_host_whose_clients_are_all_busy_is_refused() {
    let config = Config::builder().max_peers_per_host(20).build().unwrap();
    let mut world = World::new(config);
    world.replies = false;
    let busy = calls_from(&mut world, 1, 20);
    let more: Vec<usize> = (21..=25).map(|port| world.client(1, port, Conduct::Honest)).collect();
    for client in &more {
        world.call(*client, 100);
    }
    world.replies = true;
    let other = calls_from(&mut world, 2, 1);
    assert_eq!(world.ended(&other), (1, 0));
    assert_eq!(world.ended(&busy), (0, 0), "they are being served");
    assert!(more.iter().all(|client| world.ends[*client].failed == [REFUSED]));
    let metrics = world.ends[SERVER].transport.metrics();
    assert_eq!(metrics.dropped(DropReason::HostPeers), 5);
    assert_eq!(metrics.admission.refused_of_host, 5);
}

/// Requests of one host, from however many ports.
#[test]
fn the_requests_of_a_host_are_limited() {
    let config = Config::builder().max_server_rpcs_per_host(20).build().unwrap();
    let mut world = World::new(config);
    let clients: Vec<usize> = (1..=30).map(|port| world.client(1, port, Conduct::Honest)).collect();
    for client in &clients {
        world.call(*client, 100);
        // The server keeps the response until it is acknowledged.
        world.run(2 * MILLISECOND);
    }
    assert_eq!(world.ended(&clients), (30, 0), "one after the other");
    world.replies = false;
    for client in &clients {
        world.call(*client, 100);
    }
    world.run(MILLISECOND);
    world.replies = true;
    let other = calls_from(&mut world, 2, 1);
    assert_eq!(world.ended(&other), (1, 0));
    assert_eq!(world.ended(&clients), (30, 10));
    assert!(clients[20..].iter().all(|client| world.ends[*client].failed == [REFUSED]));
    let metrics = world.ends[SERVER].transport.metrics();
    assert_eq!(metrics.dropped(DropReason::HostRpcs), 10);
}

/// Bytes of one host, from however many ports. (Real ones: claims alone take no room.)
#[test]
fn the_bytes_of_a_host_are_limited() {
    let config = Config::builder()
        .max_message(1_000_000)
        .max_receive_bytes(8_000_000)
        .max_receive_bytes_per_peer(1_000_000)
        .max_receive_bytes_per_host(4_000_000)
        .build()
        .unwrap();
    let mut world = World::new(config);
    let stalls = Conduct::Stalls { upto: 59_000, trickle: Duration::from_secs(1) };
    let attackers: Vec<usize> = (1..=100).map(|port| world.client(1, port, stalls)).collect();
    for client in &attackers {
        world.call(*client, 1_000_000);
    }
    world.run(20 * MILLISECOND);
    let (served, refused) = world.ended(&attackers);
    assert_eq!(served, 0);
    assert!((30..60).contains(&refused), "{refused} were refused");
    let metrics = world.ends[SERVER].transport.metrics();
    assert_eq!(metrics.dropped(DropReason::HostBytes), u64::from(refused));
    assert!(metrics.live.receive_bytes <= 4_000_000);
    // Another host has its share, and a short message of the same one, too.
    let long = world.client(2, 1, Conduct::Honest);
    let short = world.client(1, 101, Conduct::Honest);
    world.call(long, 1_000_000);
    world.call(short, 50_000);
    world.run(20 * MILLISECOND);
    assert_eq!(world.ended(&[long, short]), (2, 0));
}

/// Many honest clients behind one NAT, or on one Kubernetes node: 2,000 of them call at once, with
/// the defaults.
#[test]
fn many_honest_clients_of_one_host_are_served() {
    let mut world = World::new(Config::default());
    let clients: Vec<usize> =
        (1..=2_000).map(|port| world.client(1, port, Conduct::Honest)).collect();
    for round in 1..=2 {
        for client in &clients {
            world.call(*client, 20_000);
        }
        world.run(100 * MILLISECOND);
        assert_eq!(world.ended(&clients), (round * 2_000, 0));
    }
    let metrics = world.ends[SERVER].transport.metrics();
    assert_eq!((metrics.admission.refused, metrics.admission.peers_displaced), (0, 0));
}
