//! A server, and clients that are honest or not, on a network without losses; more servers, if a
//! client is attacked.
//!
//! An attacker is a real endpoint, so that its first contact is valid; its packets are changed in
//! flight: anything that an endpoint can do which controls itself.

use apus_proto::{Call, Config, Datagram, Event, FailureKind, Instant, Transport};
use apus_wire::{
    Body, Data, Dialect, Features, Flags, Header, HeaderBuffer, Kind, Packet, Resend, Role,
    SenderId, UdpFields,
};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

/// Time that a packet takes.
const LATENCY: Duration = Duration::from_micros(10);

/// How an endpoint behaves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Conduct {
    #[default]
    Honest,
    /// Sends its message up to this offset, and then one more byte in each `trickle`. It answers
    /// every RESEND with BUSY.
    Stalls { upto: u32, trickle: Duration },
    /// Announces that it sends `announced` bytes of its message without a GRANT, sends up to `upto`
    /// of them, and then gives a sign of life in each `every`. It answers every RESEND with BUSY.
    Holds { announced: u32, upto: u32, sign: Sign, every: Duration },
}

/// A sign of life of an endpoint that sends no more of its message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sign {
    Busy,
    Resend,
    /// The next bytes of the message, this many.
    Bytes(u16),
    /// The last byte once more.
    Again,
}

impl Conduct {
    /// The offset that its messages are sent up to, its sign of life, and the time between two.
    fn stall(self) -> Option<(u32, Sign, Duration)> {
        match self {
            Self::Honest => None,
            Self::Stalls { upto, trickle } => Some((upto, Sign::Bytes(1), trickle)),
            Self::Holds { upto, sign, every, .. } => Some((upto, sign, every)),
        }
    }
}

/// An endpoint with its application.
pub(crate) struct End {
    pub(crate) transport: Transport,
    address: SocketAddr,
    conduct: Conduct,
    /// Length of the responses of a server.
    response: Option<usize>,
    /// The header of its last DATA packet with a session, and the next offset of a trickle.
    claim: Option<(Header, Data)>,
    next_trickle: Option<Instant>,
    /// The receiver of the stalled message.
    victim: Option<SocketAddr>,
    next_timeout: Option<Instant>,
    /// Number of responses.
    pub(crate) served: u32,
    /// Why its calls have failed.
    pub(crate) failed: Vec<FailureKind>,
}

/// Everything that exists. The server has number 0.
pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) ends: Vec<End>,
    by_address: HashMap<SocketAddr, usize>,
    packets: BTreeMap<(Instant, u64), (SocketAddr, usize, Vec<u8>)>,
    timers: BTreeSet<(Instant, usize)>,
    sequence: u64,
    config: Config,
    /// The most that the server had reserved.
    pub(crate) most_bytes: u64,
    /// Whether the server's application replies.
    pub(crate) replies: bool,
}

pub(crate) const SERVER: usize = 0;

impl End {
    /// Is honest from now on.
    pub(crate) fn behave(&mut self) {
        (self.conduct, self.next_trickle) = (Conduct::Honest, None);
    }
}

impl World {
    /// A server with this configuration.
    pub(crate) fn new(config: Config) -> Self {
        let mut world = Self {
            now: Instant::from_nanos(1),
            ends: Vec::new(),
            by_address: HashMap::new(),
            packets: BTreeMap::new(),
            timers: BTreeSet::new(),
            sequence: 0,
            config: config.clone(),
            most_bytes: 0,
            replies: true,
        };
        world.add(config, SocketAddr::from(([10, 0, 0, 1], 1)), Conduct::Honest, Some(4));
        world
    }

    /// Adds a server at a host, with responses of this length.
    pub(crate) fn server(&mut self, host: u8, conduct: Conduct, response: usize) -> usize {
        let address = SocketAddr::from(([10, 0, 2, host], 1));
        self.add(Config::default(), address, conduct, Some(response))
    }

    /// Adds a client at a host and port. Its limits are no concern of the tests.
    pub(crate) fn client(&mut self, host: u8, port: u16, conduct: Conduct) -> usize {
        let config = Config::builder().max_message(self.config.max_message()).build().unwrap();
        self.add(config, SocketAddr::from(([10, 0, 1, host], port)), conduct, None)
    }

    fn add(
        &mut self,
        config: Config,
        address: SocketAddr,
        conduct: Conduct,
        response: Option<usize>,
    ) -> usize {
        let number = self.ends.len();
        let transport = Transport::new(config, address.port(), 1 + number as u128);
        self.ends.push(End {
            transport,
            address,
            conduct,
            response,
            claim: None,
            next_trickle: None,
            victim: None,
            next_timeout: None,
            served: 0,
            failed: Vec::new(),
        });
        self.by_address.insert(address, number);
        number
    }

    /// Calls the server with a request of `length` bytes.
    pub(crate) fn call(&mut self, client: usize, length: usize) {
        self.call_to(client, SERVER, length);
    }

    /// Calls `server` with a request of `length` bytes, and returns the time until the response.
    pub(crate) fn time_of(&mut self, client: usize, server: usize, length: usize) -> Duration {
        let (began, before) = (self.now, self.ends[client].served);
        self.call_to(client, server, length);
        while self.ends[client].served == before {
            self.run(LATENCY);
            let took = self.now - began;
            assert!(took < Duration::from_secs(10), "{:?}", self.ends[client].failed);
        }
        self.now - began
    }

    /// Calls `server` with a request of `length` bytes.
    pub(crate) fn call_to(&mut self, client: usize, server: usize, length: usize) {
        let to = self.ends[server].address;
        let payload = Bytes::from(vec![7; length]).into();
        let call = Call { to, payload, cookie: 0, deadline: None, idempotent: false };
        self.ends[client].transport.call(self.now, call).expect("there is room for a call");
        self.settle(client);
    }

    /// A packet of a client that has no session arrives at the server, in the name of this host and
    /// port.
    pub(crate) fn forge(&mut self, (host, port): (u32, u16), body: Body<'_>) {
        let (from, to) = (SocketAddr::from((host.to_be_bytes(), port)), self.ends[SERVER].address);
        let fields = UdpFields {
            flags: Flags::NONE,
            incarnation: u64::from(host),
            low_water: UdpFields::LOW_WATER_UNKNOWN,
            features: Features::OURS,
        };
        let id = SenderId::new(2, Role::Client);
        let header = Header::new(body.kind(), port, to.port(), id, Dialect::Udp(fields));
        let payload = if let Body::Data(_, payload) = &body { payload } else { &[][..] };
        let bytes = [&emit(&Packet { header, body })[..], payload].concat();
        self.ends[SERVER].transport.handle_datagram(self.now, Datagram::new(from, &bytes));
        self.settle(SERVER);
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let packet = self.packets.keys().next().map(|(at, _)| *at);
            let timer = self.timers.first().map(|(at, _)| *at);
            let Some(at) = packet.into_iter().chain(timer).min().filter(|at| *at <= end) else {
                break;
            };
            self.now = self.now.max(at);
            if packet == Some(at) {
                let Some((_, (from, to, bytes))) = self.packets.pop_first() else { break };
                self.deliver(from, to, &bytes);
            } else if let Some((_, number)) = self.timers.pop_first() {
                self.ends[number].next_timeout = None;
                self.trickle(number);
                self.ends[number].transport.handle_timeout(self.now);
                self.settle(number);
            }
        }
        self.now = end;
    }

    /// Numbers of these clients' calls that were answered, and that failed.
    pub(crate) fn ended(&self, clients: &[usize]) -> (u32, u32) {
        let ends = clients.iter().map(|client| &self.ends[*client]);
        ends.fold((0, 0), |(served, failed), end| {
            (served + end.served, failed + end.failed.len() as u32)
        })
    }

    fn deliver(&mut self, from: SocketAddr, to: usize, bytes: &[u8]) {
        let end = &mut self.ends[to];
        if end.conduct.stall().is_some() && Header::peek_kind(bytes) == Some(Kind::Resend) {
            if let Some((header, _)) = end.claim {
                self.send(to, from, &control(header, Body::Busy));
            }
            return;
        }
        end.transport.handle_datagram(self.now, Datagram::new(from, bytes));
        self.settle(to);
    }

    /// Takes everything that an endpoint has to give.
    fn settle(&mut self, number: usize) {
        loop {
            let end = &mut self.ends[number];
            let (now, response) = (self.now, end.response.filter(|_| self.replies));
            let mut idle = true;
            while let Some(event) = end.transport.poll_event() {
                idle = false;
                match event {
                    Event::Request { rpc, payload, .. } => {
                        end.transport.payload_consumed(payload.len());
                        if let Some(length) = response {
                            let response = Bytes::from(vec![8; length]);
                            end.transport.reply(now, rpc, response.into()).expect("a reply");
                        }
                    }
                    Event::Response { payload, .. } => {
                        end.transport.payload_consumed(payload.len());
                        end.served += 1;
                    }
                    Event::Failed { error, .. } => end.failed.push(error.kind),
                    _ => {}
                }
            }
            let mut packets = Vec::new();
            while let Some(transmit) = end.transport.poll_transmit(now) {
                idle = false;
                let payload: Vec<u8> = transmit.payload().flatten().copied().collect();
                let mut pieces = payload.chunks(transmit.segment().max(1));
                for header in transmit.headers().chunks(transmit.header_len()) {
                    let piece = pieces.next().unwrap_or(&[]);
                    packets.push((transmit.to(), [header, piece].concat()));
                }
            }
            for (to, bytes) in packets {
                if let Some(bytes) = self.leaves(number, to, bytes) {
                    self.send(number, to, &bytes);
                }
            }
            if idle {
                break;
            }
        }
        if number == SERVER {
            let bytes = self.ends[SERVER].transport.live().receive_bytes;
            self.most_bytes = self.most_bytes.max(bytes);
        }
        self.set_timer(number);
    }

    fn set_timer(&mut self, number: usize) {
        let end = &mut self.ends[number];
        let timeout = end.transport.next_timeout().map(|(at, _)| at);
        let next = timeout.into_iter().chain(end.next_trickle).min();
        if next != end.next_timeout {
            if let Some(before) = end.next_timeout {
                self.timers.remove(&(before, number));
            }
            end.next_timeout = next;
            self.timers.extend(next.map(|at| (at, number)));
        }
    }

    /// The packet that leaves an endpoint in place of this one, if any does.
    fn leaves(&mut self, number: usize, to: SocketAddr, bytes: Vec<u8>) -> Option<Vec<u8>> {
        let end = &mut self.ends[number];
        let Some((upto, _, every)) = end.conduct.stall() else { return Some(bytes) };
        let packet = Packet::parse(self.config.profile(), &bytes).expect("it is our own");
        let Body::Data(data, payload) = packet.body else { return Some(bytes) };
        let has_session = packet.header.udp().is_some_and(|f| f.flags.contains(Flags::SESSION));
        let is_claim = has_session && end.claim.is_none();
        if let Conduct::Holds { announced, .. } = end.conduct {
            if data.offset > 0 {
                return None;
            }
            let data = Data { incoming: announced, ..data };
            let payload = &payload[..payload.len().min(upto as usize)];
            if is_claim {
                end.claim = Some((packet.header, Data { offset: payload.len() as u32, ..data }));
                (end.next_trickle, end.victim) = (Some(self.now + every), Some(to));
            }
            let body = Body::Data(data, payload);
            return Some([&emit(&Packet { header: packet.header, body }), payload].concat());
        }
        if data.offset + payload.len() as u32 > upto && data.offset > 0 {
            if is_claim {
                end.claim = Some((packet.header, Data { offset: upto, ..data }));
                (end.next_trickle, end.victim) = (Some(self.now + every), Some(to));
            }
            return None;
        }
        Some(bytes)
    }

    /// Gives a sign of life of a stalled message.
    fn trickle(&mut self, number: usize) {
        let Some((_, sign, every)) = self.ends[number].conduct.stall() else { return };
        let now = self.now;
        let end = &mut self.ends[number];
        let (Some((header, data)), Some(to)) = (&mut end.claim, end.victim) else { return };
        if end.next_trickle.is_none_or(|at| at > now) {
            return;
        }
        end.next_trickle = Some(now + every);
        let packet = match sign {
            Sign::Busy => control(*header, Body::Busy),
            Sign::Resend => control(*header, Body::Resend(Resend::everything(7))),
            Sign::Bytes(_) | Sign::Again => {
                let bytes = if let Sign::Bytes(bytes) = sign { bytes } else { 1 };
                let payload = vec![7; bytes.into()];
                let again = if let Sign::Again = sign { 1 } else { 0 };
                let piece = Data { ack: None, offset: data.offset - again, ..*data };
                let body = Body::Data(piece, &payload);
                let packet = [emit(&Packet { header: *header, body }), payload.clone()].concat();
                data.offset = piece.offset + u32::from(bytes);
                packet
            }
        };
        self.send(number, to, &packet);
    }

    fn send(&mut self, from: usize, to: SocketAddr, bytes: &[u8]) {
        let Some(to) = self.by_address.get(&to) else { return };
        self.sequence += 1;
        let from = self.ends[from].address;
        self.packets.insert((self.now + LATENCY, self.sequence), (from, *to, bytes.to_vec()));
    }
}

/// A control packet about the message of a DATA packet, from the same sender.
fn control(data: Header, body: Body<'_>) -> Vec<u8> {
    let header = Header::new(body.kind(), data.sport, data.dport, data.sender_id, data.dialect);
    emit(&Packet { header, body })
}

/// The header of a packet.
fn emit(packet: &Packet<'_>) -> Vec<u8> {
    let mut bytes: HeaderBuffer = [0; apus_wire::MAX_HEADER_LEN];
    let length = packet.emit_header(&mut bytes);
    bytes[..length].to_vec()
}
