//! Remote procedure calls: a request and a response, seen from one end.
//!
//! Both ends keep the same [`Rpc`]; what only the client or only the server needs is in [`Side`].

mod binding;
mod entries;
mod state;
mod table;
mod tables;

pub(crate) use binding::Binding;
pub(crate) use entries::{GrantEntry, InFlightShare, SilencePlace};
pub(crate) use state::{ClientState, RpcStep, ServerState, SideState};
pub(crate) use table::Rpcs;
pub(crate) use tables::Tables;

use crate::error::Execution;
use crate::message::{MessageIn, MessageOut};
use crate::peer::PeerId;
pub use crate::rpc_key::RpcKey;
use crate::time::Instant;
use apus_wire::{Role, SenderId};

/// One RPC at one end.
#[derive(Debug)]
pub(crate) struct Rpc {
    /// The other end.
    pub(crate) peer: PeerId,
    /// The even id that both ends use for it.
    pub(crate) id: u64,
    /// Homa port of the other end.
    pub(crate) peer_port: u16,
    /// Order of creation at this end; breaks ties in SRPT order (HM `homa_grant.c`
    /// `homa_grant_outranks`) and finds the oldest.
    pub(crate) birth: u64,
    /// Its place among the RPCs with its peer (`tables`).
    place: u32,
    /// When it was created.
    pub(crate) started: Instant,
    /// When a packet last showed that the peer works on it: DATA, GRANT or BUSY (HM
    /// `homa_incoming.c` `homa_dispatch_pkts`).
    pub(crate) heard: Instant,
    /// When the peer was last asked (RESEND or NEED_ACK).
    pub(crate) asked: Instant,
    /// How often the peer was asked since `heard`.
    pub(crate) asks: u32,
    /// How often in a row the peer has responded with BUSY: the resend interval doubles with each.
    pub(crate) put_off: u32,
    /// Whether it is queued to send a RESEND to its peer (TURNS-1).
    pub(crate) waits_to_ask: bool,
    /// Whether notes on it are enabled ([`crate::probe`]).
    pub(crate) selected: bool,
    /// State of one role only.
    pub(crate) side: Side,
    /// The incoming message, from its first packet on. Boxed, because a message that fits into one
    /// packet needs none.
    pub(crate) incoming: Option<Box<MessageIn>>,
    /// The outgoing message, as long as the peer may need it.
    pub(crate) outgoing: Option<MessageOut>,
    /// Place among the RPCs whose silence is watched.
    pub(crate) silence_place: SilencePlace,
    /// Its key in the send queue, if it is queued.
    pub(crate) queued: Option<u32>,
    /// The granter's state of the incoming message.
    pub(crate) grant: GrantEntry,
}

/// An RPC to be created. Its messages are written to their place afterwards: a long value moves
/// slowly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewRpc {
    /// The other end.
    pub(crate) peer: PeerId,
    /// The even id that both ends use for it.
    pub(crate) id: u64,
    /// Homa port of the other end.
    pub(crate) peer_port: u16,
    /// State of one role only.
    pub(crate) side: Side,
    /// Whether notes on it are enabled.
    pub(crate) selected: bool,
}

/// State of one role only.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    /// This endpoint calls.
    Client(Client),
    /// This endpoint is called.
    Server(Server),
}

/// The client's part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    state: ClientState,
    /// The session that the server may execute it in.
    pub(crate) binding: Binding,
    /// Whether executing it twice does no harm.
    pub(crate) idempotent: bool,
    /// Returned to the caller when the call ends.
    pub(crate) cookie: u64,
    /// When it fails if it has not completed.
    pub(crate) deadline: Option<Instant>,
}

/// The server's part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Server {
    state: ServerState,
    /// The session it belongs to.
    pub(crate) session: u64,
    /// Bytes of the response that may leave without a GRANT, if its client limits them (PRIO-15).
    pub(crate) response_limit: Option<u32>,
}

impl Side {
    const fn role(&self) -> Role {
        match self {
            Self::Client(_) => Role::Client,
            Self::Server(_) => Role::Server,
        }
    }
}

impl Client {
    /// A call whose request is to be sent.
    pub(crate) const fn new(
        binding: Binding,
        idempotent: bool,
        cookie: u64,
        deadline: Option<Instant>,
    ) -> Self {
        Self { state: ClientState::Outgoing, binding, idempotent, cookie, deadline }
    }
}

impl Server {
    /// A request that may be executed when it is complete.
    pub(crate) const fn incoming(session: u64, response_limit: Option<u32>) -> Self {
        Self::new(ServerState::Incoming, session, response_limit)
    }

    /// A complete request that may be executed.
    pub(crate) const fn in_service(session: u64, response_limit: Option<u32>) -> Self {
        Self::new(ServerState::InService, session, response_limit)
    }

    const fn new(state: ServerState, session: u64, response_limit: Option<u32>) -> Self {
        Self { state, session, response_limit }
    }

    /// Its state.
    pub(crate) const fn state(&self) -> ServerState {
        self.state
    }
}

impl Rpc {
    fn new(now: Instant, birth: u64, place: u32, new: NewRpc) -> Self {
        Self {
            peer: new.peer,
            id: new.id,
            peer_port: new.peer_port,
            birth,
            place,
            started: now,
            heard: now,
            asked: now,
            asks: 0,
            put_off: 0,
            waits_to_ask: false,
            selected: new.selected,
            side: new.side,
            incoming: None,
            outgoing: None,
            silence_place: SilencePlace::default(),
            queued: None,
            grant: GrantEntry::default(),
        }
    }

    /// Becomes another RPC: this one has ended (RPCS-2).
    fn begin_again(&mut self, now: Instant, birth: u64, place: u32, new: NewRpc) {
        debug_assert!(self.incoming.is_none() && self.outgoing.is_none(), "RPCS-2");
        debug_assert!(self.queued.is_none() && self.silence_place.tick == 0, "RPCS-2");
        let NewRpc { peer, id, peer_port, side, selected } = new;
        (self.peer, self.id, self.peer_port, self.side) = (peer, id, peer_port, side);
        self.selected = selected;
        (self.birth, self.place) = (birth, place);
        (self.started, self.heard, self.asked) = (now, now, now);
        (self.asks, self.put_off, self.waits_to_ask) = (0, 0, false);
        self.grant = GrantEntry::default();
    }

    /// This endpoint's role.
    pub(crate) const fn role(&self) -> Role {
        self.side.role()
    }

    /// The state.
    pub(crate) const fn state(&self) -> SideState {
        match &self.side {
            Side::Client(client) => SideState::Client(client.state),
            Side::Server(server) => SideState::Server(server.state),
        }
    }

    /// Whether `step` is possible now.
    pub(crate) const fn permits(&self, step: RpcStep) -> bool {
        self.state().after(step).is_some()
    }

    /// Takes a step (STATE-1). Returns whether it was possible; nothing has changed if it was not.
    pub(crate) fn step(&mut self, step: RpcStep) -> bool {
        let after = self.state().after(step);
        debug_assert!(
            after.is_some() || step.is_asked_for(),
            "STATE-1: {step:?} is impossible in {:?}",
            self.state()
        );
        match (&mut self.side, after) {
            (Side::Client(client), Some(SideState::Client(state))) => client.state = state,
            (Side::Server(server), Some(SideState::Server(state))) => server.state = state,
            _ => return false,
        }
        true
    }

    /// The id as this endpoint writes it into packets.
    pub(crate) const fn sender_id(&self) -> SenderId {
        SenderId::new(self.id, self.role())
    }

    /// The client's part, if this endpoint calls.
    pub(crate) const fn client(&self) -> Option<&Client> {
        match &self.side {
            Side::Client(client) => Some(client),
            Side::Server(_) => None,
        }
    }

    /// The server's part, if this endpoint is called.
    pub(crate) const fn server(&self) -> Option<&Server> {
        match &self.side {
            Side::Server(server) => Some(server),
            Side::Client(_) => None,
        }
    }

    /// The session it belongs to; `None` for a call that its server has not asked to confirm yet.
    pub(crate) const fn session(&self) -> Option<u64> {
        match &self.side {
            Side::Client(client) => client.binding.session(),
            Side::Server(server) => Some(server.session),
        }
    }

    /// Records a sign of life from the peer (HM `homa_incoming.c` `homa_dispatch_pkts`, TIME-1).
    pub(crate) const fn hear(&mut self, now: Instant) {
        self.heard = now;
        self.asks = 0;
        self.put_off = 0;
    }

    /// Records that the peer is alive, and has nothing to send yet (BUSY).
    pub(crate) const fn hear_busy(&mut self, now: Instant) {
        let put_off = self.put_off.saturating_add(1);
        self.hear(now);
        self.put_off = put_off;
    }

    /// Records that this endpoint was stopped for the last `nanos` nanoseconds, which are no
    /// silence of the peer.
    pub(crate) fn skip_silence(&mut self, nanos: u64, now: Instant) {
        self.heard = self.heard.plus(nanos).min(now);
        self.asked = self.asked.plus(nanos).min(now);
    }

    /// Records a request to the peer.
    pub(crate) const fn ask(&mut self, now: Instant) {
        self.asked = now;
        self.asks = self.asks.saturating_add(1);
    }

    /// Returns when the peer was last asked, if it has not responded.
    pub(crate) fn unanswered(&self) -> Option<Instant> {
        (self.asks > 0).then_some(self.asked)
    }

    /// Returns the execution status of the request if the call fails now (AMO-5). `sessions` states
    /// whether the profile has them.
    pub(crate) fn outcome(&self, sessions: bool) -> Execution {
        let Some(client) = self.client() else { return Execution::Unknown };
        // A request that has moved may have been executed in the session before.
        let moved = client.binding.is_moved();
        let unsent = self.outgoing.as_ref().is_some_and(|message| !message.is_sent() && !moved);
        match client.state {
            ClientState::Incoming => Execution::Executed,
            // The server cannot have the whole request…
            ClientState::Outgoing | ClientState::NoRoom if unsent => Execution::NotExecuted,
            // …or has not offered a session that it could execute it in.
            ClientState::Outgoing | ClientState::NoRoom
                if sessions && client.binding == Binding::None =>
            {
                Execution::NotExecuted
            }
            ClientState::Outgoing | ClientState::NoRoom => Execution::Unknown,
        }
    }
}
