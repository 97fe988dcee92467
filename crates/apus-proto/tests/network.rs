//! Endpoints that call each other over a network that loses, duplicates, delays and reorders.
//!
//! One seed decides everything: sizes, faults, crashes, service times. After each run it must hold
//! that
//!
//! - every call ended with exactly one event (invariant A3, requirement RPC-3),
//! - every response belongs to its request, byte by byte,
//! - nothing was executed twice, however late a duplicate came (requirement AMO-2),
//! - a failed call told the truth about its execution (requirement AMO-5),
//! - nothing was left in any table (invariant A4).

use apus_proto::{Call, Command, Config, Event, Instant, Outcome, RpcId, Transport};
use bytes::Bytes;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// What the network and the hosts do wrong. Probabilities in per mille.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    loss: u32,
    duplication: u32,
    /// Packets that take up to 300 times as long.
    delay: u32,
    /// Duplicates that come after minutes, when everything has been forgotten.
    very_late: u32,
    /// Whether servers crash and come back without memory.
    crashes: bool,
}

struct Host {
    transport: Transport,
    /// Requests in service: when they will be answered.
    service: BTreeMap<(u64, u64), (RpcId, Bytes)>,
    life: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Running,
    Responded,
    Failed(Outcome),
}

struct World {
    now: u64,
    random: Pcg64,
    faults: Faults,
    config: Config,
    hosts: Vec<Host>,
    network: BTreeMap<(u64, u64), (usize, SocketAddr, Vec<u8>)>,
    sequence: u64,
    /// By call number: its state and how often it was executed.
    calls: Vec<(State, u32)>,
    /// Which host a call was made by, and its life then: calls of a crashed host do not end.
    callers: Vec<(usize, u64)>,
    delivered: u64,
}

fn address(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8 + 1], host as u16 + 1))
}

/// Request of call `number`: the number, and bytes that follow from it.
fn request(number: usize, length: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..length.max(8)).map(|i| (i * 7 + number) as u8).collect();
    bytes[..8].copy_from_slice(&(number as u64).to_be_bytes());
    bytes
}

/// The response to a request: all bytes inverted.
fn response(request: &[u8]) -> Vec<u8> {
    request.iter().map(|byte| !byte).collect()
}

impl World {
    fn new(seed: u64, hosts: usize, config: Config, faults: Faults) -> Self {
        let mut world = Self {
            now: SECOND,
            random: Pcg64::seed_from_u64(seed),
            faults,
            config,
            hosts: Vec::new(),
            network: BTreeMap::new(),
            sequence: 0,
            calls: Vec::new(),
            callers: Vec::new(),
            delivered: 0,
        };
        for host in 0..hosts {
            let transport = world.boot(host);
            world.hosts.push(Host { transport, service: BTreeMap::new(), life: 0 });
        }
        world
    }

    fn boot(&mut self, host: usize) -> Transport {
        Transport::new(self.config.clone(), address(host).port(), self.random.random())
    }

    fn chance(&mut self, per_mille: u32) -> bool {
        self.random.random_range(0..1000) < per_mille
    }

    fn call(&mut self, from: usize, to: usize, length: usize, idempotent: bool) {
        let number = self.calls.len();
        let call = Call {
            to: address(to),
            payload: request(number, length).into(),
            cookie: number as u64,
            deadline: None,
            idempotent,
        };
        let now = Instant::from_nanos(self.now);
        self.hosts[from].transport.command(now, Command::Call(call)).unwrap();
        self.calls.push((State::Running, 0));
        self.callers.push((from, self.hosts[from].life));
        self.pump(from);
    }

    /// Takes out of a transport what it has to give.
    fn pump(&mut self, host: usize) {
        while let Some(event) = self.hosts[host].transport.poll_event() {
            self.on_event(host, event);
        }
        let now = Instant::from_nanos(self.now);
        let mut packets = Vec::new();
        while let Some(transmit) = self.hosts[host].transport.poll_transmit(now) {
            let payload: Vec<u8> = transmit.payload().flatten().copied().collect();
            let mut pieces = payload.chunks(transmit.segment().max(1));
            for header in transmit.headers().chunks(transmit.header_len()) {
                let piece = pieces.next().unwrap_or(&[]);
                packets.push((transmit.to(), [header, piece].concat()));
            }
        }
        for (to, packet) in packets {
            self.transmit(host, to, &packet);
        }
    }

    fn transmit(&mut self, from: usize, to: SocketAddr, packet: &[u8]) {
        let to = usize::from(to.port()) - 1;
        let copies = 1 + usize::from(self.chance(self.faults.duplication));
        for copy in 0..copies {
            if self.chance(self.faults.loss) {
                continue;
            }
            let mut delay = self.random.random_range(5 * MICROSECOND..10 * MICROSECOND);
            if self.chance(self.faults.delay) {
                delay *= self.random.random_range(1..300);
            }
            if copy > 0 && self.chance(self.faults.very_late) {
                delay += self.random.random_range(0..600) * SECOND;
            }
            self.sequence += 1;
            let key = (self.now + delay, self.sequence);
            self.network.insert(key, (to, address(from), packet.to_owned()));
        }
    }

    fn on_event(&mut self, host: usize, event: Event) {
        match event {
            Event::Request { rpc, payload, .. } => {
                self.hosts[host].transport.taken(payload.len());
                let number = u64::from_be_bytes(payload[..8].try_into().unwrap()) as usize;
                assert_eq!(payload, request(number, payload.len()), "the request is intact");
                self.calls[number].1 += 1;
                let at = self.now + self.random.random_range(0..3 * MILLISECOND);
                self.sequence += 1;
                let sequence = self.sequence;
                self.hosts[host].service.insert((at, sequence), (rpc, payload));
            }
            Event::Response { cookie, payload, .. } => {
                self.hosts[host].transport.taken(payload.len());
                let number = cookie as usize;
                let expected = response(&request(number, payload.len()));
                assert!(payload == expected, "the response belongs to its request");
                self.end(number, State::Responded);
            }
            Event::Failed { cookie, error, .. } => {
                self.end(cookie as usize, State::Failed(error.outcome));
            }
            _ => {}
        }
    }

    fn end(&mut self, number: usize, state: State) {
        assert_eq!(self.calls[number].0, State::Running, "call {number} ends once");
        self.calls[number].0 = state;
    }

    /// The next thing that happens, up to `until`; `false` if nothing does.
    fn step(&mut self, until: u64) -> bool {
        let packet = self.network.first_key_value().map(|((at, _), _)| *at);
        let timer = |host: &Host| host.transport.next_timeout().map(|(at, _)| at.as_nanos());
        let timers = (0..self.hosts.len()).filter_map(|i| Some((timer(&self.hosts[i])?, i))).min();
        let serve = |host: &Host| host.service.first_key_value().map(|((at, _), _)| *at);
        let services =
            (0..self.hosts.len()).filter_map(|i| Some((serve(&self.hosts[i])?, i))).min();
        let next = [packet, timers.map(|t| t.0), services.map(|s| s.0)].into_iter().flatten().min();
        let Some(at) = next.filter(|at| *at <= until) else { return false };
        self.now = self.now.max(at);
        let now = Instant::from_nanos(self.now);
        if packet == Some(at) {
            let (_, (to, from, bytes)) = self.network.pop_first().unwrap();
            self.delivered += 1;
            self.hosts[to].transport.handle_packet(now, from, &bytes);
            self.pump(to);
        } else if let Some((_, host)) = services.filter(|s| s.0 == at) {
            let (_, (rpc, request)) = self.hosts[host].service.pop_first().unwrap();
            let reply = Command::Reply { rpc, payload: response(&request).into() };
            // The client may have given up, or the RPC be of an earlier life: no matter.
            let _ = self.hosts[host].transport.command(now, reply);
            self.pump(host);
        } else if let Some((_, host)) = timers {
            self.hosts[host].transport.handle_timeout(now);
            self.pump(host);
        }
        true
    }

    fn run_until(&mut self, until: u64) {
        while self.step(until) {}
        self.now = until;
    }

    fn crash(&mut self, host: usize) {
        let transport = self.boot(host);
        let life = self.hosts[host].life + 1;
        self.hosts[host] = Host { transport, service: BTreeMap::new(), life };
    }

    /// All calls whose caller has lived on have ended, and told the truth.
    fn check_calls(&self) {
        let mut counts: HashMap<&str, u32> = HashMap::new();
        for (number, (state, executed)) in self.calls.iter().enumerate() {
            let (host, life) = self.callers[number];
            assert!(*executed <= 1, "call {number} was executed {executed} times: {state:?}");
            match state {
                State::Running => {
                    assert!(self.hosts[host].life > life, "call {number} has not ended");
                }
                State::Responded => {
                    assert_eq!(*executed, 1, "call {number}");
                    *counts.entry("responded").or_default() += 1;
                }
                State::Failed(outcome) => {
                    match outcome {
                        Outcome::NotExecuted => assert_eq!(*executed, 0, "call {number}"),
                        Outcome::Executed => assert_eq!(*executed, 1, "call {number}"),
                        Outcome::Unknown => {}
                    }
                    *counts.entry("failed").or_default() += 1;
                }
            }
        }
    }

    fn check_nothing_is_left(&self) {
        for (i, host) in self.hosts.iter().enumerate() {
            let live = host.transport.metrics().live;
            let peers = live.peers;
            let expected = apus_proto::Live::default();
            let expected = format!("{expected:?}").replace("peers: 0", &format!("peers: {peers}"));
            assert_eq!(format!("{live:?}"), expected, "host {i}");
        }
    }

    fn responded(&self) -> usize {
        self.calls.iter().filter(|(state, _)| *state == State::Responded).count()
    }
}

/// Calls in random directions at random times, with sizes from a byte to some packets and rarely to
/// many.
fn traffic(world: &mut World, calls: usize) {
    let hosts = world.hosts.len();
    for _ in 0..calls {
        let from = world.random.random_range(0..hosts);
        let to = (from + world.random.random_range(1..hosts)) % hosts;
        let length = match world.random.random_range(0..10) {
            0..6 => world.random.random_range(8..300),
            6..9 => world.random.random_range(300..20_000),
            _ => world.random.random_range(20_000..300_000),
        };
        // Duplicated idempotent calls may be executed twice; the check here wants once.
        world.call(from, to, length, false);
        let pause = world.random.random_range(0..MILLISECOND);
        let until = world.now + pause;
        world.run_until(until);
        if world.faults.crashes && world.chance(10) {
            let victim = world.random.random_range(0..hosts);
            world.crash(victim);
        }
    }
}

fn config() -> Config {
    Config::builder().peer_idle_secs_min(1).peer_idle_secs_max(20).build().unwrap()
}

fn run(seed: u64, faults: Faults, calls: usize) -> World {
    let mut world = World::new(seed, 3, config(), faults);
    traffic(&mut world, calls);
    let until = world.now + 5 * SECOND;
    world.run_until(until);
    // Heal, and let everything come to its end, the late duplicates too.
    world.faults = Faults::default();
    let until = world.now + 1_000 * SECOND;
    world.run_until(until);
    world.check_calls();
    world.check_nothing_is_left();
    world
}

#[test]
fn a_network_without_faults_loses_nothing() {
    for seed in 0..3 {
        let world = run(seed, Faults::default(), 300);
        assert_eq!(world.responded(), 300);
        for host in &world.hosts {
            assert_eq!(host.transport.metrics().recovery.resent_packets, 0);
        }
    }
}

#[test]
fn one_per_cent_loss_and_reordering_lose_nothing() {
    for seed in 10..16 {
        let faults = Faults { loss: 10, duplication: 10, delay: 20, ..Faults::default() };
        let world = run(seed, faults, 300);
        assert_eq!(world.responded(), 300, "seed {seed}");
    }
}

#[test]
fn twenty_per_cent_loss_loses_nothing() {
    for seed in 20..26 {
        let faults = Faults { loss: 200, duplication: 50, delay: 50, ..Faults::default() };
        let world = run(seed, faults, 200);
        assert_eq!(world.responded(), 200, "seed {seed}");
    }
}

#[test]
fn duplicates_that_come_after_minutes_are_not_executed() {
    for seed in 30..36 {
        let faults =
            Faults { loss: 50, duplication: 300, delay: 50, very_late: 500, ..Faults::default() };
        let world = run(seed, faults, 200);
        assert_eq!(world.responded(), 200, "seed {seed}");
        let late: u64 = world
            .hosts
            .iter()
            .map(|host| {
                let metrics = host.transport.metrics();
                metrics.admission.disowned + metrics.dropped(apus_proto::DropReason::Finished)
            })
            .sum();
        assert!(late > 0, "the scenario happens");
    }
}

#[test]
fn crashes_never_make_a_call_run_twice_or_lie() {
    for seed in 40..60 {
        let faults =
            Faults { loss: 50, duplication: 200, delay: 50, very_late: 300, crashes: true };
        run(seed, faults, 200);
    }
}

/// Invariant A1.
#[test]
fn the_same_seed_gives_the_same_run() {
    let faults = Faults { loss: 100, duplication: 100, delay: 50, very_late: 100, crashes: true };
    let runs = [run(7, faults, 100), run(7, faults, 100)];
    assert_eq!(runs[0].delivered, runs[1].delivered);
    assert_eq!(runs[0].calls, runs[1].calls);
    let metrics =
        |world: &World| world.hosts.iter().map(|host| host.transport.metrics()).collect::<Vec<_>>();
    assert_eq!(metrics(&runs[0]), metrics(&runs[1]));
}
