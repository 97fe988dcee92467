//! A world of endpoints whose network and hosts fail.
//!
//! Transports, packets in flight and requests in service, in one order of time. All random
//! decisions are drawn from [`Dice`]: a seed's, or the bytes of a fuzzer. The scenarios are in
//! `scenarios` and `keep_only`, the fuzzer's in `operations`.

use crate::dice::Dice;
use apus_proto::{
    Call, CommandError, Config, Datagram, Event, Execution, Instant, Metrics, RpcKey, Transport,
    Unreachable,
};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) const MICROSECOND: u64 = 1_000;
pub(crate) const MILLISECOND: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000_000_000;

/// Faults of the network and the hosts. Probabilities in per mille.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) loss: u32,
    pub(crate) duplication: u32,
    /// Packets that take up to 300 times as long.
    pub(crate) delay: u32,
    /// Duplicates that arrive after minutes, when all state has been dropped.
    pub(crate) very_late: u32,
    /// Packets with a changed byte. The checksums of UDP and Ethernet catch them; if one passes, no
    /// promise about executions and contents holds any more.
    pub(crate) corruption: u32,
    /// Longest packet that arrives: a router drops longer ones without a report.
    pub(crate) longest: Option<usize>,
    /// Requests that the application drops without a reply.
    pub(crate) abandonment: u32,
    /// Whether servers crash and restart without memory.
    pub(crate) crashes: bool,
}

/// One endpoint and its application.
pub(crate) struct Host {
    pub(crate) transport: Transport,
    /// Requests in service, with their responses: when they will be answered.
    service: BTreeMap<(u64, u64), (RpcKey, Bytes)>,
    life: u64,
}

/// The state of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum State {
    Running,
    Responded,
    Failed(Execution),
    Cancelled,
}

/// One call, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Made {
    pub(crate) state: State,
    /// How often its request was executed.
    pub(crate) executed: u32,
    pub(crate) from: usize,
    /// Bytes of its request.
    length: usize,
    /// Its host's life then: calls of a crashed host do not end.
    life: u64,
    rpc: RpcKey,
    idempotent: bool,
}

/// An output of a transport, for comparison.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Given {
    Event(Event),
    Packet {
        to: SocketAddr,
        priority: u8,
        bytes: Vec<u8>,
    },
    /// Its counters after all outputs were fetched.
    Metrics(Box<Metrics>),
}

/// Everything that exists, at one time.
pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) dice: Dice,
    pub(crate) faults: Faults,
    pub(crate) hosts: Vec<Host>,
    /// By call number.
    pub(crate) calls: Vec<Made>,
    /// The numbers of the calls with empty requests, by client, server and id.
    empty: BTreeMap<(SocketAddr, usize, u64), usize>,
    pub(crate) delivered: u64,
    /// The outputs of the transports with time and host, for tests that compare them.
    pub(crate) log: Option<Vec<(u64, usize, Given)>>,
    config: Config,
    /// Bytes that the transports keep of each message: all, or at least the 8 that name the call.
    /// (An empty request is identified by its id.)
    keep: usize,
    network: BTreeMap<(u64, u64), (usize, SocketAddr, Vec<u8>)>,
    sequence: u64,
    /// Whether a corrupted packet was delivered.
    corrupted: bool,
    /// Number of lives, for values that must differ between lives whatever the dice decide.
    births: u64,
}

/// Where `host` lives.
pub(crate) fn address(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8 + 1], host as u16 + 1))
}

/// Request of call `number`: empty, or the number and bytes derived from it.
fn request(number: usize, length: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..length).map(|i| (i * 7 + number) as u8).collect();
    if let Some(first) = bytes.first_chunk_mut() {
        *first = (number as u64).to_be_bytes();
    }
    bytes
}

/// The response to the request of call `number`: empty if the number is a multiple of four, a byte
/// if the request is empty, and otherwise all bytes inverted.
fn response(number: usize, request: &[u8]) -> Vec<u8> {
    match request {
        _ if number.is_multiple_of(4) => Vec::new(),
        [] => vec![number as u8],
        bytes => bytes.iter().map(|byte| !byte).collect(),
    }
}

impl World {
    /// `hosts` endpoints without state about each other.
    pub(crate) fn new(dice: Dice, hosts: usize, config: Config, faults: Faults) -> Self {
        Self::keeping(usize::MAX, dice, hosts, config, faults)
    }

    /// A world whose endpoints retain only the first `keep` bytes of each message, at least 8.
    pub(crate) fn keeping(
        keep: usize,
        dice: Dice,
        hosts: usize,
        config: Config,
        faults: Faults,
    ) -> Self {
        let mut world = Self {
            now: SECOND,
            dice,
            faults,
            hosts: Vec::new(),
            calls: Vec::new(),
            empty: BTreeMap::new(),
            delivered: 0,
            log: None,
            config,
            keep,
            network: BTreeMap::new(),
            sequence: 0,
            corrupted: false,
            births: 0,
        };
        for host in 0..hosts {
            let transport = world.boot(host);
            world.hosts.push(Host { transport, service: BTreeMap::new(), life: 0 });
        }
        world
    }

    fn boot(&mut self, host: usize) -> Transport {
        self.births += 1;
        // Each life has its own seed.
        let seed = self.dice.seed() ^ self.births.wrapping_mul(0xd134_2543_de82_ef95);
        let mut transport = Transport::new(self.config.clone(), address(host).port(), seed.into());
        transport.set_payload_prefix(self.keep);
        transport.set_birth(Instant::from_nanos(self.now));
        transport
    }

    /// Makes a call of 0 bytes, or of at least 8. Returns an error if the caller must wait, or is
    /// shut down.
    pub(crate) fn call(
        &mut self,
        from: usize,
        to: usize,
        length: usize,
        idempotent: bool,
        deadline: Option<u64>,
    ) -> Result<(), CommandError> {
        let number = self.calls.len();
        let length = if length == 0 { 0 } else { length.max(8) };
        let now = Instant::from_nanos(self.now);
        let call = Call {
            to: address(to),
            payload: request(number, length).into(),
            cookie: number as u64,
            deadline: deadline.map(|nanos| now + Duration::from_nanos(nanos)),
            idempotent,
        };
        let transport = &mut self.hosts[from].transport;
        let rpc = transport.call(now, call).map_err(|error| error.reason)?;
        if length == 0 {
            let info = transport.info_of(rpc).expect("the call lives");
            self.empty.insert((address(from), to, info.id), number);
        }
        let life = self.hosts[from].life;
        let state = State::Running;
        self.calls.push(Made { state, executed: 0, from, length, life, rpc, idempotent });
        self.pump(from);
        Ok(())
    }

    /// Cancels call `number`, if it has not ended.
    pub(crate) fn cancel(&mut self, number: usize) {
        let made = self.calls[number];
        let host = &mut self.hosts[made.from];
        if host.life == made.life {
            let done = host.transport.cancel(Instant::from_nanos(self.now), made.rpc);
            assert_eq!(done.is_ok(), made.state == State::Running, "call {number}");
            if done.is_ok() {
                self.calls[number].state = State::Cancelled;
            }
            self.pump(made.from);
        }
    }

    /// Fetches all outputs of a transport.
    fn pump(&mut self, host: usize) {
        while let Some(event) = self.hosts[host].transport.poll_event() {
            self.note(host, || Given::Event(event.clone()));
            self.on_event(host, event);
        }
        let now = Instant::from_nanos(self.now);
        let mut packets = Vec::new();
        while let Some(transmit) = self.hosts[host].transport.poll_transmit(now) {
            let headers = transmit.headers();
            let payload: Vec<u8> = transmit.payload().flatten().copied().collect();
            let mut pieces = payload.chunks(transmit.segment().max(1));
            for header in headers.chunks(transmit.header_len()) {
                let piece = pieces.next().unwrap_or(&[]);
                packets.push((transmit.to(), transmit.priority(), [header, piece].concat()));
            }
        }
        for (to, priority, bytes) in packets {
            self.note(host, || Given::Packet { to, priority, bytes: bytes.clone() });
            self.transmit(host, to, bytes);
        }
        if self.log.is_some() {
            let metrics = Box::new(self.hosts[host].transport.metrics());
            self.note(host, || Given::Metrics(metrics));
        }
    }

    /// Logs an output of `host`, if there is a log.
    fn note(&mut self, host: usize, given: impl FnOnce() -> Given) {
        if let Some(log) = &mut self.log {
            log.push((self.now, host, given()));
        }
    }

    fn transmit(&mut self, from: usize, to: SocketAddr, mut packet: Vec<u8>) {
        let to = usize::from(to.port()) - 1;
        if self.faults.longest.is_some_and(|longest| packet.len() > longest) {
            return;
        }
        if self.dice.chance(self.faults.corruption) {
            let at = self.dice.below(packet.len() as u64) as usize;
            packet[at] ^= 1 << self.dice.below(8);
            self.corrupted = true;
        }
        let copies = 1 + usize::from(self.dice.chance(self.faults.duplication));
        for copy in 0..copies {
            if self.dice.chance(self.faults.loss) {
                continue;
            }
            let mut delay = 5 * MICROSECOND + self.dice.below(5 * MICROSECOND);
            if self.dice.chance(self.faults.delay) {
                delay *= 1 + self.dice.below(299);
            }
            if copy > 0 && self.dice.chance(self.faults.very_late) {
                delay += self.dice.below(600) * SECOND;
            }
            self.sequence += 1;
            let key = (self.now + delay, self.sequence);
            self.network.insert(key, (to, address(from), packet.clone()));
        }
    }

    fn on_event(&mut self, host: usize, event: Event) {
        match event {
            Event::Request { rpc, from, payload } => {
                let transport = &mut self.hosts[host].transport;
                transport.payload_consumed(payload.len());
                let id = transport.info_of(rpc).map_or(u64::MAX, |info| info.id);
                let empty = self.empty.get(&(from, host, id)).copied();
                let response = self.execute(&payload, empty);
                let at = self.now + self.dice.below(3 * MILLISECOND);
                self.sequence += 1;
                let sequence = self.sequence;
                self.hosts[host].service.insert((at, sequence), (rpc, response));
            }
            Event::Response { cookie, payload, .. } => {
                self.hosts[host].transport.payload_consumed(payload.len());
                let number = cookie as usize;
                let length = self.calls[number].length;
                let expected = response(number, &request(number, length));
                assert!(
                    payload == expected[..expected.len().min(self.keep)] || self.corrupted,
                    "the response belongs to its request"
                );
                self.end(number, State::Responded);
            }
            Event::Failed { cookie, error, .. } => {
                self.end(cookie as usize, State::Failed(error.execution));
            }
            _ => {}
        }
    }

    /// Executes a request, of which the kept bytes are given; `empty` is the number of a call with
    /// an empty request. Returns the response.
    fn execute(&mut self, payload: &[u8], empty: Option<usize>) -> Bytes {
        let first = payload.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
        let named = first.and_then(|number| usize::try_from(number).ok());
        let number = named.or(empty).unwrap_or(usize::MAX);
        let Some(made) = self.calls.get_mut(number) else {
            assert!(self.corrupted, "call {number} was never made");
            return response(number, payload).into();
        };
        made.executed += 1;
        let whole = request(number, made.length);
        assert!(payload == &whole[..made.length.min(self.keep)] || self.corrupted, "it is intact");
        response(number, &whole).into()
    }

    fn end(&mut self, number: usize, state: State) {
        assert_eq!(self.calls[number].state, State::Running, "call {number} ends once");
        self.calls[number].state = state;
    }

    /// Runs the next event, up to `until`; `false` if there is none.
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
            if let Some((_, (to, from, bytes))) = self.network.pop_first() {
                self.delivered += 1;
                self.hosts[to].transport.handle_datagram(now, Datagram::new(from, &bytes));
                self.pump(to);
            }
        } else if let Some((_, host)) = services.filter(|s| s.0 == at) {
            self.serve(host);
        } else if let Some((_, host)) = timers {
            self.hosts[host].transport.handle_timeout(now);
            self.pump(host);
        }
        true
    }

    /// The application of `host` has finished a request.
    fn serve(&mut self, host: usize) {
        let Some((_, (rpc, response))) = self.hosts[host].service.pop_first() else { return };
        let transport = &mut self.hosts[host].transport;
        let now = Instant::from_nanos(self.now);
        let done = if self.dice.chance(self.faults.abandonment) {
            transport.abandon(now, rpc)
        } else {
            transport.reply(now, rpc, response.clone().into()).map_err(|error| error.reason)
        };
        if done.is_err_and(|error| error.is_back_pressure()) {
            self.sequence += 1;
            let key = (self.now + MILLISECOND, self.sequence);
            self.hosts[host].service.insert(key, (rpc, response));
        }
        // Otherwise the client has given up: no matter.
        self.pump(host);
    }

    /// Everything that happens before `until`.
    pub(crate) fn run_until(&mut self, until: u64) {
        while self.step(until) {}
        self.now = until;
    }

    /// Restarts `host` with a new transport without state.
    pub(crate) fn crash(&mut self, host: usize) {
        let transport = self.boot(host);
        let life = self.hosts[host].life + 1;
        self.hosts[host] = Host { transport, service: BTreeMap::new(), life };
    }

    /// Reports to `host` that `to` cannot be reached, rightly or not.
    pub(crate) fn unreachable(&mut self, host: usize, to: usize, trouble: Unreachable) {
        let now = Instant::from_nanos(self.now);
        self.hosts[host].transport.handle_unreachable(now, address(to), trouble);
        self.pump(host);
    }

    /// `host` shuts down and stays there as a ruin.
    pub(crate) fn shut_down(&mut self, host: usize) {
        self.hosts[host].transport.shut_down(Instant::from_nanos(self.now));
        self.pump(host);
    }

    /// Ends the faults and runs until everything has ended: calls soon, late duplicates too.
    pub(crate) fn heal(&mut self) {
        self.run_until(self.now + 5 * SECOND);
        self.faults = Faults::default();
        self.run_until(self.now + 20 * SECOND);
        self.check_ends();
        self.run_until(self.now + 1_000 * SECOND);
    }

    /// All calls whose caller has lived on have ended.
    fn check_ends(&self) {
        for (number, made) in self.calls.iter().enumerate() {
            let crashed = self.hosts[made.from].life > made.life;
            assert!(made.state != State::Running || crashed, "call {number} has not ended");
        }
    }

    /// All calls have told the truth.
    pub(crate) fn check_calls(&self) {
        self.check_ends();
        if self.corrupted {
            return;
        }
        for (number, made) in self.calls.iter().enumerate() {
            let Made { executed, state, .. } = *made;
            let once = executed <= 1 || made.idempotent;
            assert!(once, "call {number} was executed {executed} times: {state:?}");
            match state {
                State::Responded | State::Failed(Execution::Executed) => {
                    assert_ne!(executed, 0, "call {number}");
                }
                State::Failed(Execution::NotExecuted) => assert_eq!(executed, 0, "call {number}"),
                State::Running | State::Cancelled | State::Failed(Execution::Unknown) => {}
            }
        }
    }

    /// No host's tables hold anything; idle peers have been forgotten.
    pub(crate) fn check_nothing_is_left(&self) {
        for (i, host) in self.hosts.iter().enumerate() {
            assert_eq!(host.transport.metrics().live, apus_proto::Live::default(), "host {i}");
        }
    }

    /// Calls that ended with a response.
    pub(crate) fn responded(&self) -> usize {
        self.calls.iter().filter(|made| made.state == State::Responded).count()
    }
}
