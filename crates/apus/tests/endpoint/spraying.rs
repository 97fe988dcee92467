//! Spraying: what leaves by a GRANT leaves from other ports. Requirements SEND-15 and WIRE-36.

use crate::bytes;
use crate::echo::echo;
use crate::fixtures::ShutDown;
use apus::{Config, Endpoint, EndpointBuilder, PollMode};
use std::net::SocketAddr;

const LENGTH: usize = 2_000_000;

/// Options of an endpoint that does without shared memory.
fn options(spray_ports: u64) -> EndpointBuilder {
    let config = Config::builder().spray_ports(spray_ports).build().unwrap();
    EndpointBuilder::default().local(false).poll_mode(PollMode::Block).config(config)
}

/// Returns the sends that left from other ports, of all shards.
fn sprayed(endpoint: &Endpoint) -> u64 {
    let metrics = endpoint.metrics();
    metrics.driver.iter().find(|(name, _)| *name == "sprayed_sends").unwrap().1
}

/// Has `client` make calls to `server`, which echoes them. Returns what each of the two has sprayed.
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
    // Those that were taken for packets of other peers would all have been sent again.
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
