//! What does a GRANT do?

use super::{Proof, Source};
use crate::drop_reason::DropReason;
use crate::rpc::{ClientStep, ServerStep, Side};
use crate::transport::Transport;
use apus_wire::{Grant, Header};

impl Transport {
    /// GRANT-9: the receiver of our message takes more of it (row P-11). A limit past the message's
    /// end counts as its end; an old limit takes nothing back; the priority counts in any case.
    pub(super) fn on_grant(
        &mut self,
        from: Source,
        header: &Header,
        grant: &Grant,
    ) -> Result<(), DropReason> {
        let (peer, rpc) = self.rpc_of(from, header, Proof::Session)?;
        let now = self.now();
        let entry = &mut self.rpcs[rpc];
        let sensible = match &entry.side {
            Side::Client(client) => client.state.after(ClientStep::Grant).is_some(),
            Side::Server(server) => server.state.after(ServerStep::Grant).is_some(),
        };
        let Some(message) = entry.outgoing.as_mut().filter(|_| sensible) else {
            return Err(DropReason::WrongState);
        };
        message.grant(grant.offset);
        message.scheduled_priority = grant.priority;
        let timely = !message.grant_seen && !message.resent && message.sent() > 0;
        let elapsed = now.since(message.first_sent);
        message.grant_seen = true;
        if timely {
            self.peers[peer].rtt.sample_grant(now, elapsed);
        }
        self.hear(peer, rpc);
        self.outbox.messages.update(&mut self.rpcs, rpc);
        Ok(())
    }
}
