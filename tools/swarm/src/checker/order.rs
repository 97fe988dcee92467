//! Is the shortest remaining message sent first, but for the oldest one's share?
//!
//! Requirements SEND-1 to SEND-3, SEND-5. Each time a burst of a message leaves for the first time, no message
//! of its host that could leave for certain may have fewer bytes left, unless the one that leaves is the
//! oldest; and the oldest gets no more than its share. What could leave for certain: unscheduled bytes, and
//! what a GRANT has allowed that carries the session in which the sender speaks of the call, as long as
//! nothing has come that may have ended it.

use std::collections::{BTreeSet, HashMap};

use apus_wire::{Body, Data, Flags, Packet, Role};
use foldhash::fast::FixedState;

use super::Checker;
use crate::directory::Directory;
use crate::seen::{CallId, Seen, What, Wire};
use crate::violation::{Kind, Violation};
use apus_sim::message::HostId;

/// Bytes of others that the oldest message's share is saved up for: a burst (SEND-5).
const EARNED_FOR: u64 = 64_000;

/// The least that may be saved up: the packet's worth with which the oldest message goes first.
const STEP: u64 = 1_500;

/// The outgoing messages of all calls.
#[derive(Debug)]
pub(crate) struct Order {
    /// Request and response of each call.
    messages: Vec<[Outgoing; 2]>,
    hosts: Vec<Host>,
    /// Messages with fewer bytes left have a lane of their own.
    short: u32,
    per_mille: u64,
    /// Bytes of the oldest message's share that may be saved up, and the packet that goes beyond.
    saved_up: u64,
    /// Counts what was seen: the age of messages.
    clock: u64,
    /// When the first byte of each request was seen at its server.
    first_seen: Vec<u64>,
}

/// What may leave a host for certain.
#[derive(Debug, Default)]
struct Host {
    /// Bytes left, call, sender.
    ready: BTreeSet<(u32, CallId, Role)>,
    /// Bytes that have left in order of length, short ones aside.
    in_order: u64,
    /// Bytes that have left because their message was the oldest.
    for_age: u64,
    /// Why the present burst leaves.
    turn: Turn,
    /// Whether it has died: others may let its calls go at any time.
    has_died: bool,
    /// The session that each client has shown last.
    shown: HashMap<HostId, u32, FixedState>,
    /// Since when responses to a client may have been let go.
    doubts: HashMap<HostId, u64, FixedState>,
}

/// Why a burst leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Turn {
    /// Its message has the lane of the short ones.
    #[default]
    Short,
    /// No other message has fewer bytes left.
    InOrder,
    /// Its message is the oldest.
    ForAge,
}

/// A message, as its sender may know it.
#[derive(Clone, Copy, Debug, Default)]
struct Outgoing {
    length: u32,
    sent: u32,
    /// Up to where it may leave for certain; 0: it may have ended.
    limit: u32,
    /// Its RPC was made after this and before that.
    born: (u64, u64),
    /// The session in which its sender speaks of it.
    session: Option<u32>,
}

impl Outgoing {
    /// Bytes left, if some may leave.
    const fn ready(&self) -> Option<u32> {
        if self.sent < self.limit { Some(self.length - self.sent) } else { None }
    }
}

impl Order {
    pub(crate) fn new(directory: &Directory) -> Self {
        let scenario = &directory.scenario;
        Self {
            messages: vec![Default::default(); scenario.calls.len()],
            hosts: (0..scenario.hosts()).map(|_| Host::default()).collect(),
            short: scenario.config.defer_min_bytes() as u32,
            per_mille: scenario.config.pacer_fifo_fraction(),
            saved_up: (EARNED_FOR * scenario.config.pacer_fifo_fraction() / 1_000).max(STEP)
                + u64::from(scenario.packet_limit),
            clock: 0,
            first_seen: vec![u64::MAX; scenario.calls.len()],
        }
    }

    /// Changes a message, and the order with it.
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

    /// A message begins. What is unscheduled of it is not known before it leaves; a byte is, at least.
    fn begin(&mut self, host: HostId, call: CallId, sender: Role, length: u32, born: u64) {
        let clock = self.clock;
        self.change(host, call, sender, |message| {
            let session = None;
            *message = Outgoing { length, sent: 0, limit: 1, born: (born, clock), session };
        });
    }

    fn end(&mut self, host: HostId, call: CallId, sender: Role) {
        self.change(host, call, sender, |message| message.limit = 0);
    }

    fn sent(
        &mut self,
        host: HostId,
        call: CallId,
        wire: &Wire<'_>,
        data: &Data,
        payload: &[u8],
    ) -> Result<(), Violation> {
        if data.retransmit {
            return Ok(());
        }
        let message = self.messages[call as usize][wire.sender as usize];
        let left = message.length.saturating_sub(message.sent);
        let bytes = payload.len() as u64;
        if wire.place == 0 {
            self.hosts[host as usize].turn = if left < self.short {
                Turn::Short
            } else {
                self.check_turn(host, call, wire.sender, left)?
            };
        }
        let turns = &mut self.hosts[host as usize];
        match turns.turn {
            Turn::Short => {}
            Turn::InOrder => turns.in_order += bytes,
            Turn::ForAge => turns.for_age += bytes,
        }
        self.change(host, call, wire.sender, |message| {
            message.sent = data.offset + payload.len() as u32;
            if message.limit > 0 {
                message.limit = message.limit.max(data.incoming);
            }
        });
        Ok(())
    }

    /// Whether a long message with so many bytes left may leave now.
    fn check_turn(
        &mut self,
        host: HostId,
        call: CallId,
        sender: Role,
        left: u32,
    ) -> Result<Turn, Violation> {
        let Host { ready, in_order, for_age, .. } = &self.hosts[host as usize];
        let Some(first) = ready.first().filter(|first| first.0 < left).copied() else {
            return Ok(Turn::InOrder);
        };
        let born = self.messages[call as usize][sender as usize].born.0;
        let is_oldest = || {
            let others = ready.iter().filter(|other| other.0 >= self.short);
            let mut born_by = others
                .map(|(_, call, sender)| self.messages[*call as usize][*sender as usize].born.1);
            born_by.all(|by| born <= by)
        };
        let has_share = for_age * 1_000 < self.per_mille * in_order + self.saved_up * 1_000;
        let may = first.0 >= self.short && self.per_mille > 0 && is_oldest() && has_share;
        Violation::unless(may, Kind::Order, call, || {
            (
                format!(
                    "host {host} sends the {:?} of call {} with {} bytes left, or the oldest with a share of {} ‰",
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
        Ok(Turn::ForAge)
    }

    /// What a sent packet shows about its sender's knowledge.
    fn learn_from_sent(&mut self, directory: &Directory, host: HostId, wire: &Wire<'_>) {
        if let (Some(call), Some(session)) = (wire.call, session(wire.packet)) {
            self.messages[call as usize][wire.sender as usize].session = Some(session);
        }
        match (&wire.packet.body, wire.call) {
            // The client may be another one than before, whose calls are let go.
            (Body::NeedAck, _) if is_question(wire.packet) => {
                self.doubt_responses(directory, host, wire.peer);
            }
            // If it does not answer, its response is let go.
            (Body::NeedAck, Some(call)) => self.end(host, call, Role::Server),
            _ => {}
        }
    }

    /// Responses of `host` to `client` may have been let go.
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

    fn received(&mut self, directory: &Directory, host: HostId, wire: &Wire<'_>) {
        if let (Role::Client, Some(session)) = (wire.sender, session(wire.packet)) {
            // What a server holds of an earlier session of its client is let go.
            let before = self.hosts[host as usize].shown.insert(wire.peer, session);
            if before != Some(session) {
                self.doubt_responses(directory, host, wire.peer);
            }
        }
        let server_of = |id| directory.find(wire.peer, host, id);
        match (&wire.packet.body, wire.call) {
            (Body::Data(data, _), call) => {
                match call {
                    // The response has begun: nobody needs the request any more.
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
            (Body::NeedAck, Some(call)) if is_question(wire.packet) => {
                let request = &mut self.messages[call as usize][Role::Client as usize];
                if request.session != session(wire.packet) {
                    request.session = None;
                }
            }
            (Body::Grant(grant), Some(call)) => self.granted(host, call, wire, grant.offset),
            _ => {}
        }
    }

    /// A GRANT is taken for certain if it comes from the session that its message's sender speaks of.
    fn granted(&mut self, host: HostId, call: CallId, wire: &Wire<'_>, offset: u32) {
        let sender = wire.sender.peer();
        let Outgoing { session: known, born, .. } = self.messages[call as usize][sender as usize];
        let doubt = self.hosts[host as usize].doubts.get(&wire.peer);
        if sender == Role::Server && doubt.is_some_and(|since| born.1 <= *since) {
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

    /// What is said about calls of a dead host means nothing any more.
    fn died(&mut self, directory: &Directory, host: HostId) {
        self.hosts[host as usize] = Host { has_died: true, ..Host::default() };
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

/// The session that a packet speaks of.
pub(super) fn session(packet: &Packet<'_>) -> Option<u32> {
    let fields = packet.header.udp()?;
    fields.flags.contains(Flags::SESSION).then_some(fields.incarnation)
}

/// Whether a packet asks a client if a call of its lives.
fn is_question(packet: &Packet<'_>) -> bool {
    let confirm = packet.header.udp().is_some_and(|fields| fields.flags.contains(Flags::CONFIRM));
    confirm && matches!(packet.body, Body::NeedAck)
}

impl Checker for Order {
    fn see(&mut self, directory: &Directory, seen: &Seen<'_>) -> Result<(), Violation> {
        self.clock += 1;
        let host = seen.host;
        match &seen.what {
            What::Called(call) => {
                self.begin(host, *call, Role::Client, directory.call(*call).request, self.clock);
            }
            What::Replied(call) => {
                let first = self.first_seen[*call as usize];
                self.begin(host, *call, Role::Server, directory.call(*call).response, first);
                if self.hosts[directory.call(*call).from as usize].has_died {
                    self.end(host, *call, Role::Server);
                }
            }
            What::Responded(call, _) | What::Failed(call, _) | What::Cancelled(call) => {
                self.end(host, *call, Role::Client);
            }
            What::Sent(wire) => {
                self.learn_from_sent(directory, host, wire);
                if let (Some(call), Body::Data(data, payload)) = (wire.call, &wire.packet.body) {
                    self.sent(host, call, wire, data, payload)?;
                }
            }
            What::Received(wire) => self.received(directory, host, wire),
            What::Crashed => self.died(directory, host),
            _ => {}
        }
        Ok(())
    }
}
