//! Endpoints that end while a server waits for their acks. The server is a driver without an
//! endpoint: like the kernel module's, it sends NEED_ACK repeatedly (HM `homa_timer.c`
//! `homa_timer_check_rpc`).

use crate::namespace::{Namespace, Pair, can_run};
use crate::{client, patient};
use apus::{CallOptions, Engine, RawConfig};
use apus_driver::{Arrival, Burst, Driver, ReceiveHalf, TransmitHalf};
use apus_proto::{Kind, SenderId};
use apus_socket::Raw;
use apus_wire::{
    Body, Data, Dialect, Header, KernelFields, MAX_HEADER_LEN, Packet, Profile, Role, Waiting,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{BufRead, BufReader, Lines};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Environment variable with the address of the server, set in the process of a client.
const SERVER: &str = "APUS_TEST_RAW_SERVER";

/// One tick of the kernel module.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// The packets of a server at the right host.
struct RawServer {
    transmit: Box<dyn TransmitHalf>,
    receive: Box<dyn ReceiveHalf>,
    address: SocketAddr,
}

/// A packet about an RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    from: SocketAddr,
    kind: Kind,
    id: u64,
}

impl RawServer {
    fn open(host: &Namespace, bind: &str) -> Self {
        let config = RawConfig::bound_to(bind.parse().unwrap());
        let driver = host.inside(|| Raw::open(&config).unwrap());
        let address = driver.local_addr();
        let (transmit, receive) = Box::new(driver).split();
        Self { transmit, receive, address }
    }

    /// Sends a packet about call `id` of the client at `to`.
    fn send(&mut self, to: SocketAddr, id: u64, body: Body<'_>, payload: &[u8]) {
        let dialect = Dialect::Kernel(KernelFields::OURS);
        let id = SenderId::new(id, Role::Server);
        let header = Header::new(body.kind(), self.address.port(), to.port(), id, dialect);
        let mut bytes = [0; MAX_HEADER_LEN];
        let len = Packet { header, body }.emit_header(&mut bytes);
        let packet = [&bytes[..len], payload].concat();
        self.transmit.send(&Burst::single(to, &packet)).unwrap();
        self.transmit.flush().unwrap();
    }

    /// Receives packets for a tick, or until the first ones arrive.
    fn receive(&mut self) -> Vec<Seen> {
        poll(&mut [PollFd::new(&self.receive, PollFlags::IN)], Some(&TICK)).unwrap();
        let mut seen = Vec::new();
        while self.receive.receive(64).unwrap() > 0 {
            self.receive.drain(&mut |Arrival { from, packet, .. }| {
                let packet = Packet::parse(Profile::Kernel, packet).unwrap();
                let (kind, id) = (packet.body.kind(), packet.header.sender_id.client_id());
                seen.push(Seen { from, kind, id });
            });
        }
        seen
    }

    /// Waits for a request, and answers it with a byte.
    fn serve(&mut self) -> Seen {
        loop {
            if let Some(request) = self.receive().into_iter().find(|seen| seen.kind == Kind::Data) {
                let data = Data {
                    message_length: 1,
                    incoming: 1,
                    ack: None,
                    cutoff_version: 1,
                    retransmit: false,
                    offset: 0,
                    offset_in_sequence: false,
                    is_stripped: false,
                    waiting: Waiting::UNSAID,
                    response_limit: Waiting::UNSAID,
                };
                self.send(request.from, request.id, Body::Data(data, b"!"), b"!");
                return request;
            }
        }
    }

    /// Sends NEED_ACK for call `id` of the client at `to` every tick until it is acknowledged.
    /// Returns all received packets.
    fn ask_until_acknowledged(&mut self, to: SocketAddr, id: u64) -> Vec<Seen> {
        let mut all = Vec::new();
        while !all.contains(&Seen { from: to, kind: Kind::Ack, id }) {
            self.send(to, id, Body::NeedAck, &[]);
            all.extend(self.receive());
        }
        all
    }
}

/// A process with an endpoint, killed on drop.
struct Client {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Client {
    fn start(host: &Namespace, server: SocketAddr) -> Self {
        let mut child = Command::new("nsenter")
            .arg(format!("--net=/proc/{}/ns/net", host.pid()))
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "ended_processes::the_client", "--nocapture", "--test-threads", "1"])
            .env(SERVER, server.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn wait_for(&mut self, words: &str) {
        // Output of the test harness may precede them in the same line.
        while !self.lines.next().unwrap().unwrap().contains(words) {}
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Fails if it was killed before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test: the process of a client. It makes a call, and a second one that it does not wait
/// for.
#[test]
fn the_client() {
    let Ok(server) = std::env::var(SERVER) else { return };
    let server: SocketAddr = server.parse().unwrap();
    let bind = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let raw = RawConfig::bound_to(bind.parse().unwrap());
    // The second call ends with the process.
    let client = patient().raw(raw).client().unwrap();
    client.call(server, "?").unwrap();
    println!("called once");
    let _ = client.call_with(server, "?", CallOptions::new().timeout(Duration::from_secs(60)));
}

/// RPC-19: for a killed process, the server sends NEED_ACK only until another endpoint of its host
/// answers; in both protocols, and from the queried address.
#[test]
fn another_endpoint_answers_for_a_process_that_was_killed() {
    if !can_run("another_endpoint_answers_for_a_process_that_was_killed") {
        return;
    }
    let pair = Pair::new();
    pair.left.run("ip addr add 10.9.0.11/24 dev veth");
    for (bind, other) in [("10.9.0.2:4000", "10.9.0.11:0"), ("[fd09::2]:4000", "[fd09::1]:0")] {
        let mut server = RawServer::open(&pair.right, bind);
        let mut killed = Client::start(&pair.left, server.address);
        let first = server.serve();
        killed.wait_for("called once");
        killed.kill();
        // It may have acknowledged the call in the meantime (RPC-18). Then no NEED_ACK would be
        // sent; now one is sent.
        let raw = RawConfig::bound_to(other.parse().unwrap());
        let neighbour = pair.left.inside(|| patient().raw(raw).client().unwrap());
        assert_ne!(neighbour.local_addr().port(), first.from.port());
        server.ask_until_acknowledged(first.from, first.id);
    }
}

/// RPC-19, ENDED-2: the port decides. A call of a process that lives is never acknowledged, by
/// whatever process.
#[test]
fn no_endpoint_answers_for_a_process_that_lives() {
    if !can_run("no_endpoint_answers_for_a_process_that_lives") {
        return;
    }
    let pair = Pair::new();
    let mut server = RawServer::open(&pair.right, "10.9.0.2:4000");
    let neighbour = client(&pair.left, patient());
    let mut living = Client::start(&pair.left, server.address);
    server.serve();
    let unanswered = loop {
        if let Some(request) = server.receive().into_iter().find(|seen| seen.kind == Kind::Data) {
            break request;
        }
    };
    // A port without an endpoint: the answers prove that earlier packets have been read.
    let mut port = 40_000;
    while [unanswered.from.port(), neighbour.local_addr().port()].contains(&port) {
        port += 1;
    }
    let ended = SocketAddr::new(unanswered.from.ip(), port);
    for round in 0..20 {
        server.send(unanswered.from, unanswered.id, Body::NeedAck, &[]);
        let seen = server.ask_until_acknowledged(ended, unanswered.id + 2 + 2 * round);
        let acknowledged = |seen: &&Seen| seen.kind == Kind::Ack && seen.id == unanswered.id;
        assert_eq!(seen.iter().find(acknowledged), None);
    }
    living.kill();
    server.ask_until_acknowledged(unanswered.from, unanswered.id);
}

/// One endpoint answers at a time, and another one takes its place.
#[test]
fn the_endpoint_that_answers_is_replaced_when_it_ends() {
    if !can_run("the_endpoint_that_answers_is_replaced_when_it_ends") {
        return;
    }
    let pair = Pair::new();
    let mut server = RawServer::open(&pair.right, "10.9.0.2:4000");
    let ended: SocketAddr = "10.9.0.1:40000".parse().unwrap();
    let mut first = Some(client(&pair.left, patient()));
    let second = client(&pair.left, patient());
    if [first.as_ref(), Some(&second)].iter().flatten().any(|e| e.local_addr().port() == 40_000) {
        return;
    }
    for id in [1_u64 << 63 | 2, 1 << 63 | 4] {
        server.ask_until_acknowledged(ended, id);
        first.take();
    }
    // Ids of a module that was on this host are its own matter.
    server.send(ended, 2, Body::NeedAck, &[]);
    let seen = server.ask_until_acknowledged(ended, 1 << 63 | 6);
    assert!(seen.iter().all(|seen| seen.id != 2), "{seen:?}");
    drop(second);
}

/// RPC-18: an endpoint that ends in an orderly way leaves no acks outstanding, however early it
/// ends.
#[test]
fn an_endpoint_that_is_dropped_acknowledges_its_last_response() {
    if !can_run("an_endpoint_that_is_dropped_acknowledges_its_last_response") {
        return;
    }
    let pair = Pair::new();
    let mut server = RawServer::open(&pair.right, "10.9.0.2:4000");
    let to = server.address;
    let calling = client(&pair.left, patient());
    let thread = std::thread::spawn(move || drop(calling.call(to, "?").map(|_| calling)));
    let request = server.serve();
    thread.join().unwrap();
    while !server.receive().contains(&Seen { kind: Kind::Ack, ..request }) {}
}

/// RPC-18: an endpoint with an idle application gets no NEED_ACK, either.
#[test]
fn an_idle_endpoint_acknowledges_its_last_response() {
    if !can_run("an_idle_endpoint_acknowledges_its_last_response") {
        return;
    }
    let pair = Pair::new();
    for engine in [Engine::Waiters, Engine::Dedicated { cpu: None }] {
        let mut server = RawServer::open(&pair.right, "10.9.0.2:4000");
        let to = server.address;
        let calling = client(&pair.left, patient().engine(engine));
        let thread = std::thread::spawn(move || calling.call(to, "?").map(|_| calling));
        let request = server.serve();
        let idle = thread.join().unwrap().unwrap();
        while !server.receive().contains(&Seen { kind: Kind::Ack, ..request }) {}
        drop(idle);
    }
}
