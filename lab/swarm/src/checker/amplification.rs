//! Amplification checker: unknown peers receive little, and control packets are bounded.
//!
//! - BAD-5: until a client has repeated the session that a server proposed, the server sends it at
//!   most three times the bytes received from its address, IP and UDP headers included.
//! - TIME-6: RESENDs to a silent peer are sent in bursts of at most 64, one burst per resend
//!   interval.
//! - TIME-9, RPC-10: a server sends a bounded number of NEED_ACKs to a silent client, and stops
//!   after its acknowledgment. An acknowledgment carried by a response counts if the server, as the
//!   client of that response, has its session: responses to an earlier life are not trusted.
//! - BUSY answers RESEND and NEED_ACK of the peer, but not forged ones (BAD-8).
//! - BUSY, RPC_UNKNOWN and CUTOFFS are responses: at most two for each received packet, and one for
//!   each abandoned request.

use std::collections::HashMap;

use apus_proto::Profile;
use apus_wire::{AckList, Body, Flags, Role};
use foldhash::fast::FixedState;

use super::contract::Checker;
use super::session::session;
use crate::directory::Directory;
use crate::observation::{HostEvent, Observation, WirePacket};
use crate::violation::{Violation, ViolationKind};
use apus_sim::message::HostId;
use apus_workload::time::{MICROSECOND, MILLISECOND, Nanos};

/// Length of IPv4 and UDP headers in bytes.
const HEADERS: u64 = 28;
/// Amplification that a forged address may receive (BAD-5).
const FACTOR: u64 = 3;
/// RESENDs in a burst (TIME-6).
const BURST: u64 = 64;
/// Control packets that may wait for the link while received packets permit further ones (CAP-9).
const MAX_QUEUED: u64 = 8_192;
/// Maximum length of such a packet on the link, in bytes.
const CONTROL_BYTES: u64 = 180;
/// Session challenges for the first packet of a request (BAD-5).
const CHALLENGES: u64 = 4;
/// Maximum time between NEED_ACKs (TIME-9).
const MAX_NEED_ACK_INTERVAL: Nanos = 100 * MILLISECOND;

/// State of each pair of hosts, and of each call.
#[derive(Debug)]
pub(crate) struct Amplification {
    /// Whether peers prove their addresses in handshakes, before their packets reach the protocol
    /// (HANDSHAKE-1).
    is_sealed: bool,
    pairs: HashMap<(HostId, HostId), PeerPair, FixedState>,
    calls: Vec<CallProbes>,
}

/// Packets that a server has sent about a call, and the packets of its client.
#[derive(Clone, Copy, Debug, Default)]
struct CallProbes {
    /// NEED_ACKs since the last packet of the client about the call.
    acks: u64,
    /// Session challenges.
    confirms: u64,
    /// Whether the client has acknowledged the response, and NEED_ACKs since then.
    acked: bool,
    after_ack: u64,
    /// RESENDs of the client, and packets that may have started the request.
    resends: u64,
    data: u64,
    /// Session of the last transmission of the response.
    session: Option<u64>,
}

/// Traffic between one host and another.
#[derive(Debug)]
struct PeerPair {
    /// Bytes received from and sent to the other host as a client.
    received: u64,
    sent: u64,
    /// Sessions proposed to the client.
    proposed: Vec<u64>,
    /// Whether it has repeated a proposed session.
    confirmed: bool,
    /// Packets received, of any type.
    packets: u64,
    /// BUSY, RPC_UNKNOWN and CUTOFFS sent, and causes other than packets.
    responses: u64,
    abandoned: u64,
    /// RESENDs and NEED_ACKs received that the peer has sent, and BUSYs sent to it.
    questions: u64,
    busy: u64,
    /// RESENDs that may be sent now.
    resends: u64,
    /// Time of the last update of that number.
    since: Nanos,
    /// Time of the last received packet.
    last_received: Nanos,
    /// Session of the last packet sent to the other host as a client.
    own_session: Option<u64>,
}

impl Default for PeerPair {
    fn default() -> Self {
        Self {
            received: 0,
            sent: 0,
            proposed: Vec::new(),
            confirmed: false,
            packets: 0,
            responses: 0,
            abandoned: 0,
            questions: 0,
            busy: 0,
            // One burst may end immediately before the next starts.
            resends: 2 * BURST,
            since: 0,
            last_received: 0,
            own_session: None,
        }
    }
}

impl Amplification {
    pub(crate) fn new(directory: &Directory) -> Self {
        Self {
            is_sealed: directory.scenario.sealed.is_some(),
            pairs: HashMap::default(),
            calls: vec![CallProbes::default(); directory.scenario.calls.len()],
        }
    }

    fn pair(&mut self, here: HostId, there: HostId) -> &mut PeerPair {
        let confirmed = self.is_sealed;
        let pair = || PeerPair { confirmed, ..PeerPair::default() };
        self.pairs.entry((here, there)).or_insert_with(pair)
    }

    fn acknowledged(&mut self, directory: &Directory, host: HostId, wire: &WirePacket<'_>) {
        // An ack in a session that this host has lost by a restart is not trusted.
        let believes = wire.sender == Role::Client
            || session(wire.packet)
                .is_none_or(|session| self.pair(host, wire.peer).own_session == Some(session));
        if !believes {
            return;
        }
        let server_of = |id| directory.find(wire.peer, host, id);
        let (one, list) = match &wire.packet.body {
            Body::Data(data, _) => (data.ack, AckList::EMPTY),
            Body::Ack(list) => (None, *list),
            _ => (None, AckList::EMPTY),
        };
        for call in one.into_iter().chain(list.iter()).filter_map(|ack| server_of(ack.client_id)) {
            let probes = &mut self.calls[call as usize];
            // When two ends have just agreed upon other keys, the server may be the last to receive
            // their session.
            probes.acked |= !self.is_sealed || session(wire.packet) == probes.session;
        }
    }

    fn received(&mut self, at: Nanos, host: HostId, wire: &WirePacket<'_>) {
        if let Some(call) = wire.call.filter(|_| wire.sender == Role::Client) {
            let probes = &mut self.calls[call as usize];
            probes.acks = 0;
            match wire.packet.body {
                Body::Resend(_) => probes.resends += 1,
                Body::Data(..) => probes.data += 1,
                _ => {}
            }
        }
        let pair = self.pair(host, wire.peer);
        pair.packets += 1;
        pair.last_received = at;
        pair.resends = (pair.resends + BURST).min(MAX_QUEUED);
        if wire.sender == Role::Client {
            // The packets of a datagram share its headers.
            pair.received += wire.len as u64 + if wire.place == 0 { HEADERS } else { 0 };
            let fields = wire.packet.header.udp();
            let repeated = fields.filter(|fields| fields.flags.contains(Flags::SESSION));
            pair.confirmed |=
                repeated.is_some_and(|fields| pair.proposed.contains(&fields.incarnation));
        }
    }

    fn sent(
        &mut self,
        directory: &Directory,
        at: Nanos,
        host: HostId,
        wire: &WirePacket<'_>,
    ) -> Result<(), Violation> {
        let config = &directory.scenario.config;
        if config.profile() == Profile::Udp && wire.sender == Role::Server {
            self.sent_to_client(host, wire)?;
        }
        // The answer to a packet about an unknown call repeats the packet's session, which may
        // belong to an earlier life.
        if wire.sender == Role::Client
            && !matches!(wire.packet.body, Body::Ack(_) | Body::RpcUnknown)
            && let Some(session) = session(wire.packet)
        {
            self.pair(host, wire.peer).own_session = Some(session);
        }
        if let (Some(call), Body::Data(..), Role::Server) =
            (wire.call, &wire.packet.body, wire.sender)
        {
            self.calls[call as usize].session = session(wire.packet);
        }
        match &wire.packet.body {
            Body::Busy | Body::RpcUnknown | Body::Cutoffs(_) => self.response_sent(host, wire),
            Body::Resend(_) => self.resend_sent(directory, at, host, wire),
            Body::NeedAck => self.need_ack_sent(directory, wire),
            _ => Ok(()),
        }
    }

    fn sent_to_client(&mut self, host: HostId, wire: &WirePacket<'_>) -> Result<(), Violation> {
        let pair = self.pair(host, wire.peer);
        if let (Body::NeedAck, Some(fields)) = (&wire.packet.body, wire.packet.header.udp())
            && !pair.proposed.contains(&fields.incarnation)
        {
            pair.proposed.push(fields.incarnation);
        }
        if pair.confirmed {
            return Ok(());
        }
        pair.sent += wire.len as u64 + HEADERS;
        Violation::unless(
            pair.sent <= FACTOR * pair.received,
            ViolationKind::Amplification,
            wire.call,
            || {
                (
                    format!(
                        "at most {FACTOR} times {} bytes to host {}, which has not confirmed its session",
                        pair.received, wire.peer
                    ),
                    format!(
                        "host {host} has sent it {} bytes, the last a {:?}",
                        pair.sent,
                        wire.packet.body.kind()
                    ),
                )
            },
        )
    }

    fn response_sent(&mut self, host: HostId, wire: &WirePacket<'_>) -> Result<(), Violation> {
        let pair = self.pair(host, wire.peer);
        if matches!(wire.packet.body, Body::Busy) {
            pair.busy += 1;
            let (busy, questions) = (pair.busy, pair.questions);
            Violation::unless(busy <= questions, ViolationKind::Amplification, wire.call, || {
                (
                    format!("at most {questions} BUSYs of host {host} to host {}", wire.peer),
                    busy.to_string(),
                )
            })?;
        }
        pair.responses += 1;
        let limit = 2 * pair.packets + pair.abandoned;
        Violation::unless(pair.responses <= limit, ViolationKind::Amplification, wire.call, || {
            (
                format!(
                    "at most {limit} BUSY, RPC_UNKNOWN and CUTOFFS of host {host} to host {}",
                    wire.peer
                ),
                format!("{}, the last a {:?}", pair.responses, wire.packet.body.kind()),
            )
        })
    }

    fn resend_sent(
        &mut self,
        directory: &Directory,
        at: Nanos,
        host: HostId,
        wire: &WirePacket<'_>,
    ) -> Result<(), Violation> {
        let interval = directory.scenario.config.resend_interval_usecs() * MICROSECOND;
        let drained = directory.scenario.fabric.topology.host_rate.time(MAX_QUEUED * CONTROL_BYTES);
        let pair = self.pair(host, wire.peer);
        let intervals = (at - pair.since) / interval;
        pair.since += intervals * interval;
        let limit = if at - pair.last_received > drained { 2 * BURST } else { MAX_QUEUED };
        pair.resends = (pair.resends + intervals * BURST).min(limit);
        Violation::unless(pair.resends > 0, ViolationKind::Amplification, wire.call, || {
            (
                format!(
                    "{BURST} RESENDs of host {host} to host {} per interval or received packet",
                    wire.peer
                ),
                format!("more, and {limit} that had accumulated"),
            )
        })?;
        pair.resends -= 1;
        Ok(())
    }

    fn need_ack_sent(
        &mut self,
        directory: &Directory,
        wire: &WirePacket<'_>,
    ) -> Result<(), Violation> {
        let Some(call) = wire.call else { return Ok(()) };
        let probes = &mut self.calls[call as usize];
        if wire.packet.header.udp().is_some_and(|fields| fields.flags.contains(Flags::CONFIRM)) {
            probes.confirms += 1;
            let limit = CHALLENGES * probes.data + probes.resends;
            return Violation::unless(
                probes.confirms <= limit,
                ViolationKind::Amplification,
                call,
                || {
                    (
                        format!(
                            "the client of call {call} receives at most {limit} session challenges"
                        ),
                        format!("it receives {}", probes.confirms),
                    )
                },
            );
        }
        probes.after_ack += u64::from(probes.acked);
        // One NEED_ACK may have been queued for the link.
        Violation::unless(probes.after_ack <= 1, ViolationKind::Amplification, call, || {
            (
                format!(
                    "the response to call {call}, which its client has acknowledged, is released"
                ),
                "its server repeats NEED_ACK".to_owned(),
            )
        })?;
        probes.acks += 1;
        let config = &directory.scenario.config;
        // The interval doubles from `need_ack_usecs` to its maximum, until both limits are reached.
        let doublings = MAX_NEED_ACK_INTERVAL / (config.need_ack_usecs() * MICROSECOND);
        let in_time = config.timeout_usecs() * MICROSECOND / MAX_NEED_ACK_INTERVAL
            + u64::from(doublings.max(1).ilog2())
            + 2;
        let limit = config.need_ack_limit().max(in_time) + 1;
        Violation::unless(probes.acks <= limit, ViolationKind::Amplification, call, || {
            (
                format!("at most {limit} NEED_ACKs for call {call}, whose client is silent"),
                format!("{}", probes.acks),
            )
        })
    }
}

impl Checker for Amplification {
    fn observe(
        &mut self,
        directory: &Directory,
        observation: &Observation<'_>,
    ) -> Result<(), Violation> {
        let host = observation.host;
        match &observation.event {
            HostEvent::Received(wire) => {
                self.acknowledged(directory, host, wire);
                let is_question = matches!(wire.packet.body, Body::Resend(_) | Body::NeedAck);
                self.pair(host, wire.peer).questions += u64::from(is_question);
                self.received(observation.at, host, wire);
            }
            // It may cause responses, but must have no other effect.
            HostEvent::Forged(wire) => self.received(observation.at, host, wire),
            HostEvent::Sent(wire) => self.sent(directory, observation.at, host, wire)?,
            // The next incarnation of its server sends another response.
            HostEvent::Replied(call) => self.calls[*call as usize].acked = false,
            HostEvent::Abandoned(call) => {
                self.pair(host, directory.call(*call).from).abandoned += 1;
            }
            HostEvent::Crashed => self.pairs.retain(|(here, _), _| *here != host),
            _ => {}
        }
        Ok(())
    }
}
