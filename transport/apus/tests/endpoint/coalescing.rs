//! Receive coalescing: packets from the middle of long messages need not wake a thread.

use crate::bytes;
use crate::echo::echo;
use crate::fixtures::ShutDown;
use crate::fixtures::patient;
use apus::{Endpoint, EndpointBuilder, Engine, PollMode, UdpConfig};
use std::net::UdpSocket;
use std::thread;

/// Options of an endpoint that does without shared memory, whose packets may wait for `usecs`.
fn options(usecs: u32) -> EndpointBuilder {
    let udp = UdpConfig { receive_coalescing_usecs: usecs, ..UdpConfig::default() };
    patient().local(false).poll_mode(PollMode::Block).udp(udp)
}

fn open(usecs: u32) -> Endpoint {
    options(usecs).bind("127.0.0.1:0").unwrap()
}

/// Waits until `condition` holds.
fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

#[test]
fn long_messages_arrive_in_both_directions() {
    let (client, server) = (open(300), open(300));
    let _shut_down = ShutDown(&[&client, &server]);
    let address = server.local_addr();
    let echo = echo(server.clone());
    for len in [1, 2_000, 20_000, 1_000_000] {
        assert_eq!(client.call(address, bytes(0, len)).unwrap(), bytes(0, len), "{len}");
    }
    server.shutdown();
    assert_eq!(echo.join().unwrap(), 4);
}

#[test]
fn the_background_poller_grants_a_message_for_which_no_thread_waits() {
    let (client, server) = (open(300), open(300));
    client.send(server.local_addr(), bytes(0, 300_000), 7).unwrap();
    let metrics = |name: &str| {
        let metrics = server.metrics();
        metrics.protocol.scheduling.iter().find(|(other, _)| *other == name).unwrap().1
    };
    until(|| metrics("granted_bytes") > 100_000);
    let request = server.recv_request().unwrap();
    assert_eq!(*request.payload(), bytes(0, 300_000));
    request.reply("done").unwrap();
    assert_eq!(client.recv_completion().unwrap().result.unwrap(), "done");
}

/// A DATA packet from the middle of a message of no session: it is discarded.
fn from_the_middle() -> Vec<u8> {
    let mut packet = vec![0; 156];
    packet[11] = apus_wire::Kind::Data as u8;
    packet[28..32].copy_from_slice(&10_000_u32.to_be_bytes());
    packet[52..56].copy_from_slice(&5_000_u32.to_be_bytes());
    packet
}

#[test]
fn packets_that_may_wait_wake_a_thread_together() {
    // A dedicated thread has the poll role from the start, and no other polls.
    let minute = options(60_000_000).engine(Engine::Dedicated { cpu: None });
    let server = minute.bind("127.0.0.1:0").unwrap();
    let _shut_down = ShutDown(&[&server]);
    let (arrived, sleeps) =
        (|| server.metrics().engine.packets_arrived, || server.metrics().engine.sleeps);
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let send = |packet: &[u8]| peer.send_to(packet, server.local_addr()).unwrap();
    until(|| sleeps() == 1);
    send(&from_the_middle());
    until(|| arrived() == 1 && sleeps() == 2);
    for _ in 0..50 {
        send(&from_the_middle());
        thread::yield_now();
    }
    assert_eq!((arrived(), sleeps()), (1, 2), "they do not wake it");
    send(b"another packet does");
    until(|| arrived() == 52);
}
