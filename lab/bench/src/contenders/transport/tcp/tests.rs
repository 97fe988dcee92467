//! Scenario: TCP without an experiment. Every byte is echoed, on any number of connections, and a
//! misbehaving peer is an error.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use apus::PollMode;

use super::spec::TcpNameError;
use super::{Connections, Tcp};
use crate::contenders::transport::{Client, Completions, Node, NodeOptions, Transport, Work};
use apus_testbed::error::Error;
use apus_testbed::process::Stop;

/// A serving node.
struct ServingNode {
    node: Arc<dyn Node>,
    stop: Stop,
    receivers: Vec<JoinHandle<Result<(), Error>>>,
}

impl ServingNode {
    fn start(poll: PollMode, receivers: usize) -> Self {
        Self::open(&NodeOptions { receivers, ..NodeOptions::on_loopback(poll, true) })
    }

    fn open(opening: &NodeOptions) -> Self {
        let node: Arc<dyn Node> = Tcp::new(Connections::One).open(opening).unwrap().into();
        let stop = Stop::default();
        let to_wake = Arc::clone(&node);
        stop.wake_with(move || to_wake.shutdown());
        let serve = |receiver| {
            let (node, stop) = (Arc::clone(&node), stop.clone());
            thread::spawn(move || node.serve(receiver, &stop))
        };
        Self { receivers: (0..opening.receivers).map(serve).collect(), node, stop }
    }

    fn stop(self) {
        self.stop.ask();
        self.receivers.into_iter().for_each(|receiver| receiver.join().unwrap().unwrap());
    }
}

/// Returns a client of these servers.
fn client(kind: Connections, poll: PollMode, servers: &[SocketAddr]) -> Box<dyn Client> {
    let node = Tcp::new(kind).open(&NodeOptions::on_loopback(poll, false)).unwrap();
    node.connect(servers, 4).unwrap()
}

/// Returns a frame in which neighbouring bytes differ.
fn frame(length: usize) -> Vec<u8> {
    let mut frame = (length as u32).to_be_bytes().to_vec();
    frame.extend((0..length).map(|at| (at * 31 + at / 256) as u8));
    frame
}

#[test]
fn servers_send_each_message_back_on_its_connection() {
    for poll in [PollMode::Spin, PollMode::Hybrid(Duration::from_micros(1)), PollMode::Block] {
        let server = ServingNode::start(poll, 2);
        let address = server.node.address();
        let clients: Vec<_> = (0..4)
            .map(|number| {
                thread::spawn(move || {
                    let mut stream = TcpStream::connect(address).unwrap();
                    let sizes = [1, 100, 70_000, 3, 1_000_000, 65_536 - 4, 200_000 + number];
                    let sent: Vec<u8> = sizes.iter().flat_map(|&size| frame(size)).collect();
                    let mut writer = stream.try_clone().unwrap();
                    let copy = sent.clone();
                    let writer = thread::spawn(move || writer.write_all(&copy).unwrap());
                    let mut received = vec![0; sent.len()];
                    stream.read_exact(&mut received).unwrap();
                    writer.join().unwrap();
                    assert!(received == sent);
                })
            })
            .collect();
        for client in clients {
            client.join().unwrap();
        }
        server.stop();
    }
}

#[test]
fn clients_complete_each_request_once() {
    for kind in [Connections::One, Connections::Pool(3), Connections::PerRequest] {
        for poll in [PollMode::Spin, PollMode::Block] {
            let servers = [ServingNode::start(poll, 1), ServingNode::start(poll, 1)];
            let addresses = [0, 1].map(|server: usize| servers[server].node.address());
            let mut client = client(kind, poll, &addresses);
            // More rounds than connections, with short and long messages at the same time.
            for round in 0..10 {
                let sizes = [1, 5000, 300_000 + round, 64];
                for (id, size) in (0..).zip(sizes) {
                    client.start(id, id as usize % 2, size).unwrap();
                }
                let mut ended = Completions::default();
                while ended.completed.len() < sizes.len() {
                    client.poll(Duration::from_secs(1), &mut ended).unwrap();
                }
                ended.completed.sort_unstable();
                assert_eq!(ended.completed, [0, 1, 2, 3], "{kind:?}");
            }
            servers.into_iter().for_each(ServingNode::stop);
        }
    }
}

#[test]
fn work_precedes_each_reply_whatever_its_length() {
    let work = Work::lasting(Duration::from_millis(40));
    let server =
        ServingNode::open(&NodeOptions { work, ..NodeOptions::on_loopback(PollMode::Block, true) });
    let mut client = client(Connections::One, PollMode::Block, &[server.node.address()]);
    for size in [100, 100_000] {
        let began = Instant::now();
        client.start(0, 0, size).unwrap();
        client.start(1, 0, size).unwrap();
        let mut ended = Completions::default();
        while ended.completed.len() < 2 {
            client.poll(Duration::from_secs(1), &mut ended).unwrap();
        }
        // A processor may be up to four times as fast now as during the calibration.
        assert!(began.elapsed() >= Duration::from_millis(20), "{size}: {:?}", began.elapsed());
    }
    server.stop();
}

#[test]
fn a_pool_uses_the_connection_with_the_least_under_way() {
    // A listener that accepts connections and never answers.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut client =
        client(Connections::Pool(2), PollMode::Spin, &[listener.local_addr().unwrap()]);
    for (id, size) in (0..).zip([1000, 10, 10, 10]) {
        client.start(id, 0, size).unwrap();
    }
    let mut received = [0, 1].map(|_| {
        drop(client.poll(Duration::ZERO, &mut Completions::default()));
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = vec![0; 3 * 14];
        stream.read_exact(&mut bytes).unwrap();
        u32::from_be_bytes(bytes[..4].try_into().unwrap())
    });
    received.sort_unstable();
    assert_eq!(received, [10, 1000], "the long one, and three short ones on the other");
}

#[test]
fn names_say_how_tcp_is_used() {
    for name in ["tcp", "tcp:bbr", "tcp-pool", "tcp-pool=7", "tcp-per-request:cubic"] {
        assert_eq!(name.parse::<Tcp>().unwrap().to_string(), name);
    }
    assert_eq!("tcp-pool=4".parse::<Tcp>().unwrap().to_string(), "tcp-pool", "the default");
    for name in ["udp", "tcp-pool=0", "tcp-pool=x", "tcp=2", "tcp-per-request=2", ""] {
        assert!(matches!(name.parse::<Tcp>(), Err(TcpNameError)), "{name}");
    }
}

/// Returns the client's error for a server that reads one request and then runs `answer`.
fn error_of(answer: fn(TcpStream)) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 4 + 100]).unwrap();
        answer(stream);
    });
    let mut client = client(Connections::One, PollMode::Spin, &[address]);
    client.start(0, 0, 100).unwrap();
    let mut ended = Completions::default();
    let error = loop {
        if let Err(error) = client.poll(Duration::ZERO, &mut ended) {
            break error.to_string();
        }
    };
    drop(client);
    server.join().unwrap();
    assert!(ended.is_empty());
    error.replace(&address.to_string(), "SERVER")
}

#[test]
fn a_server_that_closes_a_connection_is_an_error() {
    assert_eq!(error_of(drop), "SERVER closed a connection");
}

#[test]
fn a_reply_of_another_length_is_an_error() {
    let error = error_of(|mut stream| {
        stream.write_all(&frame(99)).unwrap();
        // Waits for the client's disconnection: the client must not read the end of the connection
        // first.
        let _ = stream.read(&mut [0; 1]);
    });
    assert_eq!(error, "SERVER answered 100 bytes with 99");
}
