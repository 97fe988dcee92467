//! What is one remote procedure call?
//!
//! A request and a response, seen from one end. Both ends keep the same [`Rpc`]; what only the client
//! or only the server needs is in [`Side`].

mod entries;
mod key;
mod state;
mod table;
mod tables;

pub(crate) use entries::{GrantEntry, SilenceLink};
pub use key::RpcKey;
pub(crate) use state::{ClientState, ClientStep, ServerState, ServerStep};
pub(crate) use table::Rpcs;
pub(crate) use tables::Tables;

use crate::error::Execution;
use crate::message::{MessageIn, MessageOut};
use crate::peer::PeerId;
use crate::time::Instant;
use apus_wire::{Role, SenderId};

/// One RPC at one end.
#[derive(Debug)]
pub(crate) struct Rpc {
    /// The other end.
    pub(crate) peer: PeerId,
    /// The even id by which both ends know it.
    pub(crate) id: u64,
    /// Homa port of the other end.
    pub(crate) peer_port: u16,
    /// Order of creation at this end; breaks ties in SRPT order (row G-2) and finds the oldest.
    pub(crate) birth: u64,
    /// When it was created.
    pub(crate) started: Instant,
    /// When a packet last showed that the peer works on it: DATA, GRANT or BUSY (row P-21).
    pub(crate) heard: Instant,
    /// When we last asked the peer (RESEND or NEED_ACK).
    pub(crate) asked: Instant,
    /// How often we asked since `heard`.
    pub(crate) asks: u32,
    /// What only one of the ends has.
    pub(crate) side: Side,
    /// The message that comes to us, from its first packet on. Apart, as those that fit into one packet
    /// need none.
    pub(crate) incoming: Option<Box<MessageIn>>,
    /// The message that goes out from us, as long as the peer may need it.
    pub(crate) outgoing: Option<MessageOut>,
    /// Place in the row of RPCs whose silence is watched.
    pub(crate) timer: SilenceLink,
    /// Place in the send queue: the key under which it stands there.
    pub(crate) queued: Option<u32>,
    /// Whether it waits in the queue of retransmissions.
    pub(crate) resend_queued: bool,
    /// Whether the last of its packets was dropped because there was no room for its incoming message.
    pub(crate) no_room: bool,
    /// Whether it waits for its end, because the peer cannot be reached.
    pub(crate) doomed: bool,
    /// What the granter knows about the incoming message.
    pub(crate) grant: GrantEntry,
}

/// An RPC to be created.
#[derive(Debug)]
pub(crate) struct NewRpc {
    /// The other end.
    pub(crate) peer: PeerId,
    /// The even id by which both ends know it.
    pub(crate) id: u64,
    /// Homa port of the other end.
    pub(crate) peer_port: u16,
    /// What only one of the ends has.
    pub(crate) side: Side,
    /// The incoming message, if its first packet has arrived and more are to come.
    pub(crate) incoming: Option<Box<MessageIn>>,
    /// The outgoing message, if it exists.
    pub(crate) outgoing: Option<MessageOut>,
}

/// What only one of the ends has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    /// We called.
    Client(Client),
    /// We are called.
    Server(Server),
}

/// The client's part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) state: ClientState,
    /// The session in which the server may execute it; `None` until the server has asked for the
    /// first confirmation. Never changes afterwards unless the call is idempotent (AMO-3).
    pub(crate) session: Option<u32>,
    /// Whether executing it twice does no harm.
    pub(crate) idempotent: bool,
    /// Whether it has gone on in another session: what an earlier life of the server did with it is not
    /// known, whatever the present one says.
    pub(crate) moved: bool,
    /// What the caller wants to see again when it completes.
    pub(crate) cookie: u64,
    /// When it fails if it has not completed.
    pub(crate) deadline: Option<Instant>,
}

/// The server's part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Server {
    pub(crate) state: ServerState,
    /// The session it belongs to.
    pub(crate) session: u32,
    /// Whether the request may be executed: its client has proved that it lives.
    pub(crate) confirmed: bool,
}

impl Rpc {
    #[inline]
    fn new(now: Instant, birth: u64, new: NewRpc) -> Self {
        Self {
            peer: new.peer,
            id: new.id,
            peer_port: new.peer_port,
            birth,
            started: now,
            heard: now,
            asked: now,
            asks: 0,
            side: new.side,
            incoming: new.incoming,
            outgoing: new.outgoing,
            timer: SilenceLink::default(),
            queued: None,
            resend_queued: false,
            no_room: false,
            doomed: false,
            grant: GrantEntry::default(),
        }
    }

    /// Our role.
    pub(crate) const fn role(&self) -> Role {
        match self.side {
            Side::Client(_) => Role::Client,
            Side::Server(_) => Role::Server,
        }
    }

    /// The id as we write it into packets.
    pub(crate) const fn sender_id(&self) -> SenderId {
        SenderId::new(self.id, self.role())
    }

    /// The client's part, if we called.
    pub(crate) const fn client(&self) -> Option<&Client> {
        match &self.side {
            Side::Client(client) => Some(client),
            Side::Server(_) => None,
        }
    }

    /// The server's part, if we are called.
    pub(crate) const fn server(&self) -> Option<&Server> {
        match &self.side {
            Side::Server(server) => Some(server),
            Side::Client(_) => None,
        }
    }

    /// The server's part, if we are called.
    pub(crate) const fn server_mut(&mut self) -> Option<&mut Server> {
        match &mut self.side {
            Side::Server(server) => Some(server),
            Side::Client(_) => None,
        }
    }

    /// The session it belongs to; `None` for a call that its server has not asked about yet.
    pub(crate) const fn session(&self) -> Option<u32> {
        match &self.side {
            Side::Client(client) => client.session,
            Side::Server(server) => Some(server.session),
        }
    }

    /// Whether the peer may send us DATA for it now.
    pub(crate) const fn may_receive(&self) -> bool {
        match &self.side {
            Side::Client(_) => true,
            Side::Server(server) => server.confirmed,
        }
    }

    /// Notes a sign of life from the peer (row P-21, TIME-1).
    pub(crate) const fn hear(&mut self, now: Instant) {
        self.heard = now;
        self.asks = 0;
    }

    /// Notes that we ask the peer for something.
    pub(crate) const fn ask(&mut self, now: Instant) {
        self.asked = now;
        self.asks = self.asks.saturating_add(1);
    }

    /// What is known about the execution of our request if the call fails now (AMO-5). `sessions`
    /// says whether the profile has them.
    pub(crate) fn outcome(&self, sessions: bool) -> Execution {
        let Some(client) = self.client() else { return Execution::Unknown };
        let unsent = self.outgoing.as_ref().is_some_and(|message| !message.is_sent());
        match client.state {
            ClientState::Incoming => Execution::Executed,
            // The server cannot have the whole request…
            ClientState::Outgoing if unsent => Execution::NotExecuted,
            // …or has not been told that it may execute it.
            ClientState::Outgoing if sessions && client.session.is_none() => Execution::NotExecuted,
            ClientState::Outgoing => Execution::Unknown,
        }
    }
}
