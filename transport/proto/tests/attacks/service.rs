//! A server whose application has one thread, honest clients, and raw clients, which write their packets
//! by hand, on a network without losses and without latency.

use apus_proto::{Call, Config, Datagram, Event, FailureKind, Instant, RpcKey, Transport};
use apus_wire::{
    Body, Data, Dialect, Features, Flags, Header, HeaderBuffer, MAX_HEADER_LEN, Packet, Profile,
    Role, SenderId, UdpFields,
};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// The port of the server.
const PORT: u16 = 1;

/// The server, its application, and the honest clients.
pub(crate) struct Service {
    pub(crate) now: Instant,
    pub(crate) server: Transport,
    /// Length of the reply to a request of a length; `None` if the application does not reply.
    pub(crate) reply: fn(usize) -> Option<usize>,
    /// Requests that the thread has not replied to, the first one first.
    queue: VecDeque<(RpcKey, usize)>,
    /// Whether the thread waits for room for a reply.
    is_blocked: bool,
    clients: BTreeMap<SocketAddr, Client>,
    /// Packets to raw clients, and the bytes of the datagram that each may share.
    pub(crate) to_raw_clients: VecDeque<(SocketAddr, usize, Vec<u8>)>,
    pub(crate) most_send_bytes: u64,
}

/// An honest client.
pub(crate) struct Client {
    transport: Transport,
    pub(crate) served: usize,
    pub(crate) failed: Vec<FailureKind>,
}

impl Service {
    pub(crate) fn new(config: Config, reply: fn(usize) -> Option<usize>) -> Self {
        Self {
            now: Instant::from_nanos(1_000_000_000),
            server: Transport::new(config, PORT, 1),
            reply,
            queue: VecDeque::new(),
            is_blocked: false,
            clients: BTreeMap::new(),
            to_raw_clients: VecDeque::new(),
            most_send_bytes: 0,
        }
    }

    /// Calls with requests of these lengths, from an honest client at a host and port.
    pub(crate) fn call(&mut self, host: u8, port: u16, lengths: &[usize]) -> SocketAddr {
        let address = SocketAddr::from(([10, 0, 1, host], port));
        let client = self.clients.entry(address).or_insert_with(|| Client {
            transport: Transport::new(Config::default(), port, u128::from(host) << 16 | 7),
            served: 0,
            failed: Vec::new(),
        });
        for length in lengths {
            let to = server_address();
            let payload = Bytes::from(vec![7; *length]).into();
            let call = Call { to, payload, cookie: 0, deadline: None, idempotent: false };
            client.transport.call(self.now, call).expect("there is room for a call");
        }
        self.settle();
        address
    }

    /// The honest client at an address.
    pub(crate) fn client(&self, address: SocketAddr) -> &Client {
        &self.clients[&address]
    }

    /// Number of calls of these clients that were answered.
    pub(crate) fn served(&self, clients: &[SocketAddr]) -> usize {
        clients.iter().map(|client| self.clients[client].served).sum()
    }

    /// A datagram of a raw client arrives.
    pub(crate) fn receive(&mut self, from: SocketAddr, datagram: &[u8]) {
        self.server.handle_datagram(self.now, Datagram::new(from, datagram));
        self.settle();
    }

    /// Lets time pass in milliseconds.
    pub(crate) fn run(&mut self, time: Duration) {
        for _ in 0..time.as_millis() {
            self.now += Duration::from_millis(1);
            self.server.begin_reading(self.now);
            self.server.finish_reading(self.now);
            self.server.handle_timeout(self.now);
            for client in self.clients.values_mut() {
                client.transport.begin_reading(self.now);
                client.transport.finish_reading(self.now);
                client.transport.handle_timeout(self.now);
            }
            self.settle();
        }
    }

    /// Carries packets until none is left.
    fn settle(&mut self) {
        let mut idle = false;
        while !idle {
            idle = !self.serve();
            for (to, coalesce, packet) in packets(&mut self.server, self.now) {
                idle = false;
                match self.clients.get_mut(&to) {
                    Some(client) => {
                        let from = server_address();
                        client.transport.handle_datagram(self.now, Datagram::new(from, &packet));
                    }
                    None => self.to_raw_clients.push_back((to, coalesce, packet)),
                }
            }
            for (address, client) in &mut self.clients {
                while let Some(event) = client.transport.poll_event() {
                    match event {
                        Event::Response { payload, .. } => {
                            client.transport.payload_consumed(payload.len());
                            client.served += 1;
                        }
                        Event::Failed { error, .. } => client.failed.push(error.kind),
                        _ => {}
                    }
                }
                for (_, _, packet) in packets(&mut client.transport, self.now) {
                    idle = false;
                    self.server.handle_datagram(self.now, Datagram::new(*address, &packet));
                }
            }
        }
    }

    /// Runs the application. Returns whether it did anything.
    fn serve(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.server.poll_event() {
            match event {
                Event::Request { rpc, payload, .. } => self.queue.push_back((rpc, payload.len())),
                Event::Room => self.is_blocked = false,
                _ => {}
            }
        }
        while !self.is_blocked
            && let Some((rpc, length)) = self.queue.pop_front()
        {
            any = true;
            let Some(reply) = (self.reply)(length) else {
                self.server.payload_consumed(length);
                continue;
            };
            match self.server.reply(self.now, rpc, Bytes::from(vec![7; reply]).into()) {
                Err(rejected) if rejected.reason.is_back_pressure() => {
                    self.is_blocked = true;
                    self.queue.push_front((rpc, length));
                }
                _ => self.server.payload_consumed(length),
            }
            self.most_send_bytes = self.most_send_bytes.max(self.server.live().send_bytes);
        }
        any
    }
}

/// A client that writes its packets by hand.
pub(crate) struct RawClient {
    pub(crate) address: SocketAddr,
    session: UdpFields,
    next_id: u64,
}

impl RawClient {
    /// The raw client at a host and port gets a session.
    pub(crate) fn enter(service: &mut Service, host: u8, port: u16) -> Self {
        let address = SocketAddr::from(([10, 0, 2, host], port));
        let mut session = UdpFields {
            flags: Flags::NONE,
            incarnation: u64::from(host) << 16 | u64::from(port),
            low_water: UdpFields::LOW_WATER_UNKNOWN,
            features: Features::OURS,
        };
        let raw = Self { address, session, next_id: 2 };
        service.receive(address, &raw.packet(2, Body::Data(Data::first(1, 1), &[7])));
        let offer = service.to_raw_clients.pop_back().expect("an offer").2;
        let offer = Packet::parse(Profile::Udp, &offer).expect("an offer");
        let fields = offer.header.udp().expect("the udp profile");
        assert!(matches!(offer.body, Body::NeedAck) && fields.flags.contains(Flags::CONFIRM));
        (session.incarnation, session.low_water) = (fields.incarnation, fields.low_water);
        session.flags = Flags::SESSION.with(Flags::CONFIRM);
        let mut raw = Self { session, ..raw };
        raw.request(service, 1);
        raw.session.flags = Flags::SESSION;
        raw.session.low_water = UdpFields::LOW_WATER_UNKNOWN;
        raw
    }

    /// Calls with a request of `length` bytes in one packet. Returns its id.
    pub(crate) fn request(&mut self, service: &mut Service, length: usize) -> u64 {
        let id = self.next_id();
        let payload = vec![7; length];
        let data = Data::first(length as u32, length as u32);
        service.receive(self.address, &self.packet(id, Body::Data(data, &payload)));
        id
    }

    /// The id of a new call.
    pub(crate) const fn next_id(&mut self) -> u64 {
        self.next_id += 2;
        self.next_id - 2
    }

    /// Sends a packet about call `id`.
    pub(crate) fn send(&self, service: &mut Service, id: u64, body: Body<'_>) {
        service.receive(self.address, &self.packet(id, body));
    }

    /// A packet about call `id`.
    pub(crate) fn packet(&self, id: u64, body: Body<'_>) -> Vec<u8> {
        let id = SenderId::new(id, Role::Client);
        let dialect = Dialect::Udp(self.session);
        let header = Header::new(body.kind(), self.address.port(), PORT, id, dialect);
        let payload = if let Body::Data(_, payload) = &body { payload } else { &[][..] };
        let mut bytes: HeaderBuffer = [0; MAX_HEADER_LEN];
        let length = Packet { header, body }.emit_header(&mut bytes);
        [&bytes[..length], payload].concat()
    }
}

fn server_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], PORT))
}

/// The packets that an endpoint has to send, with the bytes of the datagram that each may share.
fn packets(transport: &mut Transport, now: Instant) -> Vec<(SocketAddr, usize, Vec<u8>)> {
    let mut packets = Vec::new();
    while let Some(transmit) = transport.poll_transmit(now) {
        let payload: Vec<u8> = transmit.payload().flatten().copied().collect();
        let mut pieces = payload.chunks(transmit.segment().max(1));
        for header in transmit.headers().chunks(transmit.header_len()) {
            let piece = pieces.next().unwrap_or(&[]);
            packets.push((transmit.to(), transmit.coalesce(), [header, piece].concat()));
        }
    }
    packets
}
