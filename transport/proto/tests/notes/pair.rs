//! Two watched endpoints that are connected by function calls.

use apus_proto::probe::{Piece, ProbeEvent, ProbeFilter, ProbeKind};
use apus_proto::{Call, Config, Datagram, Event, Instant, Kind, Payload, Transport};
use bytes::Bytes;
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) const MILLISECOND: u64 = 1_000_000;

/// One of the two, with all that has been noted.
pub(crate) struct End {
    pub(crate) transport: Transport,
    pub(crate) address: SocketAddr,
    pub(crate) notes: Vec<ProbeEvent>,
    /// Ends of calls: whether they succeeded.
    pub(crate) ends: Vec<bool>,
}

/// A client, and a server that echoes requests.
pub(crate) struct Pair {
    pub(crate) client: End,
    pub(crate) server: End,
    pub(crate) now: Instant,
    /// Packets that left, from either side, as bytes.
    pub(crate) wire: Vec<Vec<u8>>,
    /// Which of them do not arrive, by their numbers.
    pub(crate) lost: Vec<usize>,
}

impl End {
    fn new(config: Config, last: u8, watch: Option<ProbeFilter>) -> Self {
        let mut transport = Transport::new(config, last.into(), last.into());
        transport.set_probe_filter(watch);
        let address = SocketAddr::from(([10, 0, 0, last], last.into()));
        Self { transport, address, notes: Vec::new(), ends: Vec::new() }
    }

    pub(crate) fn fetch(&mut self) {
        self.notes.extend(std::iter::from_fn(|| self.transport.poll_probe()));
    }

    /// The notes, in short.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.notes.iter().map(|note| short(&note.what)).collect()
    }

    /// The texts of the notes, once each, in the order of their first occurrence.
    pub(crate) fn kinds(&self) -> Vec<String> {
        let mut kinds: Vec<String> = Vec::new();
        for text in self.texts() {
            let kind = text.split(' ').next().unwrap().to_owned();
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }
}

fn short(what: &ProbeKind) -> String {
    let piece = |name, piece: &Piece| {
        let again = if piece.retransmit { " again" } else { "" };
        format!("{name} {}+{}{again}", piece.offset, piece.length)
    };
    match what {
        ProbeKind::DataSent(sent) => piece("data_sent", sent),
        ProbeKind::DataReceived(received) => piece("data_received", received),
        ProbeKind::Complete { length, .. } => format!("complete {length}"),
        ProbeKind::GrantSent { offset, .. } => format!("grant_sent {offset}"),
        ProbeKind::GrantReceived { offset, .. } => format!("grant_received {offset}"),
        ProbeKind::GrantUsed { offset, .. } => format!("grant_used {offset}"),
        ProbeKind::ResendSent { offset, length, .. } => format!("resend_sent {offset}+{length}"),
        ProbeKind::ResendReceived { offset, length, .. } => {
            format!("resend_received {offset}+{length}")
        }
        ProbeKind::Sent { kind, .. } => format!("sent {kind}"),
        ProbeKind::Received { kind, .. } => format!("received {kind}"),
        ProbeKind::Throttled { .. } => "throttled".into(),
        ProbeKind::Gap { offset, length } => format!("gap {offset}+{length}"),
        ProbeKind::Restart => "restart".into(),
        ProbeKind::PeerRestart => "peer_restart".into(),
        ProbeKind::Dropped(reason) => format!("dropped {}", reason.name()),
        ProbeKind::Failed(reason) => format!("failed ({reason})"),
        ProbeKind::Slow { .. } => "slow".into(),
        other => format!("{other:?}"),
    }
}

impl Pair {
    pub(crate) fn new(watch: Option<ProbeFilter>) -> Self {
        Self::with(Config::default(), watch)
    }

    pub(crate) fn with(config: Config, watch: Option<ProbeFilter>) -> Self {
        Self {
            client: End::new(config.clone(), 1, watch),
            server: End::new(config, 2, watch),
            now: Instant::from_nanos(1_000_000_000),
            wire: Vec::new(),
            lost: Vec::new(),
        }
    }

    /// Makes a call; what it does is fetched later.
    pub(crate) fn call(&mut self, length: usize) {
        let payload = Payload::from(Bytes::from(vec![7; length]));
        let to = self.server.address;
        let call = Call { to, payload, cookie: 1, deadline: None, idempotent: true };
        self.client.transport.call(self.now, call).unwrap();
        self.client.fetch();
    }

    /// Runs until no further event follows without timers.
    pub(crate) fn settle(&mut self) {
        loop {
            self.now += Duration::from_micros(1);
            let before = self.wire.len();
            let Self { client, server, now, wire, lost } = self;
            carry(client, server, *now, wire, lost);
            answer(server, *now);
            carry(server, client, *now, wire, lost);
            answer(client, *now);
            if wire.len() == before {
                return;
            }
        }
    }

    /// Like `settle`, with timers, for `millis` milliseconds.
    pub(crate) fn run(&mut self, millis: u64) {
        for _ in 0..millis {
            self.settle();
            self.now += Duration::from_nanos(MILLISECOND);
            for end in [&mut self.client, &mut self.server] {
                end.transport.handle_timeout(self.now);
                end.fetch();
            }
        }
        self.settle();
    }

    /// Makes calls until both ends have all state of each other, and drops the notes.
    pub(crate) fn introduce(&mut self) {
        for _ in 0..2 {
            self.call(10);
            self.settle();
        }
        assert_eq!(self.client.ends, [true, true]);
        self.client.ends.clear();
        self.client.notes.clear();
        self.server.notes.clear();
    }

    /// Loses the packets of these numbers, counted from the next one that leaves.
    pub(crate) fn lose(&mut self, numbers: impl IntoIterator<Item = usize>) {
        let next = self.wire.len();
        self.lost.extend(numbers.into_iter().map(|number| next + number));
    }

    /// Hands bytes to the server as if they had this source address.
    pub(crate) fn inject(&mut self, from: SocketAddr, packet: &[u8]) {
        self.server.transport.handle_datagram(self.now, Datagram::new(from, packet));
        self.server.fetch();
    }

    /// The last packet of this kind that left.
    pub(crate) fn last(&self, kind: Kind) -> Vec<u8> {
        self.wire.iter().rev().find(|packet| packet[11] == kind as u8).unwrap().clone()
    }
}

fn carry(from: &mut End, to: &mut End, now: Instant, wire: &mut Vec<Vec<u8>>, lost: &[usize]) {
    let mut packets = Vec::new();
    while let Some(transmit) = from.transport.poll_transmit(now) {
        let (len, segment) = (transmit.header_len(), transmit.segment());
        let payload: Vec<u8> = transmit.payload().flatten().copied().collect();
        for (i, header) in transmit.headers().chunks(len).enumerate() {
            let end = ((i + 1) * segment).min(payload.len());
            packets.push([header, &payload[(i * segment).min(end)..end]].concat());
        }
        from.fetch();
    }
    for packet in packets {
        if !lost.contains(&wire.len()) {
            to.transport.handle_datagram(now, Datagram::new(from.address, &packet));
            to.fetch();
        }
        wire.push(packet);
    }
}

fn answer(end: &mut End, now: Instant) {
    while let Some(event) = end.transport.poll_event() {
        match event {
            Event::Request { rpc, payload, .. } => {
                end.transport.payload_consumed(payload.len());
                let payload = Payload::from(payload);
                end.transport.reply(now, rpc, payload).unwrap();
            }
            Event::Response { payload, .. } => {
                end.transport.payload_consumed(payload.len());
                end.ends.push(true);
            }
            Event::Failed { .. } => end.ends.push(false),
            _ => {}
        }
        end.fetch();
    }
}
