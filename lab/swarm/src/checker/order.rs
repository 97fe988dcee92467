//! Order checker: the shortest remaining message is sent first, except for the oldest message's
//! share.
//!
//! Requirements SEND-1 to SEND-3, SEND-5, SEND-11. When a burst of a message is sent for the first
//! time, no message of the host that is certainly sendable may have fewer bytes left, unless the
//! sent message is the oldest; and the oldest receives no more than its share. With sender-informed
//! grants, every second burst may be one packet of a message that was granted meanwhile.
//! Unscheduled bytes, and bytes allowed by a GRANT with the sender's current session, are certainly
//! sendable until a packet arrives that may have ended the call.

use std::collections::{BTreeSet, HashMap};

use apus_wire::{Body, Data, Flags, Packet, Profile, Role};
use foldhash::fast::FixedState;

use super::contract::Checker;
use super::session::session;
use crate::directory::Directory;
use crate::observation::{CallId, HostEvent, Observation, WirePacket};
use crate::violation::{Violation, ViolationKind};
use apus_sim::message::HostId;

/// Bytes of other messages that the oldest message's share accumulates for: a burst (SEND-5).
const SHARE_BYTES: u64 = 64_000;

/// Minimum of the accumulated share in bytes, for the first packet of the oldest message.
const MIN_SHARE: u64 = 1_500;

/// Outgoing messages of all calls.
#[derive(Debug)]
pub(crate) struct Order {
    /// Request and response of each call.
    messages: Vec<[Outgoing; 2]>,
    hosts: Vec<HostState>,
    /// Messages with fewer bytes left are sent before all others.
    short: u32,
    per_mille: u64,
    /// Whether granted messages may send a packet before their turn.
    informs: bool,
    /// Maximum of the oldest message's accumulated share in bytes, and the packet that exceeds it.
    saved_up: u64,
    /// Number of observations, used as the age of messages.
    clock: u64,
    /// Observation of the first byte of each request at its server.
    first_seen: Vec<u64>,
}

/// Messages that a host may send.
#[derive(Debug, Default)]
struct HostState {
    /// Certainly sendable messages: bytes left, call, sender.
    ready: BTreeSet<(u32, CallId, Role)>,
    /// Bytes that earn the oldest message a share: sent in order of remaining length or early,
    /// without short messages.
    in_order: u64,
    /// Bytes sent because their message was the oldest.
    for_age: u64,
    /// Reason for the current burst.
    reason: BurstReason,
    /// Messages that have been granted bytes and have sent no packet early since.
    granted: BTreeSet<(CallId, Role)>,
    /// Whether the last burst that was not short left before its turn: the next burst cannot be
    /// early then.
    was_out_of_turn: bool,
    /// Whether it has crashed; other hosts may release its calls at any time.
    has_died: bool,
    /// Last session of each client.
    sessions: HashMap<HostId, u64, FixedState>,
    /// Observation from which responses to a client may have been released.
    doubts: HashMap<HostId, u64, FixedState>,
    /// Last observation in which a server may have reported that it has lost the session of
    /// requests to it.
    lost: HashMap<HostId, u64, FixedState>,
}

/// Reason for sending a burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BurstReason {
    /// Its message is short, and short messages are sent first.
    #[default]
    Short,
    /// No other message has fewer bytes left.
    InOrder,
    /// Its message is the oldest.
    ForAge,
    /// Its message has been granted bytes, and the burst reports its backlog.
    Early,
    /// `Early` or `ForAge`: its message is the oldest, and has been granted bytes.
    EarlyOrForAge,
}

/// A message, as its sender may see it.
#[derive(Clone, Copy, Debug, Default)]
struct Outgoing {
    length: u32,
    sent: u32,
    /// End of the bytes that may certainly be sent; 0 if the message may have ended.
    limit: u32,
    /// Range of observations that contains the creation of its RPC.
    created: (u64, u64),
    /// Session in the sender's last packet of the message, and observation of that packet.
    session: Option<u64>,
    session_at: u64,
}

impl Outgoing {
    /// Returns the bytes left, if some may be sent.
    const fn ready(&self) -> Option<u32> {
        if self.sent < self.limit { Some(self.length - self.sent) } else { None }
    }
}

impl Order {
    pub(crate) fn new(directory: &Directory) -> Self {
        let scenario = &directory.scenario;
        Self {
            messages: vec![Default::default(); scenario.calls.len()],
            hosts: (0..directory.ends.count()).map(|_| HostState::default()).collect(),
            short: scenario.config.defer_min_bytes() as u32,
            per_mille: scenario.config.pacer_fifo_fraction(),
            informs: scenario.config.informed_incoming() > 0
                && scenario.config.profile() == Profile::Udp,
            saved_up: (SHARE_BYTES * scenario.config.pacer_fifo_fraction() / 1_000).max(MIN_SHARE)
                + u64::from(scenario.packet_limit),
            clock: 0,
            first_seen: vec![u64::MAX; scenario.calls.len()],
        }
    }

    /// Changes a message and updates the order.
    fn change(
        &mut self,
        host: HostId,
        call: CallId,
        sender: Role,
        change: impl FnOnce(&mut Outgoing),
    ) {
        let message = &mut self.messages[call as usize][sender as usize];
        let before = message.ready();
        change(message);
        let after = message.ready();
        if before != after {
            let ready = &mut self.hosts[host as usize].ready;
            if let Some(left) = before {
                ready.remove(&(left, call, sender));
            }
            if let Some(left) = after {
                ready.insert((left, call, sender));
            }
        }
    }

    /// Starts a message. Its unscheduled length is unknown until the first packet, but at least one
    /// byte. An empty message counts as one byte, as it does in the order of sending.
    fn begin(&mut self, host: HostId, call: CallId, sender: Role, length: u32, created: u64) {
        let clock = self.clock;
        self.change(host, call, sender, |message| {
            let length = length.max(1);
            let created = (created, clock);
            *message = Outgoing { length, limit: 1, created, ..Outgoing::default() };
        });
    }

    fn end(&mut self, host: HostId, call: CallId, sender: Role) {
        self.change(host, call, sender, |message| message.limit = 0);
    }

    fn sent(
        &mut self,
        host: HostId,
        call: CallId,
        wire: &WirePacket<'_>,
        data: &Data,
        payload: &[u8],
    ) -> Result<(), Violation> {
        if data.retransmit {
            return Ok(());
        }
        if data.offset == 0 {
            // A request that continues in another session starts over (AMO-1).
            self.change(host, call, wire.sender, |message| {
                if message.sent > 0 {
                    (message.sent, message.limit) = (0, 1);
                }
            });
        }
        let message = self.messages[call as usize][wire.sender as usize];
        let left = message.length.saturating_sub(message.sent);
        let bytes = payload.len() as u64;
        if wire.place == 0 {
            let is_long = left >= self.short;
            let reason = match is_long {
                false => BurstReason::Short,
                true => self.check_order(host, call, wire.sender, left)?,
            };
            let state = &mut self.hosts[host as usize];
            state.reason = reason;
            if is_long {
                state.was_out_of_turn = reason != BurstReason::InOrder;
            }
        }
        let state = &mut self.hosts[host as usize];
        match state.reason {
            BurstReason::Short => {}
            BurstReason::Early => {
                state.granted.remove(&(call, wire.sender));
                state.in_order += bytes;
                Violation::unless(wire.place == 0, ViolationKind::Order, call, || {
                    ("one packet leaves before its turn".to_owned(), "it is not alone".to_owned())
                })?;
            }
            // If it was for age, the early packet has yet to be sent. (Seed 211484681421668.)
            BurstReason::EarlyOrForAge if wire.place == 0 => state.in_order += bytes,
            BurstReason::EarlyOrForAge => state.for_age += bytes,
            BurstReason::InOrder => state.in_order += bytes,
            BurstReason::ForAge => state.for_age += bytes,
        }
        self.change(host, call, wire.sender, |message| {
            message.sent = end(data, payload);
            if message.limit > 0 {
                message.limit = message.limit.max(data.incoming);
            }
        });
        Ok(())
    }

    /// Checks that a long message with `left` remaining bytes may be sent now.
    fn check_order(
        &mut self,
        host: HostId,
        call: CallId,
        sender: Role,
        left: u32,
    ) -> Result<BurstReason, Violation> {
        let HostState { ready, in_order, for_age, .. } = &self.hosts[host as usize];
        let Some(first) = ready.first().filter(|first| first.0 < left).copied() else {
            return Ok(BurstReason::InOrder);
        };
        let created = self.messages[call as usize][sender as usize].created.0;
        let is_oldest = || {
            let others = ready.iter().filter(|other| other.0 >= self.short);
            let mut created_by = others
                .map(|(_, call, sender)| self.messages[*call as usize][*sender as usize].created.1);
            created_by.all(|by| created <= by)
        };
        let has_share = for_age * 1_000 < self.per_mille * in_order + self.saved_up * 1_000;
        let may_be_for_age = self.per_mille > 0 && is_oldest() && has_share;
        let HostState { granted, was_out_of_turn, .. } = &self.hosts[host as usize];
        if self.informs && !was_out_of_turn && granted.contains(&(call, sender)) {
            let either = BurstReason::EarlyOrForAge;
            return Ok(if may_be_for_age { either } else { BurstReason::Early });
        }
        let may = first.0 >= self.short && may_be_for_age;
        Violation::unless(may, ViolationKind::Order, call, || {
            (
                format!(
                    "host {host} sends the {:?} of call {} with {} bytes left, or the oldest message with a share of {} ‰",
                    first.2, first.1, first.0, self.per_mille
                ),
                format!(
                    "it sends the {sender:?} of call {call} with {left} bytes left (oldest: {}; sent for age: \
                     {for_age} bytes, in order: {in_order})",
                    is_oldest()
                ),
            )
        })
        .map_err(|violation| violation.and(first.1))?;
        Ok(BurstReason::ForAge)
    }

    /// Updates the state from the fields of a sent packet.
    fn learn_from_sent(&mut self, directory: &Directory, host: HostId, wire: &WirePacket<'_>) {
        if let (Some(call), Some(session)) = (wire.call, session(wire.packet)) {
            let message = &mut self.messages[call as usize][wire.sender as usize];
            (message.session, message.session_at) = (Some(session), self.clock);
        }
        // A client that gets a session challenge may have restarted, and then its calls are
        // released. If it does not respond to a NEED_ACK about one response, all responses to it
        // may be released (TIME-9).
        if matches!(wire.packet.body, Body::NeedAck) {
            self.doubt_responses(directory, host, wire.peer);
        }
    }

    /// Marks the responses of `host` to `client` as possibly released.
    fn doubt_responses(&mut self, directory: &Directory, host: HostId, client: HostId) {
        let ready = &self.hosts[host as usize].ready;
        let doubtful = ready.iter().filter(|(_, call, sender)| {
            *sender == Role::Server && directory.call(*call).from == client
        });
        for (_, call, sender) in doubtful.copied().collect::<Vec<_>>() {
            self.end(host, call, sender);
        }
        self.hosts[host as usize].doubts.insert(client, self.clock);
    }

    fn received(&mut self, directory: &Directory, host: HostId, wire: &WirePacket<'_>) {
        if let (Role::Client, Some(session)) = (wire.sender, session(wire.packet)) {
            // The server releases the state of the client's earlier session.
            let before = self.hosts[host as usize].sessions.insert(wire.peer, session);
            if before != Some(session) {
                self.doubt_responses(directory, host, wire.peer);
            }
        }
        let server_of = |id| directory.find(wire.peer, host, id);
        match (&wire.packet.body, wire.call) {
            (Body::Data(data, _), call) => {
                match call {
                    // The response has started, so the request is no longer sent.
                    Some(call) if wire.sender == Role::Server => self.end(host, call, Role::Client),
                    Some(call) => {
                        let first = &mut self.first_seen[call as usize];
                        *first = (*first).min(self.clock);
                    }
                    None => {}
                }
                if let Some(call) = data.ack.and_then(|ack| server_of(ack.client_id)) {
                    self.end(host, call, Role::Server);
                }
            }
            (Body::Ack(list), call) => {
                let others = list.iter().filter_map(|ack| server_of(ack.client_id));
                for call in others.chain(call).collect::<Vec<_>>() {
                    self.end(host, call, Role::Server);
                }
            }
            (Body::RpcUnknown, Some(call)) => self.end(host, call, wire.sender.peer()),
            (Body::NeedAck, Some(call)) if is_challenge(wire.packet) => {
                self.challenged(directory, host, call, wire);
            }
            (Body::Grant(grant), Some(call)) => self.granted(host, call, wire, grant.offset),
            _ => {}
        }
    }

    /// Applies a session challenge about `call`: all requests to that server without a session, or
    /// in a session that the server has lost, may start over (AMO-3). A GRANT in the lost session
    /// has no effect any more. (Seed 1873.)
    fn challenged(
        &mut self,
        directory: &Directory,
        host: HostId,
        call: CallId,
        wire: &WirePacket<'_>,
    ) {
        let before = self.messages[call as usize][Role::Client as usize].session;
        if before == session(wire.packet) {
            return;
        }
        let ready = &self.hosts[host as usize].ready;
        let lost = ready.iter().filter(|(_, other, sender)| {
            *sender == Role::Client && directory.call(*other).to == wire.peer
        });
        for (_, other, sender) in lost.copied().collect::<Vec<_>>() {
            self.end(host, other, sender);
        }
        self.messages[call as usize][Role::Client as usize].session = None;
        self.hosts[host as usize].lost.insert(wire.peer, self.clock);
    }

    /// Applies a GRANT if it has the session that the message's sender uses.
    fn granted(&mut self, host: HostId, call: CallId, wire: &WirePacket<'_>, offset: u32) {
        let sender = wire.sender.peer();
        self.hosts[host as usize].granted.insert((call, sender));
        let Outgoing { session: known, session_at, created, .. } =
            self.messages[call as usize][sender as usize];
        let lost = self.hosts[host as usize].lost.get(&wire.peer);
        if sender == Role::Client && lost.is_some_and(|since| session_at <= *since) {
            return;
        }
        let doubt = self.hosts[host as usize].doubts.get(&wire.peer);
        if sender == Role::Server && doubt.is_some_and(|since| created.1 <= *since) {
            return;
        }
        let has_sessions = wire.packet.header.udp().is_some();
        if has_sessions && (known.is_none() || known != session(wire.packet)) {
            return;
        }
        self.change(host, call, sender, |message| {
            if message.limit > 0 {
                message.limit = message.limit.max(offset.min(message.length));
            }
        });
    }

    /// Clears the state of a crashed host's calls.
    fn host_crashed(&mut self, directory: &Directory, host: HostId) {
        self.hosts[host as usize] = HostState { has_died: true, ..HostState::default() };
        for call in 0..self.messages.len() {
            let planned = directory.call(call as CallId);
            let [request, response] = &mut self.messages[call];
            if planned.from == host {
                request.limit = 0;
            }
            if planned.to == host {
                response.limit = 0;
                self.first_seen[call] = u64::MAX;
            }
        }
    }
}

/// Returns where a packet of DATA ends in its message. An empty message ends at 1.
pub(super) fn end(data: &Data, payload: &[u8]) -> u32 {
    if data.message_length == 0 { 1 } else { data.offset + payload.len() as u32 }
}

/// Returns whether a packet is a session challenge.
fn is_challenge(packet: &Packet<'_>) -> bool {
    let confirm = packet.header.udp().is_some_and(|fields| fields.flags.contains(Flags::CONFIRM));
    confirm && matches!(packet.body, Body::NeedAck)
}

impl Checker for Order {
    fn observe(
        &mut self,
        directory: &Directory,
        observation: &Observation<'_>,
    ) -> Result<(), Violation> {
        self.clock += 1;
        let host = observation.host;
        match &observation.event {
            HostEvent::Called(call) => {
                self.begin(host, *call, Role::Client, directory.call(*call).request, self.clock);
            }
            HostEvent::Replied(call) => {
                let first = self.first_seen[*call as usize];
                self.begin(host, *call, Role::Server, directory.call(*call).response, first);
                if self.hosts[directory.call(*call).from as usize].has_died {
                    self.end(host, *call, Role::Server);
                }
            }
            HostEvent::Responded(call, _)
            | HostEvent::Failed(call, _)
            | HostEvent::Cancelled(call) => {
                self.end(host, *call, Role::Client);
            }
            HostEvent::Sent(wire) => {
                self.learn_from_sent(directory, host, wire);
                if let (Some(call), Body::Data(data, payload)) = (wire.call, &wire.packet.body) {
                    self.sent(host, call, wire, data, payload)?;
                }
            }
            HostEvent::Received(wire) => self.received(directory, host, wire),
            HostEvent::Crashed => self.host_crashed(directory, host),
            _ => {}
        }
        Ok(())
    }
}
