//! How does a request begin?
//!
//! A DATA packet for a request that is not known here is refused with a reason, dropped, held until
//! its client has confirmed it, or admitted. The order of the checks is from cheap to dear: nothing is
//! remembered about a stranger before its request has passed all limits (requirement `BAD-4`).

use super::{Ending, Transport};
use crate::drop_reason::DropReason;
use crate::message::MessageIn;
use crate::peer::{Admission, Confirmation, PeerId};
use crate::rpc::{RpcKey, Server, ServerState, Side};
use crate::rx::Source;
use apus_wire::{Body, Data, Flags, Header, Profile, Refusal, Role};

/// What became of a request of which nothing was known.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Admitted {
    /// It was whole, and the application has it.
    Served,
    /// Its RPC exists, with an empty incoming message that waits for the packet's bytes.
    Receiving(RpcKey),
}

impl Transport {
    /// Decides about a packet of an unknown request.
    pub(crate) fn admit(
        &mut self,
        from: Source,
        header: &Header,
        data: &Data,
        payload: &[u8],
    ) -> Result<Admitted, DropReason> {
        let id = header.sender_id.client_id();
        if self.shut_down || !self.serving {
            if from.peer.is_some_and(|peer| self.peers[peer].serving.is_finished(id)) {
                // No refusal: it would say that the request was not executed. Unlike in `refuse`, the
                // packet need not show the session: a copy from before the first confirmation has none.
                return Err(DropReason::Finished);
            }
            let refusal = if self.shut_down { Refusal::ShuttingDown } else { Refusal::NotServing };
            return Err(self.refuse(from, header, refusal, DropReason::NotServing));
        }
        if u64::from(data.message_length) > self.config.max_message() {
            return Err(self.refuse(from, header, Refusal::TooLarge, DropReason::TooLarge));
        }
        let peer = self.admitting_peer(from)?;
        let young = 4 * self.least_patience(self.config.resend_interval_usecs());
        let (now, random) = (self.now(), &mut self.random);
        let serving = &mut self.peers[peer].serving;
        match serving.admit(id, header.udp(), now, young, || random.next() as u32) {
            Admission::Fresh { session, confirmation } => {
                self.note_confirmation(peer, confirmation);
                self.admit_confirmed(peer, header, data, payload, session)
            }
            Admission::Confirm { session } => {
                self.hold(peer, header, data, payload.len(), session).map(Admitted::Receiving)
            }
            Admission::Finished => Err(DropReason::Finished),
            Admission::Occupied => Err(DropReason::TooManyUnconfirmed),
        }
    }

    /// The client of `rpc` has shown session `number`: the request may be executed.
    pub(crate) fn confirm(&mut self, rpc: RpcKey, number: u32) -> Result<(), DropReason> {
        let entry = &self.rpcs[rpc];
        let peer = entry.peer;
        let Some(server) = entry.server() else { return Err(DropReason::WrongRole) };
        if server.session != number {
            return Err(DropReason::StaleSession);
        }
        if server.confirmed {
            return Ok(());
        }
        match self.peers[peer].serving.confirm(number) {
            Confirmation::Stale => return Err(DropReason::StaleSession),
            confirmation => self.note_confirmation(peer, confirmation),
        }
        self.metrics.admission.confirms_received += 1;
        let now = self.now();
        let entry = &mut self.rpcs[rpc];
        let asked = entry.asked;
        let once = entry.asks == 1;
        entry.hear(now);
        if once {
            self.peers[peer].rtt.sample(now, now.since(asked));
        }
        self.release_held(rpc);
        Ok(())
    }

    /// A held request becomes an ordinary one, if there is room for it; otherwise it is given up, and
    /// the client will be told when it asks.
    fn release_held(&mut self, rpc: RpcKey) {
        let entry = &self.rpcs[rpc];
        let peer = entry.peer;
        let Some(message) = &entry.incoming else { return };
        let (length, received) = (message.length(), message.received());
        if !self.reserve_receive(peer, u64::from(length)) {
            self.metrics.count_drop(DropReason::NoBuffers);
            self.end_server(rpc, Ending::GivenUp);
            return;
        }
        self.release_unconfirmed(u64::from(received));
        self.peers[peer].held -= 1;
        if let Some(server) = self.rpcs[rpc].server_mut() {
            server.confirmed = true;
        }
        self.granter.data_arrived(&mut self.rpcs, rpc, received);
        self.finish_if_complete(rpc);
    }

    /// Another session has become current: the RPCs of the one before belong to an earlier life of
    /// the client.
    pub(crate) fn note_confirmation(&mut self, peer: PeerId, confirmation: Confirmation) {
        let Confirmation::Established { displaced: Some(displaced) } = confirmation else { return };
        self.metrics.admission.sessions_replaced += 1;
        let orphans = self.rpcs.iter().filter(|(_, rpc)| {
            rpc.peer == peer && rpc.server().is_some_and(|server| server.session == displaced)
        });
        self.reaper.orphans(orphans.map(|(rpc, _)| rpc));
    }

    /// The peer that sends the request, made if there is room for a stranger.
    fn admitting_peer(&mut self, from: Source) -> Result<PeerId, DropReason> {
        if let Some(peer) = from.peer {
            return Ok(peer);
        }
        if self.budget.unconfirmed_rpcs >= self.config.max_unconfirmed_rpcs() {
            return Err(DropReason::TooManyUnconfirmed);
        }
        let peer = self.peer_for(from.address).ok_or(DropReason::TooManyPeers)?;
        self.note_variant(peer, from.variant);
        Ok(peer)
    }

    /// Creates the RPC of a request that may be executed.
    fn admit_confirmed(
        &mut self,
        peer: PeerId,
        header: &Header,
        data: &Data,
        payload: &[u8],
        session: u32,
    ) -> Result<Admitted, DropReason> {
        let too_many = self.rpcs.count(Role::Server) as u64 >= self.config.max_server_rpcs();
        if too_many || self.request_room == 0 {
            let address = self.peers[peer].address;
            let from = Source { address, peer: Some(peer), variant: None };
            let why = if too_many { DropReason::TooManyRpcs } else { DropReason::Overloaded };
            return Err(self.refuse(from, header, Refusal::Overloaded, why));
        }
        let length = u64::from(data.message_length);
        if !self.reserve_receive(peer, length) {
            return Err(DropReason::NoBuffers);
        }
        self.request_room -= 1;
        if let Some(request) = self.message_in_one_packet(peer, data, payload) {
            let state = ServerState::InService;
            let server = Server { state, session, confirmed: true };
            let rpc = self.create_server(peer, header, server, None);
            self.deliver_request(rpc, request);
            return Ok(Admitted::Served);
        }
        let server = Server { state: ServerState::Incoming, session, confirmed: true };
        let message = self.message_in(data);
        Ok(Admitted::Receiving(self.create_server(peer, header, server, Some(message))))
    }

    /// Creates the RPC of a request that must be confirmed, and asks for that (BAD-5).
    fn hold(
        &mut self,
        peer: PeerId,
        header: &Header,
        data: &Data,
        payload: usize,
        session: u32,
    ) -> Result<RpcKey, DropReason> {
        let limit = self.config.max_unconfirmed_bytes();
        let fits = self.budget.fits_unconfirmed(payload, limit) && self.reserve_unconfirmed();
        if !fits {
            self.peers.forget_stranger(peer);
            return Err(DropReason::TooManyUnconfirmed);
        }
        self.peers[peer].held += 1;
        let server = Server { state: ServerState::Incoming, session, confirmed: false };
        // A stranger gets no memory but for the bytes that it sends.
        let message = MessageIn::new(data.message_length, data.incoming).keeping(self.keep);
        let rpc = self.create_server(peer, header, server, Some(Box::new(message)));
        self.ask_for_confirmation(rpc);
        Ok(rpc)
    }

    /// Creates the RPC of a request. With nothing to come any more, nobody's silence is watched.
    fn create_server(
        &mut self,
        peer: PeerId,
        header: &Header,
        server: Server,
        incoming: Option<Box<MessageIn>>,
    ) -> RpcKey {
        let id = header.sender_id.client_id();
        let watch = incoming.is_some();
        let side = Side::Server(server);
        let rpc = self.create_rpc(peer, id, header.sport, side, incoming, None);
        if watch {
            let now = self.now();
            self.silence.watch(&mut self.rpcs, rpc, now);
        }
        self.metrics.progress.server_requests_started += 1;
        rpc
    }

    /// Asks the client of a held request whether the call lives.
    pub(crate) fn ask_for_confirmation(&mut self, rpc: RpcKey) {
        let now = self.now();
        self.rpcs[rpc].ask(now);
        self.metrics.admission.confirms_sent += 1;
        self.send_flagged(rpc, Body::NeedAck, Flags::CONFIRM);
    }

    /// Tells the client of an unknown request that it will not be served (RPC-13). That is for good: a
    /// duplicate must not be executed later. (Without a session it would have to be confirmed first.)
    ///
    /// AMO-5: a late duplicate of what was executed here is not called "not executed", but dropped. Returns
    /// why the packet is not used.
    fn refuse(
        &mut self,
        from: Source,
        header: &Header,
        refusal: Refusal,
        reason: DropReason,
    ) -> DropReason {
        if self.was_finished(from, header) {
            return DropReason::Finished;
        }
        if self.identity.profile == Profile::Kernel {
            // It has no word for a refusal. RPC_UNKNOWN would bring the request again at once, and again.
            return reason;
        }
        self.metrics.admission.refused += 1;
        if let (Some(peer), Some(fields)) = (from.peer, header.udp())
            && fields.flags.contains(Flags::SESSION)
        {
            let id = header.sender_id.client_id();
            self.peers[peer].serving.finish(fields.incarnation, id);
        }
        self.answer(from.address, header, Body::RpcUnknown, Flags::REFUSED, Some(refusal));
        reason
    }

    /// Whether a packet of a client's present session is about a request that was finished in it.
    pub(crate) fn was_finished(&self, from: Source, header: &Header) -> bool {
        let (Some(peer), Some(fields)) = (from.peer, header.udp()) else { return false };
        let serving = &self.peers[peer].serving;
        fields.flags.contains(Flags::SESSION)
            && serving.is_current(fields.incarnation)
            && serving.is_finished(header.sender_id.client_id())
    }
}
