//! Attacks on an endpoint by packets alone.
//!
//! The endpoint has calls and requests in all states. Peers send anything: bytes, packets
//! that follow the protocol, and packets that would if one field were another. In all cases:
//!
//! - no panic, and each packet is counted (BAD-1),
//! - no limit is passed (CAP-*),
//! - an unproved address receives at most three times the bytes that it sent (BAD-5),
//! - every accepted call ends exactly once (CORE-3),
//! - after some time, no state remains (CORE-4).

use apus_proto::{
    Call, Config, Datagram, DropReason, Event, Instant, Kind, Profile, Role, RpcKey, Transport,
    Unreachable,
};
use apus_wire::{
    Ack, AckList, Body, Cutoffs, Data, Dialect, Features, Flags, Grant, Header, HeaderBuffer,
    KernelFields, MAX_HEADER_LEN, Packet, Resend, SenderId, UdpFields, Waiting,
};
use arbitrary::{Arbitrary, Unstructured};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

/// The endpoint's port.
const PORT: u16 = 1;
/// Peers that the endpoint calls; the others are unknown until they have proved their address.
const CALLED: u8 = 3;
/// All peers.
const PEERS: u8 = 6;
/// The session that all peers serve the endpoint in if they follow the protocol.
const THEIR_SESSION: u64 = 77 << 32;
/// Bytes of IPv4 and UDP headers around each packet.
const AROUND: u64 = 28;
/// An unproved address receives at most this many times the bytes that it sent (RFC 9000 section
/// 8.1).
const FACTOR: u64 = 3;
/// Times that a timer may be due again at once: many RPCs end in small steps.
const MAX_ROUNDS: u32 = 10_000;
/// Steps of one input.
pub(crate) const MAX_STEPS: usize = 128;

/// Operations on the endpoint.
#[derive(Arbitrary, Debug)]
pub(crate) enum Step {
    Call {
        peer: u8,
        length: u16,
        deadline_millis: Option<u8>,
        idempotent: bool,
    },
    Reply {
        which: u8,
        length: u16,
    },
    Abandon {
        which: u8,
    },
    Cancel {
        which: u8,
    },
    /// A packet made of fields.
    Packet(Forged),
    /// The last packet of fields again, one byte changed, or cut.
    Again {
        at: u8,
        value: u8,
        cut: Option<u8>,
    },
    Bytes {
        peer: u8,
        bytes: Vec<u8>,
    },
    Micros(u16),
    Millis(u8),
    Unreachable {
        peer: u8,
    },
    Serving(bool),
    /// The network accepts no packets until the next one of these.
    Stall,
    ShutDown,
}

/// A packet by its fields.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) struct Forged {
    peer: u8,
    kind: u8,
    about: About,
    session: Session,
    flags: u8,
    low_water: u16,
    first: Number,
    second: Number,
    third: Number,
    payload: u16,
    ack: Option<About>,
    small: u8,
}

/// Which RPC a packet is about.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum About {
    /// One of our live RPCs, as its peer names it.
    Live(u8),
    /// A call of the peer, by number.
    Theirs(u8),
    Any(u64),
}

/// The content of the incarnation field.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Session {
    /// The correct value.
    Right,
    /// The session of another peer.
    OfAnother(u8),
    /// No session; a client's incarnation.
    None(u8),
    Any(u32),
}

/// A number of bytes or an offset.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Number {
    Small(u8),
    Medium(u16),
    Any(u32),
    /// So far from the largest.
    Huge(u8),
}

impl Number {
    const fn get(self) -> u32 {
        match self {
            Self::Small(n) => n as u32,
            Self::Medium(n) => n as u32,
            Self::Any(n) => n,
            Self::Huge(n) => u32::MAX - n as u32,
        }
    }
}

/// Packets and bytes to and from one address, headers included.
#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    received: u64,
    sent: u64,
    /// Whether a packet from there has carried a session that we gave there.
    proved: bool,
}

pub(crate) struct World {
    transport: Transport,
    profile: Profile,
    now: Instant,
    stalled: bool,
    /// Our calls that have not ended, by cookie.
    calls: BTreeMap<u64, RpcKey>,
    cookies: u64,
    /// Requests that the application has.
    requests: Vec<RpcKey>,
    /// Sessions offered to each address, in order, and their claims.
    sessions: BTreeMap<SocketAddr, Vec<(u64, u32)>>,
    traffic: BTreeMap<SocketAddr, Traffic>,
    /// Addresses that we called of our own will.
    called: BTreeSet<SocketAddr>,
    last: Option<(SocketAddr, Vec<u8>)>,
    pub(crate) delivered: u64,
}

/// Runs one input.
pub(crate) fn run(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let Ok(kind) = u8::arbitrary(&mut input) else { return };
    let mut world = World::new(kind);
    for _ in 0..MAX_STEPS {
        if input.is_empty() {
            break;
        }
        let Ok(step) = Step::arbitrary(&mut input) else { break };
        world.step(step);
        world.check();
    }
    world.come_to_rest();
}

fn address(peer: u8) -> SocketAddr {
    let peer = peer % PEERS;
    SocketAddr::from(([10, 0, 1, peer], u16::from(peer) + 10))
}

/// Limits that a few packets reach, and times that pass soon.
fn config(kind: u8) -> Config {
    let profile = if kind & 1 == 0 { Profile::Udp } else { Profile::Kernel };
    let builder = Config::builder()
        .profile(profile)
        .timeout_usecs(if kind & 4 == 0 { 50_000 } else { 1_000_000 })
        .need_ack_limit(2)
        .peer_idle_secs_min(0)
        .peer_idle_secs_max(1);
    let builder = if kind & 2 == 0 {
        builder
            .max_message(30_000)
            .max_send_bytes(60_000)
            .max_send_bytes_per_peer(40_000)
            .max_receive_bytes(60_000)
            .max_receive_bytes_per_peer(40_000)
            .max_client_rpcs(4)
            .max_server_rpcs(4)
            .max_peers(4)
            .max_dormant_sessions(2)
            .max_incoming(8_000)
            .max_overcommit(2)
            .reap_limit(1)
    } else {
        builder
    };
    builder.build().expect("the limits fit together")
}

impl World {
    pub(crate) fn new(kind: u8) -> Self {
        let config = config(kind);
        let profile = config.profile();
        let mut transport = Transport::new(config, PORT, 1);
        if kind & 8 != 0 {
            transport.set_payload_prefix(1_000);
        }
        Self {
            profile,
            transport,
            now: Instant::from_nanos(1_000_000_000),
            stalled: false,
            calls: BTreeMap::new(),
            cookies: 0,
            requests: Vec::new(),
            sessions: BTreeMap::new(),
            traffic: BTreeMap::new(),
            called: BTreeSet::new(),
            last: None,
            delivered: 0,
        }
    }

    pub(crate) fn step(&mut self, step: Step) {
        match step {
            Step::Call { peer, length, deadline_millis, idempotent } => {
                self.call(peer, usize::from(length), deadline_millis, idempotent);
            }
            Step::Reply { which, length } => {
                if let Some(rpc) = pick(&self.requests, which) {
                    let payload = vec![7; usize::from(length)].into();
                    let done = self.transport.reply(self.now, rpc, payload);
                    if done.is_ok() {
                        self.requests.retain(|other| *other != rpc);
                    }
                }
            }
            Step::Abandon { which } => {
                if let Some(rpc) = pick(&self.requests, which) {
                    let _ = self.transport.abandon(self.now, rpc);
                    self.requests.retain(|other| *other != rpc);
                }
            }
            Step::Cancel { which } => {
                let calls: Vec<_> =
                    self.calls.iter().map(|(cookie, rpc)| (*cookie, *rpc)).collect();
                if let Some((cookie, rpc)) = pick(&calls, which) {
                    self.transport.cancel(self.now, rpc).expect("it lives");
                    self.calls.remove(&cookie);
                }
            }
            Step::Packet(forged) => {
                let packet = self.forge(&forged);
                self.deliver(address(forged.peer), &packet);
                self.last = Some((address(forged.peer), packet));
            }
            Step::Again { at, value, cut } => {
                if let Some((from, mut packet)) = self.last.clone() {
                    let at = usize::from(at) % packet.len();
                    packet[at] = value;
                    packet.truncate(cut.map_or(packet.len(), usize::from));
                    self.deliver(from, &packet);
                }
            }
            Step::Bytes { peer, bytes } => self.deliver(address(peer), &bytes),
            Step::Micros(n) => self.advance(u64::from(n) * 1_000),
            Step::Millis(n) => self.advance(u64::from(n) * 1_000_000),
            Step::Unreachable { peer } => {
                let trouble = Unreachable::PortClosed;
                self.transport.handle_unreachable(self.now, address(peer), trouble);
                self.fire();
            }
            Step::Serving(serving) => self.transport.set_serving(serving),
            Step::Stall => self.stalled = !self.stalled,
            Step::ShutDown => self.transport.shut_down(self.now),
        }
        self.drain();
    }

    fn call(&mut self, peer: u8, length: usize, deadline_millis: Option<u8>, idempotent: bool) {
        let to = address(peer % CALLED);
        let deadline = deadline_millis.map(|n| self.now + Duration::from_millis(u64::from(n)));
        self.cookies += 1;
        let cookie = self.cookies;
        let call = Call { to, payload: vec![3; length].into(), cookie, deadline, idempotent };
        if let Ok(rpc) = self.transport.call(self.now, call) {
            self.calls.insert(cookie, rpc);
            self.called.insert(to);
        }
    }

    /// Counts the packets of a datagram that arrives, and gives it to the transport.
    fn deliver(&mut self, from: SocketAddr, datagram: &[u8]) {
        let traffic = self.traffic.entry(from).or_default();
        traffic.received += datagram.len() as u64 + AROUND;
        for packet in Packet::all(self.profile, datagram).flatten() {
            let Some(fields) = packet.header.udp() else { continue };
            if fields.flags.contains(Flags::SESSION) {
                let given = self.sessions.get(&from);
                traffic.proved |= given.is_some_and(|given| {
                    given.iter().any(|(session, _)| *session == fields.incarnation)
                });
            }
        }
        self.delivered +=
            self.transport.handle_datagram(self.now, Datagram::new(from, datagram)) as u64;
    }

    fn advance(&mut self, nanos: u64) {
        let end = self.now + Duration::from_nanos(nanos);
        let mut rounds = 0;
        while let Some((at, why)) = self.transport.next_timeout().filter(|(at, _)| *at <= end) {
            rounds = if at > self.now { 0 } else { rounds + 1 };
            assert!(rounds < MAX_ROUNDS, "the timer {why:?} does not come to rest");
            self.now = self.now.max(at);
            self.fire();
            if self.stalled {
                break; // What is due may only be waiting for the network.
            }
        }
        self.now = end;
    }

    fn fire(&mut self) {
        self.transport.handle_timeout(self.now);
        self.drain();
    }

    /// Fetches all outputs of the transport.
    fn drain(&mut self) {
        while let Some(event) = self.transport.poll_event() {
            match event {
                Event::Request { rpc, payload, .. } => {
                    self.transport.payload_consumed(payload.len());
                    self.requests.push(rpc);
                }
                Event::Response { cookie, payload, .. } => {
                    self.transport.payload_consumed(payload.len());
                    self.calls.remove(&cookie).expect("a call ends once");
                }
                Event::Failed { cookie, .. } => {
                    self.calls.remove(&cookie).expect("a call ends once");
                }
                _ => {}
            }
        }
        if self.stalled {
            return;
        }
        while let Some(transmit) = self.transport.poll_transmit(self.now) {
            let (to, len) = (transmit.to(), transmit.header_len());
            let headers = transmit.headers();
            let packets = transmit.packets() as u64;
            let bytes = headers.len() as u64 + transmit.payload_len() as u64 + packets * AROUND;
            let traffic = self.traffic.entry(to).or_default();
            traffic.sent += bytes;
            let unproved = !traffic.proved && !self.called.contains(&to);
            assert!(
                self.profile == Profile::Kernel
                    || !unproved
                    || traffic.sent <= FACTOR * traffic.received,
                "{to} has sent {} bytes and got {}",
                traffic.received,
                traffic.sent
            );
            // One byte in place of the payload of DATA, unless its message is empty.
            let payload = &[0][..transmit.payload_len().min(1)];
            let first = [&headers[..len], payload].concat();
            let packet = Packet::parse(self.profile, &first).expect("we write what we read");
            if let Some(fields) = packet.header.udp()
                && fields.flags.contains(Flags::SESSION.with(Flags::CONFIRM))
                && packet.header.sender_id.sender() == Role::Server
            {
                let offer = (fields.incarnation, fields.low_water);
                self.sessions.entry(to).or_default().push(offer);
            }
        }
    }

    /// Checks limits and counters.
    pub(crate) fn check(&self) {
        let metrics = self.transport.metrics();
        let (live, config) = (metrics.live, self.transport.config());
        let limits = [
            ("client_rpcs", live.client_rpcs, config.max_client_rpcs()),
            ("server_rpcs", live.server_rpcs, config.max_server_rpcs()),
            ("peers", live.peers, config.max_peers()),
            // Requests and responses have the limit each.
            ("send_bytes", live.send_bytes, 2 * config.max_send_bytes()),
            ("receive_bytes", live.receive_bytes, config.max_receive_bytes()),
            ("control_packets", live.control_packets, 8_192),
        ];
        for (name, used, limit) in limits {
            assert!(used <= limit, "{name} = {used}, but at most {limit} are allowed");
        }
        let read = Kind::ALL.iter().map(|kind| metrics.received(*kind)).sum::<u64>();
        use DropReason::{Malformed, OlderLayout, Short, UnknownKind, UnknownVersion, WrongPort};
        let unread = [Malformed, OlderLayout, Short, UnknownKind, UnknownVersion, WrongPort];
        let unread = unread.iter().map(|reason| metrics.dropped(*reason)).sum::<u64>();
        assert_eq!(read + unread, self.delivered, "each packet is counted");
    }

    /// The application answers, peers fall silent, time passes: everything must end.
    pub(crate) fn come_to_rest(&mut self) {
        self.stalled = false;
        for rpc in std::mem::take(&mut self.requests) {
            let _ = self.transport.abandon(self.now, rpc);
        }
        self.drain();
        for _ in 0..100 {
            self.advance(1_000_000_000);
            for rpc in std::mem::take(&mut self.requests) {
                let _ = self.transport.abandon(self.now, rpc);
            }
            self.drain();
        }
        assert!(self.calls.is_empty(), "every call ends: {:?}", self.transport.info());
        assert_eq!(self.transport.metrics().live, apus_proto::Live::default());
    }

    fn about(&self, from: SocketAddr, about: About) -> SenderId {
        let live = || {
            let mut live: Vec<_> = self.transport.info();
            live.retain(|info| info.peer.ip() == from.ip());
            live
        };
        match about {
            About::Live(which) => match pick(&live(), which) {
                Some(info) => SenderId::new(info.id, info.role.peer()),
                None => SenderId::new(2, Role::Client),
            },
            About::Theirs(number) => SenderId::new(1_000 + 2 * u64::from(number), Role::Client),
            About::Any(id) => SenderId::from_wire(id),
        }
    }

    /// The header's own part of the udp profile.
    fn fields(&self, from: SocketAddr, forged: &Forged, id: SenderId) -> UdpFields {
        let mut flags = Flags::from_bits(forged.flags >> 4);
        let mut low_water = match forged.low_water {
            u16::MAX => UdpFields::LOW_WATER_UNKNOWN,
            n => u32::from(n),
        };
        let latest = |address| self.sessions.get(&address).and_then(|s| s.last()).copied();
        let with_session = |flags: Flags| flags.with(Flags::SESSION);
        let without = |flags: Flags| Flags::from_bits(flags.bits() & !Flags::SESSION.bits());
        let incarnation = match forged.session {
            Session::Right if id.sender() == Role::Server => {
                flags = with_session(flags);
                THEIR_SESSION
            }
            Session::Right => match latest(from) {
                Some((session, claim)) => {
                    flags = with_session(flags);
                    if forged.low_water & 1 == 0 {
                        flags = flags.with(Flags::CONFIRM);
                        low_water = claim;
                    }
                    session
                }
                None => {
                    flags = without(flags);
                    u64::from(forged.peer)
                }
            },
            Session::OfAnother(peer) => {
                flags = with_session(flags);
                latest(address(peer)).map_or(0, |(session, _)| session)
            }
            Session::None(n) => {
                flags = without(flags);
                u64::from(n)
            }
            Session::Any(n) => u64::from(n) << 16,
        };
        let features = if forged.flags & 15 == 0 { Features::NONE } else { Features::OURS };
        UdpFields { flags, incarnation, low_water, features }
    }

    fn forge(&self, forged: &Forged) -> Vec<u8> {
        let from = address(forged.peer);
        let id = self.about(from, forged.about);
        let kind = Kind::ALL[usize::from(forged.kind) % Kind::ALL.len()];
        let (first, second, third) = (forged.first.get(), forged.second.get(), forged.third.get());
        let payload = vec![forged.small; usize::from(forged.payload % 1_500)];
        let ack = |about| Ack { client_id: self.about(from, about).client_id(), server_port: PORT };
        let body = match kind {
            Kind::Data => Body::Data(
                Data {
                    message_length: second,
                    incoming: third,
                    ack: forged.ack.map(ack),
                    cutoff_version: u16::from(forged.small & 3),
                    retransmit: forged.small & 4 != 0,
                    offset: first,
                    offset_in_sequence: false,
                    is_stripped: false,
                    waiting: Waiting::UNSAID,
                    response_limit: Waiting::UNSAID,
                },
                &payload,
            ),
            Kind::Grant => Body::Grant(Grant { offset: first, priority: forged.small }),
            Kind::Resend => Body::Resend(Resend {
                offset: first,
                length: second,
                priority: forged.small & 7,
                brief: false,
            }),
            Kind::RpcUnknown => Body::RpcUnknown,
            Kind::Busy => Body::Busy,
            Kind::Cutoffs => {
                let unscheduled = [third, 0, 0, second, first, 5, 2, 1];
                Body::Cutoffs(Cutoffs { unscheduled, version: u16::from(forged.small) })
            }
            Kind::Freeze => Body::Freeze,
            Kind::NeedAck => Body::NeedAck,
            Kind::Ack => {
                let mut list = AckList::EMPTY;
                if let Some(about) = forged.ack {
                    for n in 0..forged.small % 6 {
                        let mut ack = ack(about);
                        ack.client_id = ack.client_id.wrapping_add(2 * u64::from(n));
                        let _ = list.push(ack);
                    }
                }
                Body::Ack(list)
            }
        };
        let dialect = match self.profile {
            Profile::Udp => Dialect::Udp(self.fields(from, forged, id)),
            Profile::Kernel => Dialect::Kernel(KernelFields::OURS),
        };
        let dport = if forged.small == 0xff { 9 } else { PORT };
        let mut header = Header::new(kind, from.port(), dport, id, dialect);
        header.sequence = first;
        let mut buffer: HeaderBuffer = [0; MAX_HEADER_LEN];
        let len = Packet { header, body }.emit_header(&mut buffer);
        let payload = if kind == Kind::Data { &payload[..] } else { &[] };
        [&buffer[..len], payload].concat()
    }
}

/// Element number `which`, counted in a circle.
fn pick<T: Clone>(list: &[T], which: u8) -> Option<T> {
    list.get(usize::from(which).checked_rem(list.len())?).cloned()
}
