//! Calls between sealed endpoints.

use crate::keys::{Cluster, counter, serve};
use apus::{Config, Endpoint};
use std::sync::Arc;

#[test]
fn short_and_long_messages_in_both_directions() {
    let cluster = Cluster::new(1);
    let server = Arc::new(cluster.builder().bind("127.0.0.1:0").unwrap());
    let client = Arc::new(cluster.builder().bind("127.0.0.1:0").unwrap());
    assert!(server.is_sealed() && !server.has_local_path());
    let threads = [serve(&server), serve(&client)];
    for (from, to) in [(&client, &server), (&server, &client)] {
        for length in [0, 1, 100, 1_400, 1_500, 70_000, 500_000] {
            let message: Vec<u8> = (0..length).map(|n: u32| n as u8).collect();
            let reply = from.call(to.local_addr(), message.clone()).unwrap();
            assert!(reply == message[..], "{length} bytes");
        }
    }
    // One handshake, whichever of the two has started it, and no session challenge.
    let sum = |name| counter(&client, name) + counter(&server, name);
    assert_eq!(sum("seal_handshakes_as_client"), 1);
    assert_eq!(sum("seal_handshakes_as_server"), 1);
    let metrics = server.metrics();
    assert_eq!(metrics.protocol.admission.challenges_sent, 0, "AMO-1");
    assert_eq!(sum("seal_forgeries") + sum("seal_clear_packets"), 0);
    assert!(sum("seal_packets_opened") > 60);
    server.shutdown();
    client.shutdown();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn many_calls_at_once_to_several_servers() {
    let cluster = Cluster::new(2);
    let servers: Vec<_> =
        (0..4).map(|_| Arc::new(cluster.builder().bind("127.0.0.1:0").unwrap())).collect();
    let threads: Vec<_> = servers.iter().map(serve).collect();
    let client = cluster.builder().client().unwrap();
    for n in 0..300u64 {
        let to = servers[n as usize % servers.len()].local_addr();
        client.send(to, n.to_be_bytes().to_vec(), n).unwrap();
    }
    let mut ended = vec![false; 300];
    for _ in 0..300 {
        let completion = client.recv_completion().unwrap();
        assert_eq!(completion.result.unwrap()[..], completion.cookie.to_be_bytes());
        assert!(!std::mem::replace(&mut ended[completion.cookie as usize], true));
    }
    servers.iter().for_each(|server| server.shutdown());
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Each path has a handshake with the shard that the system gives it to.
#[test]
fn sealed_endpoints_with_shards_call_each_other() {
    let cluster = Cluster::new(9);
    let bind = || Arc::new(cluster.builder().shards(3).bind("127.0.0.1:0").unwrap());
    let (a, b) = (bind(), bind());
    let threads = [serve(&a), serve(&b)];
    std::thread::scope(|scope| {
        for seed in 0..8_u8 {
            let (here, to) =
                if seed % 2 == 0 { (&a, b.local_addr()) } else { (&b, a.local_addr()) };
            scope.spawn(move || {
                for length in [0, 100, 5_000, 70_000] {
                    let message = vec![seed; length];
                    assert!(here.call(to, message.clone()).unwrap() == message[..]);
                }
            });
        }
    });
    for endpoint in [&a, &b] {
        assert!(counter(endpoint, "seal_handshakes_as_client") >= 3, "one for each path");
        assert_eq!(counter(endpoint, "seal_forgeries"), 0);
        endpoint.shutdown();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// WIRE-36: the mark is readable, so that a packet is opened with the keys of its sender, whatever
/// port and shard it takes.
#[test]
fn sealed_packets_are_sprayed() {
    let cluster = Cluster::new(11);
    // A busy machine causes no RESENDs: they would end the spraying of a message.
    let config = Config::builder().timeout_usecs(60_000_000).resend_usecs(10_000_000);
    let config = config.resend_interval_usecs(10_000_000).spray_ports(4).build().unwrap();
    let builder = || cluster.builder().config(config.clone());
    let server = Arc::new(builder().shards(3).bind("127.0.0.1:0").unwrap());
    let client = builder().client().unwrap();
    let thread = serve(&server);
    let message = vec![7; 2_000_000];
    assert!(client.call(server.local_addr(), message.clone()).unwrap() == message[..]);
    for endpoint in [&client, &server] {
        assert!(counter(endpoint, "sprayed_sends") > 10);
        assert_eq!(counter(endpoint, "seal_forgeries"), 0);
        let resent = endpoint.metrics().protocol.recovery.resent_bytes;
        assert!(resent < message.len() as u64, "those that are not opened are sent again");
    }
    server.shutdown();
    thread.join().unwrap();
}

#[test]
fn a_client_on_all_addresses_and_ipv6_reach_a_sealed_server() {
    let cluster = Cluster::new(3);
    let server = Arc::new(cluster.builder().bind("[::]:0").unwrap());
    let thread = serve(&server);
    let port = server.local_addr().port();
    let client: Endpoint = cluster.builder().client().unwrap();
    for address in ["127.0.0.1", "::1"] {
        let Ok(to) = format!("{address}:{port}").parse().or(format!("[{address}]:{port}").parse())
        else {
            unreachable!()
        };
        assert_eq!(client.call(to, "hello").unwrap(), "hello");
    }
    server.shutdown();
    thread.join().unwrap();
}
