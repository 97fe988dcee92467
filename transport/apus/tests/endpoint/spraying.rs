//! Spraying: granted packets leave from other ports. Requirements SEND-15 and WIRE-36.

use crate::bytes;
use crate::echo::echo;
use crate::fixtures::ShutDown;
use apus::{Config, Endpoint, EndpointBuilder, PollMode};
use apus_wire::{
    Body, Data, Dialect, Features, Flags, Header, Kind, MAX_HEADER_LEN, Packet, Role, SenderId,
    UdpFields,
};
use std::net::{SocketAddr, UdpSocket};

const LENGTH: usize = 2_000_000;

/// Options of an endpoint that does without shared memory.
fn options(spray_ports: u64) -> EndpointBuilder {
    // A busy machine causes no RESENDs: they would end the spraying of a message.
    let config = Config::builder().timeout_usecs(60_000_000).resend_usecs(10_000_000);
    let config = config.resend_interval_usecs(10_000_000).spray_ports(spray_ports).build().unwrap();
    EndpointBuilder::default().local(false).poll_mode(PollMode::Block).config(config)
}

/// Returns the sends that left from other ports, of all shards.
fn sprayed(endpoint: &Endpoint) -> u64 {
    let metrics = endpoint.metrics();
    metrics.driver.iter().find(|(name, _)| *name == "sprayed_sends").unwrap().1
}

/// Has `client` make calls to `server`, which echoes them. Returns what each of the two has
/// sprayed.
fn exchange(client: EndpointBuilder, server: EndpointBuilder, bind: &str) -> [u64; 2] {
    let (client, server) = (client.client().unwrap(), server.bind(bind).unwrap());
    let _shut_down = ShutDown(&[&client, &server]);
    let port = server.local_addr().port();
    let echo = echo(server.clone());
    for (seed, length) in [(1, 100), (2, LENGTH), (3, LENGTH), (4, 20_000)] {
        let message = bytes(seed, length);
        assert!(
            client.call(SocketAddr::from(([127, 0, 0, 1], port)), message.clone()).unwrap()
                == message[..]
        );
    }
    let sprayed = [sprayed(&client), sprayed(&server)];
    // Packets taken for packets of other peers would all have been retransmitted.
    for endpoint in [&client, &server] {
        let resent = endpoint.metrics().protocol.recovery.resent_bytes;
        assert!(resent < LENGTH as u64, "{resent} of {} bytes", 2 * LENGTH);
    }
    server.shutdown();
    echo.join().unwrap();
    sprayed
}

#[test]
fn long_messages_leave_from_other_ports_in_both_directions() {
    for bind in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
        let sprayed = exchange(options(3), options(5), bind);
        assert!(sprayed.iter().all(|sends| *sends >= 10), "{bind}: {sprayed:?}");
    }
}

#[test]
fn an_end_without_other_ports_prevents_it() {
    for ports in [[0, 0], [3, 0], [0, 3]] {
        assert_eq!(exchange(options(ports[0]), options(ports[1]), "127.0.0.1:0"), [0, 0]);
    }
}

/// Sprayed packets reach the shard that has the session of their sender.
#[test]
fn sprayed_packets_reach_the_shard_of_their_senders_own_port() {
    let sprayed = exchange(options(4).shards(2), options(4).shards(4), "127.0.0.1:0");
    assert!(sprayed.iter().all(|sends| *sends >= 10), "{sprayed:?}");
}

/// DATA of RPC `id` in `session`, marked as from the endpoint with port `sport`.
fn marked(sport: u16, dport: u16, sender: SenderId, session: u64) -> Vec<u8> {
    let features = Features::OURS.with(Features::SPRAYED);
    let fields = UdpFields { flags: Flags::SESSION, incarnation: session, low_water: 0, features };
    let header = Header::new(Kind::Data, sport, dport, sender, Dialect::Udp(fields));
    let data = Data::first(5, 5);
    let mut buffer = [0; MAX_HEADER_LEN];
    let len = Packet { header, body: Body::Data(data, b"wrong") }.emit_header(&mut buffer);
    [&buffer[..len], b"wrong"].concat()
}

/// A program of a peer's host can mark packets with the peer's port, but does not have its session
/// (BAD-4).
#[test]
fn packets_that_a_neighbour_marks_with_a_peers_port_change_nothing() {
    let (client, server) = (options(4).client().unwrap(), options(4).bind("127.0.0.1:0").unwrap());
    let _shut_down = ShutDown(&[&client, &server]);
    let ports = [client.local_addr().port(), server.local_addr().port()];
    let echo = echo(server.clone());
    let neighbour = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let mut calls = 0;
    let received = |endpoint: &Endpoint| endpoint.metrics().engine.packets_arrived;
    let before = [received(&client), received(&server)];
    // Rounds, until both ends have received the neighbour's packets, while calls are answered
    // correctly.
    while calls < 20 || received(&client) < before[0] + 500 || received(&server) < before[1] + 500 {
        for n in 0..100 {
            let session = 1 << 47 | n << 8 | calls;
            let (to_server, to_client) =
                (SenderId::new(2 * n, Role::Client), SenderId::new(2 * n, Role::Server));
            neighbour
                .send_to(&marked(ports[0], ports[1], to_server, session), at(ports[1]))
                .unwrap();
            neighbour
                .send_to(&marked(ports[1], ports[0], to_client, session), at(ports[0]))
                .unwrap();
        }
        let message = bytes(calls as usize, 100_000);
        assert!(client.call(at(ports[1]), message.clone()).unwrap() == message[..]);
        calls += 1;
    }
    server.shutdown();
    assert_eq!(echo.join().unwrap(), calls);
}
