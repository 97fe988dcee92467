//! What can the application want?

use super::{Event, Transport};
use crate::error::{CommandError, Rejected};
use crate::message::{MessageIn, MessageOut, Payload};
use crate::metrics::Progress;
use crate::peer::{Address, PeerId};
use crate::rpc::{Client, ClientState, Rpc, RpcKey, ServerState, ServerStep, Side};
use crate::time::Instant;
use apus_wire::{AckList, Body, Flags, Profile, Refusal, Role};

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Call {
    /// The server: address and port. In the kernel profile the port is the Homa port alone.
    pub to: Address,
    /// The request, 1 byte to `max_message` (RPC-1).
    pub payload: Payload,
    /// Comes back in the event that ends the call.
    pub cookie: u64,
    /// When the call fails if it has not completed.
    pub deadline: Option<Instant>,
    /// Whether executing the request twice does no harm. If so, the call survives a restart of the
    /// server: it is sent again.
    pub idempotent: bool,
}

impl Transport {
    /// Sends a request: [`Event::Response`] or [`Event::Failed`] follows, exactly one of them (RPC-3).
    /// Returns the name of the call.
    ///
    /// # Errors
    ///
    /// [`Rejected`], with the payload; nothing has changed then. If the reason is
    /// [back-pressure](CommandError::is_back_pressure), [`Event::Room`] follows when it is worth trying again.
    pub fn call(&mut self, now: Instant, call: Call) -> Result<RpcKey, Rejected> {
        self.advance(now);
        match self.peer_of_call(call.to, &call.payload) {
            Ok(peer) => Ok(self.begin_call(peer, call)),
            Err(reason) => Err(Rejected { reason, payload: call.payload }),
        }
    }

    /// Answers the request of an [`Event::Request`] with `payload`, at least one byte.
    ///
    /// # Errors
    ///
    /// [`Rejected`], with the payload; nothing has changed then. [`CommandError::UnknownRpc`] means that the
    /// client has gone or has cancelled the call. If the reason is
    /// [back-pressure](CommandError::is_back_pressure), [`Event::Room`] follows when it is worth trying again.
    pub fn reply(&mut self, now: Instant, rpc: RpcKey, payload: Payload) -> Result<(), Rejected> {
        self.advance(now);
        match self.peer_of_reply(rpc, &payload) {
            Ok((peer, state)) => {
                self.begin_reply(rpc, peer, state, payload);
                Ok(())
            }
            Err(reason) => Err(Rejected { reason, payload }),
        }
    }

    /// Cancels a call: no event follows. The server may have executed it already.
    ///
    /// # Errors
    ///
    /// [`CommandError::UnknownRpc`] if the call has ended, [`CommandError::WrongState`] if `rpc` is a request
    /// that was received.
    pub fn cancel(&mut self, now: Instant, rpc: RpcKey) -> Result<(), CommandError> {
        self.advance(now);
        let entry = self.rpcs.get(rpc).ok_or(CommandError::UnknownRpc)?;
        if entry.role() != Role::Client {
            return Err(CommandError::WrongState);
        }
        self.disown(rpc);
        self.remove_client(rpc);
        Ok(())
    }

    /// Drops the request of an [`Event::Request`] without a reply: the call fails at the client with
    /// [`Refusal::Abandoned`].
    ///
    /// # Errors
    ///
    /// [`CommandError::UnknownRpc`] if the RPC has ended, [`CommandError::WrongState`] if `rpc` is a call or
    /// was replied to.
    pub fn abandon(&mut self, now: Instant, rpc: RpcKey) -> Result<(), CommandError> {
        self.advance(now);
        let entry = self.rpcs.get(rpc).ok_or(CommandError::UnknownRpc)?;
        let server = entry.server().ok_or(CommandError::WrongState)?;
        // Only a request that the application has can be abandoned.
        server.state.after(ServerStep::Reply).ok_or(CommandError::WrongState)?;
        self.refuse_live(rpc, Refusal::Abandoned);
        Ok(())
    }

    /// Whether the next call to `to` will be [selected](Transport::selected). Costs one comparison if there is no
    /// [probe filter](Transport::set_probe_filter).
    pub fn selects_next_call(&mut self, to: Address) -> bool {
        if !self.notes.are_wanted() {
            return false;
        }
        let id = match self.identity.profile {
            Profile::Udp => self.peers.next_call_id(peer_address(Profile::Udp, to)),
            Profile::Kernel => self.next_kernel_id,
        };
        self.notes.are_wanted_of(id)
    }

    /// Whom a call goes to, if it may be made.
    fn peer_of_call(&mut self, to: Address, payload: &Payload) -> Result<PeerId, CommandError> {
        if self.shut_down {
            return Err(CommandError::ShutDown);
        }
        let length = self.check_length(payload)?;
        if self.rpcs.count(Role::Client) as u64 >= self.config.max_client_rpcs() {
            return Err(self.out_of_room(CommandError::TooManyRpcs));
        }
        let Some(peer) = self.peer_for(peer_address(self.identity.profile, to)) else {
            return Err(self.out_of_room(CommandError::TooManyPeers));
        };
        self.check_send(peer, Role::Client, length)?;
        Ok(peer)
    }

    /// Makes a call to `peer`, for which there is room.
    fn begin_call(&mut self, peer: PeerId, call: Call) -> RpcKey {
        let length = call.payload.len() as u64;
        self.reserve_send(peer, Role::Client, length);
        let id = self.allocate_id(peer);
        let side = Side::Client(Client {
            state: ClientState::Outgoing,
            session: self.peers[peer].calls.session,
            idempotent: call.idempotent,
            moved: false,
            cookie: call.cookie,
            deadline: call.deadline,
        });
        let outgoing = self.message_out(peer, call.payload);
        let rpc = self.create_rpc(peer, id, call.to.port(), side, None, Some(outgoing));
        let now = self.now();
        self.silence.watch(&mut self.rpcs, rpc, now);
        if let Some(deadline) = call.deadline {
            self.deadlines.insert(deadline, rpc);
        }
        self.outbox.messages.update(&mut self.rpcs, rpc);
        let Progress { client_requests_started, client_request_bytes_started, .. } =
            &mut self.metrics.progress;
        *client_requests_started += 1;
        *client_request_bytes_started += length;
        rpc
    }

    /// Whom a reply goes to, and the state after it, if it may be given.
    fn peer_of_reply(
        &mut self,
        rpc: RpcKey,
        payload: &Payload,
    ) -> Result<(PeerId, ServerState), CommandError> {
        let length = self.check_length(payload)?;
        let entry = self.rpcs.get(rpc).ok_or(CommandError::UnknownRpc)?;
        let server = entry.server().ok_or(CommandError::WrongState)?;
        let state = server.state.after(ServerStep::Reply).ok_or(CommandError::WrongState)?;
        let peer = entry.peer;
        self.check_send(peer, Role::Server, length)?;
        Ok((peer, state))
    }

    /// Sends a reply, for which there is room.
    fn begin_reply(&mut self, rpc: RpcKey, peer: PeerId, state: ServerState, payload: Payload) {
        let length = payload.len() as u64;
        self.reserve_send(peer, Role::Server, length);
        let outgoing = self.message_out(peer, payload);
        let now = self.now();
        let entry = &mut self.rpcs[rpc];
        if let Some(server) = entry.server_mut() {
            server.state = state;
        }
        entry.outgoing = Some(outgoing);
        entry.hear(now);
        self.metrics.calls.served.record(now.since(entry.started), 1);
        self.silence.watch(&mut self.rpcs, rpc, now);
        self.outbox.messages.update(&mut self.rpcs, rpc);
        self.metrics.progress.server_responses_started += 1;
        self.metrics.progress.server_response_bytes_started += length;
    }

    /// Tells the server of a live RPC of its own that it will not be served.
    pub(super) fn refuse_live(&mut self, rpc: RpcKey, refusal: Refusal) {
        let header_reason = refusal as u32;
        if self.identity.profile == Profile::Udp {
            self.send_with_sequence(rpc, Body::RpcUnknown, Flags::REFUSED, header_reason);
        }
        self.metrics.admission.refused += 1;
        self.end_server(rpc, super::Ending::Discarded);
    }

    /// RPC-5: tells the server that its client does not want a call any more, if it may know the call. The
    /// kernel's clients say nothing (row L-9), and its servers then wait for grants for ever (row L-6).
    pub(crate) fn disown(&mut self, rpc: RpcKey) {
        let entry = &self.rpcs[rpc];
        let sent = entry.outgoing.as_ref().is_none_or(|message| message.sent() > 0);
        if sent {
            self.send_control(rpc, Body::Ack(AckList::EMPTY));
        }
    }

    fn check_length(&self, payload: &Payload) -> Result<u64, CommandError> {
        let (length, limit) = (payload.len() as u64, self.config.max_message());
        if length == 0 {
            return Err(CommandError::EmptyMessage);
        }
        if length > limit {
            return Err(CommandError::TooLarge { length, limit });
        }
        Ok(length)
    }

    /// A message of ours to `peer`.
    #[inline]
    fn message_out(&self, peer: PeerId, payload: Payload) -> MessageOut {
        let peer = &self.peers[peer];
        let unscheduled = if peer.variant.is_stripped() {
            // No GRANT will come (WIRE-26).
            payload.len() as u32
        } else {
            self.unscheduled_bytes(peer.rtt.min())
        };
        MessageOut::new(payload, unscheduled, peer.segment)
    }

    /// How many bytes may leave without a GRANT: what the link carries in a round-trip time, so that
    /// the first GRANT comes when they have left (PRIO-1; SIGCOMM 2018 section 3.3: RTTbytes), within bounds.
    fn unscheduled_bytes(&self, rtt_nanos: Option<u64>) -> u32 {
        let bytes = rtt_nanos.map_or(self.config.unsched_bytes(), |nanos| {
            (nanos.saturating_mul(self.link_mbps) / 8_000)
                .clamp(self.config.unsched_bytes_min(), self.config.unsched_bytes_max())
        });
        bytes as u32
    }

    /// The id of a new call.
    fn allocate_id(&mut self, peer: PeerId) -> u64 {
        match self.identity.profile {
            Profile::Udp => self.peers[peer].calls.allocate(),
            Profile::Kernel => {
                let id = self.next_kernel_id;
                self.next_kernel_id = id.wrapping_add(2);
                id
            }
        }
    }

    /// The peer at `address`, made if necessary; `None` if there are too many.
    pub(crate) fn peer_for(&mut self, address: Address) -> Option<PeerId> {
        let now = self.now();
        let (peer, new) = self.peers.find_or_insert(address, now)?;
        if new {
            self.events.push_back(Event::NewPeer(address));
        }
        Some(peer)
    }

    /// Adds an RPC whose peer's silence nobody watches yet.
    pub(crate) fn create_rpc(
        &mut self,
        peer: PeerId,
        id: u64,
        port: u16,
        side: Side,
        incoming: Option<Box<MessageIn>>,
        outgoing: Option<MessageOut>,
    ) -> RpcKey {
        let now = self.now();
        self.births += 1;
        let rpc = self.rpcs.insert(Rpc {
            peer,
            id,
            peer_port: port,
            birth: self.births,
            started: now,
            heard: now,
            asked: now,
            asks: 0,
            side,
            incoming,
            outgoing,
            timer: crate::timer::Link::default(),
            queued: None,
            resend_queued: false,
            no_room: false,
            doomed: false,
            grant: crate::grant::Entry::default(),
        });
        let entry = &mut self.peers[peer];
        entry.live_rpcs += 1;
        entry.last_used = now;
        rpc
    }
}

/// How a peer is known: in the kernel profile the host alone, in the udp profile the endpoint; an IPv4
/// host by its IPv4 address, however it is written (RFC 4291 section 2.5.5.2), as its packets come from
/// there.
pub(crate) fn peer_address(profile: Profile, mut address: Address) -> Address {
    if let Address::V6(v6) = address
        && let Some(v4) = v6.ip().to_ipv4_mapped()
    {
        address = Address::from((v4, v6.port()));
    }
    if profile == Profile::Kernel {
        address.set_port(0);
    }
    address
}
