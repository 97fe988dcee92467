//! Packets on the wire, and attacks of an on-path host on them.

use crate::keys::{Cluster, counter, serve};
use apus::{CallOptions, Endpoint};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

type Packets = Arc<Mutex<Vec<Vec<u8>>>>;

/// A host on the path between one client and a server: forwards datagrams, and records them.
struct Relay {
    address: SocketAddr,
    /// Datagrams to the server and to the client.
    recorded: [Packets; 2],
    /// The socket towards the server.
    outside: UdpSocket,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Relay {
    /// Relays to `server`; each datagram is changed by `bend` on its way, which may make several of
    /// it.
    fn start(server: SocketAddr, bend: fn(&[u8]) -> Vec<Vec<u8>>) -> Self {
        let inside = UdpSocket::bind("127.0.0.1:0").unwrap();
        let outside = UdpSocket::bind("127.0.0.1:0").unwrap();
        outside.connect(server).unwrap();
        let address = inside.local_addr().unwrap();
        let client = Arc::new(Mutex::new(None));
        let (recorded, stop) = (<[Packets; 2]>::default(), Arc::new(AtomicBool::new(false)));
        let mut threads = Vec::new();
        for direction in [0, 1] {
            let (inside, outside) = (inside.try_clone().unwrap(), outside.try_clone().unwrap());
            let (client, recorded) = (client.clone(), recorded[direction].clone());
            let stop = stop.clone();
            threads.push(thread::spawn(move || {
                let from = if direction == 0 { &inside } else { &outside };
                from.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
                let mut buffer = vec![0; 1 << 16];
                while !stop.load(Ordering::Relaxed) {
                    let Ok((len, sender)) = from.recv_from(&mut buffer) else { continue };
                    recorded.lock().unwrap().push(buffer[..len].to_vec());
                    for packet in bend(&buffer[..len]) {
                        if direction == 0 {
                            *client.lock().unwrap() = Some(sender);
                            let _ = outside.send(&packet);
                        } else if let Some(client) = *client.lock().unwrap() {
                            let _ = inside.send_to(&packet, client);
                        }
                    }
                }
            }));
        }
        Self { address, recorded, outside, stop, threads }
    }

    fn to_server(&self) -> Vec<Vec<u8>> {
        self.recorded[0].lock().unwrap().clone()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// A relay changes the port: the Homa ports in the headers belong to the endpoints, and must equal
/// the relay's. So both endpoints are behind separate loopback addresses with the same port as the
/// relay's socket.
fn server(cluster: &Cluster) -> (Arc<Endpoint>, JoinHandle<()>) {
    let server = Arc::new(cluster.builder().bind("127.0.0.1:0").unwrap());
    let thread = serve(&server);
    (server, thread)
}

/// Options of a call without an answer: it ends soon.
fn soon() -> CallOptions {
    CallOptions::new().timeout(Duration::from_millis(300))
}

/// SEAL-2: no part of a message is readable. SEAL-6: short ones share a datagram.
#[test]
fn an_observer_reads_headers_and_no_content() {
    let cluster = Cluster::new(11);
    let (server, thread) = server(&cluster);
    let relay = Relay::start(server.local_addr(), |packet| vec![packet.to_vec()]);
    let client = cluster.builder().client().unwrap();
    // The relay's port differs from the server's, which the header names: the client's packets are
    // dropped as for another port, after they were opened. The handshake is enough to see that.
    let secret = b"no other host may read this";
    let is_sealed = |packet: &[u8]| packet[11] == 0x10;
    // A handshake may take longer than a call on a busy machine: the next call uses its keys.
    while !relay.to_server().iter().any(|packet| is_sealed(packet)) {
        let _ = client.call_with(relay.address, &secret[..], soon());
    }
    let seen = relay.to_server();
    assert!(seen.iter().any(|packet| packet[11] == 0x20 && packet.len() >= 1_200), "SEAL-9");
    let sealed: Vec<_> = seen.iter().filter(|packet| is_sealed(packet)).collect();
    for packet in &sealed {
        assert_eq!(packet[13] >> 4, 2, "SEAL-1");
        assert!(!packet.windows(6).any(|window| window == &secret[..6]));
    }
    let numbers: Vec<&[u8]> = sealed.iter().map(|packet| &packet[14..20]).collect();
    let distinct: std::collections::BTreeSet<_> = numbers.iter().collect();
    assert_eq!(distinct.len(), numbers.len(), "SEAL-3");
    server.shutdown();
    thread.join().unwrap();
}

/// SEAL-5, SEAL-7: copies of packets, changed ones, and packets in the clear have no effect but to
/// be counted.
#[test]
fn what_an_on_path_host_sends_again_or_changes_is_dropped() {
    let cluster = Cluster::new(12);
    let (server, thread) = server(&cluster);
    let relay = Relay::start(server.local_addr(), |packet| {
        let mut changed = packet.to_vec();
        let last = changed.len() - 1;
        // A HELLO is in the clear: a host that changes or drops it ends this handshake.
        if changed[11] != 0x20 {
            changed[last] ^= 1;
        }
        vec![changed, packet.to_vec(), packet.to_vec()]
    });
    let client = cluster.builder().client().unwrap();
    let clear = Endpoint::builder().local(false).client().unwrap();
    // Until the server has read some of each, however busy the machine is.
    let counters = ["seal_replays", "seal_forgeries", "seal_clear_packets"];
    while counters.iter().any(|name| counter(&server, name) == 0) {
        let _ = client.call_with(relay.address, "once", soon());
        for packet in relay.to_server() {
            relay.outside.send(&packet).unwrap();
        }
        assert!(clear.call_with(server.local_addr(), "in the clear", soon()).is_err());
    }
    assert_eq!(server.metrics().protocol.progress.server_requests_started, 0);
    // An honest client is served all the time.
    assert_eq!(client.call(server.local_addr(), "hello").unwrap(), "hello");
    server.shutdown();
    thread.join().unwrap();
}
