//! A server, and clients that are honest or not, on a network without losses.
//!
//! An attacker is a real endpoint, so that its first contact is valid; its packets are changed in
//! flight: anything that a client can do which controls itself.

use apus_proto::{Call, Config, Datagram, Event, FailureKind, Instant, Transport};
use apus_wire::{
    Body, Data, Dialect, Features, Flags, Header, HeaderBuffer, Kind, Packet, Role, SenderId,
    UdpFields,
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
    /// Sends its request up to this offset, and then one more byte in each `trickle`. It answers
    /// every RESEND with BUSY.
    Stalls { upto: u32, trickle: Duration },
}

/// An endpoint with its application.
pub(crate) struct End {
    pub(crate) transport: Transport,
    address: SocketAddr,
    conduct: Conduct,
    /// The header of its last DATA packet with a session, and the next offset of a trickle.
    claim: Option<(Header, Data)>,
    next_trickle: Option<Instant>,
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
        world.add(config, SocketAddr::from(([10, 0, 0, 1], 1)), Conduct::Honest);
        world
    }

    /// Adds a client at a host and port. Its limits are no concern of the tests.
    pub(crate) fn client(&mut self, host: u8, port: u16, conduct: Conduct) -> usize {
        let config = Config::builder().max_message(self.config.max_message()).build().unwrap();
        self.add(config, SocketAddr::from(([10, 0, 1, host], port)), conduct)
    }

    fn add(&mut self, config: Config, address: SocketAddr, conduct: Conduct) -> usize {
        let number = self.ends.len();
        let transport = Transport::new(config, address.port(), 1 + number as u128);
        self.ends.push(End {
            transport,
            address,
            conduct,
            claim: None,
            next_trickle: None,
            next_timeout: None,
            served: 0,
            failed: Vec::new(),
        });
        self.by_address.insert(address, number);
        number
    }

    /// Calls the server with a request of `length` bytes.
    pub(crate) fn call(&mut self, client: usize, length: usize) {
        let to = self.ends[SERVER].address;
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
        if matches!(end.conduct, Conduct::Stalls { .. })
            && Header::peek_kind(bytes) == Some(Kind::Resend)
        {
            if let Some((header, _)) = end.claim {
                self.send(to, from, &busy(header));
            }
            return;
        }
        end.transport.handle_datagram(self.now, Datagram::new(from, bytes));
        self.settle(to);
    }

    /// Takes everything that an endpoint has to give.
    fn settle(&mut self, number: usize) {
        loop {
            let (now, replies) = (self.now, self.replies && number == SERVER);
            let end = &mut self.ends[number];
            let mut idle = true;
            while let Some(event) = end.transport.poll_event() {
                idle = false;
                match event {
                    Event::Request { rpc, payload, .. } => {
                        end.transport.payload_consumed(payload.len());
                        if replies {
                            end.transport.reply(now, rpc, "pong".into()).expect("a short reply");
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
                if self.may_leave(number, &bytes) {
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

    /// Whether a packet of this endpoint leaves it.
    fn may_leave(&mut self, number: usize, bytes: &[u8]) -> bool {
        let end = &mut self.ends[number];
        let Conduct::Stalls { upto, trickle } = end.conduct else { return true };
        let packet = Packet::parse(self.config.profile(), bytes).expect("it is our own");
        let Body::Data(data, payload) = packet.body else { return true };
        let has_session = packet.header.udp().is_some_and(|f| f.flags.contains(Flags::SESSION));
        if data.offset + payload.len() as u32 > upto && data.offset > 0 {
            if has_session && end.claim.is_none() {
                end.claim = Some((packet.header, Data { offset: upto, ..data }));
                end.next_trickle = Some(self.now + trickle);
            }
            return false;
        }
        true
    }

    /// Sends another byte of a stalled request.
    fn trickle(&mut self, number: usize) {
        let Conduct::Stalls { trickle, .. } = self.ends[number].conduct else { return };
        let (now, to) = (self.now, self.ends[SERVER].address);
        let end = &mut self.ends[number];
        let Some((header, data)) = &mut end.claim else { return };
        if end.next_trickle.is_some_and(|at| at <= now) {
            end.next_trickle = Some(now + trickle);
            let body = Body::Data(Data { ack: None, ..*data }, &[7]);
            let packet = [emit(&Packet { header: *header, body }), vec![7]].concat();
            data.offset += 1;
            self.send(number, to, &packet);
        }
    }

    fn send(&mut self, from: usize, to: SocketAddr, bytes: &[u8]) {
        let Some(to) = self.by_address.get(&to) else { return };
        self.sequence += 1;
        let from = self.ends[from].address;
        self.packets.insert((self.now + LATENCY, self.sequence), (from, *to, bytes.to_vec()));
    }
}

/// BUSY about the request of a DATA packet.
fn busy(data: Header) -> Vec<u8> {
    let id = SenderId::new(data.sender_id.client_id(), Role::Client);
    let header = Header::new(Kind::Busy, data.sport, data.dport, id, data.dialect);
    emit(&Packet { header, body: Body::Busy })
}

/// The header of a packet.
fn emit(packet: &Packet<'_>) -> Vec<u8> {
    let mut bytes: HeaderBuffer = [0; apus_wire::MAX_HEADER_LEN];
    let length = packet.emit_header(&mut bytes);
    bytes[..length].to_vec()
}
