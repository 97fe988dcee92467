//! What does a RESEND do?

use super::{Proof, Source, our_role};
use crate::drop_reason::DropReason;
use crate::message::MessageOut;
use crate::rpc::{ClientStep, RpcKey, ServerStep, Side};
use crate::transport::Transport;
use apus_wire::{Body, Flags, Header, Profile, Resend, Role};

impl Transport {
    /// The receiver of our message lacks bytes of it (row P-13, TIME-7).
    pub(super) fn on_resend(
        &mut self,
        from: Source,
        header: &Header,
        resend: &Resend,
    ) -> Result<(), DropReason> {
        let Some((peer, rpc)) = self.find_rpc(from, header) else {
            self.answer_unknown(from, header);
            return Err(DropReason::UnknownRpc);
        };
        let proof = match our_role(header) {
            // A server asks for a request only after it has been confirmed.
            Role::Client => Proof::Session,
            // A client may ask for its response before it has learnt of a session.
            Role::Server => Proof::NotContradicting,
        };
        self.rpc_of(from, header, proof)?;
        let entry = &self.rpcs[rpc];
        let has_message = match &entry.side {
            Side::Client(client) => client.state.after(ClientStep::Resend).is_some(),
            Side::Server(server) => server.state.after(ServerStep::Resend).is_some(),
        };
        if !has_message {
            // Either the response does not exist yet, or the request has arrived long ago.
            self.send_control(rpc, Body::Busy);
            self.repeat_question(rpc);
            return Ok(());
        }
        if entry.role() == Role::Server {
            // The client lives and wants the response: no reason to ask it whether it does.
            self.hear(peer, rpc);
        }
        self.resend_range(rpc, resend);
        Ok(())
    }

    /// Queues what a RESEND asks for, as far as it has been sent once (O3, BAD-7).
    ///
    /// It goes at the level that an unscheduled message of as many bytes would have, if the RESEND asks for a
    /// higher one. Ours: RESENDs ask for the highest (row P-12), and where a queue was taken for a loss, tens
    /// of kilobytes that nobody misses would go before everybody's short messages.
    fn resend_range(&mut self, rpc: RpcKey, resend: &Resend) {
        let highest = self.highest_priority();
        let entry = &mut self.rpcs[rpc];
        let cutoffs = &self.peers[entry.peer].cutoffs;
        let Some(message) = &mut entry.outgoing else { return };
        let mut end = message.sent();
        if !resend.is_everything() {
            end = resend.end().min(message.length());
            // Whoever asks for bytes has granted them: the GRANT was lost.
            message.grant(end);
        }
        let nothing_sent = resend.offset >= message.sent();
        let level = cutoffs.level(end.saturating_sub(resend.offset), highest);
        let asked = if resend.brief { level } else { resend.priority };
        message.request_resend(resend.offset..end, asked.min(level));
        self.queue_resend(rpc);
        self.outbox.messages.update(&mut self.rpcs, rpc);
        if nothing_sent {
            self.send_control(rpc, Body::Busy);
        }
    }

    /// Puts `rpc` into the queue of retransmissions if its message has any.
    pub(super) fn queue_resend(&mut self, rpc: RpcKey) {
        let entry = &mut self.rpcs[rpc];
        let wanted = entry.outgoing.as_ref().is_some_and(MessageOut::has_resend);
        if wanted && !entry.resend_queued {
            entry.resend_queued = true;
            self.outbox.resends.push_back(rpc);
        }
    }

    /// The client of a held request asks for the response: our question was lost, or crossed its
    /// packet. It is repeated at once, but not more often than it is asked.
    fn repeat_question(&mut self, rpc: RpcKey) {
        let held = self.rpcs[rpc].server().is_some_and(|server| !server.confirmed);
        if held {
            self.ask_for_confirmation(rpc);
        }
    }

    /// The RPC of a RESEND is not known: say so, and whether it was finished (rows P-13, P-14).
    ///
    /// The kernel profile cannot say that it was finished. Ours says nothing then: a client that hears
    /// RPC_UNKNOWN sends its request again, for ever, and one that hears nothing gives up. As long as it asks, its host
    /// is not forgotten: with it would go what is known of the request, and it would be executed again (AMO-7).
    ///
    /// A request that was dropped for lack of room is not known, either. BUSY would spare its bytes (a module that is
    /// short of buffers says it, because it keeps the RPC and asks by itself when it has some), but BUSY counts as life:
    /// thousands of calls would wait for a few places, asking in turn, and none would ever end in time (TIME-4).
    fn answer_unknown(&mut self, from: Source, header: &Header) {
        let id = header.sender_id.client_id();
        if self.identity.profile == Profile::Kernel
            && our_role(header) == Role::Server
            && let Some(peer) = from.peer
            && self.peers[peer].serving.is_finished(id)
        {
            self.peers[peer].last_used = self.now();
            return;
        }
        let finished = our_role(header) == Role::Server && self.was_finished(from, header);
        let flags = if finished { Flags::FINISHED } else { Flags::NONE };
        self.answer(from.address, header, Body::RpcUnknown, flags, None);
    }
}
