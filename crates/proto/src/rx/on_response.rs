//! What does a piece of a response do?

use super::{Proof, Source};
use crate::drop_reason::DropReason;
use crate::error::FailureKind;
use crate::peer::PeerId;
use crate::rpc::{ClientStep, RpcKey, Side};
use crate::transport::Transport;
use apus_wire::{Data, Header, Profile, Role};

impl Transport {
    pub(super) fn on_response(
        &mut self,
        from: Source,
        header: &Header,
        data: &Data,
        payload: &[u8],
    ) -> Result<(), DropReason> {
        let (peer, rpc) = match self.rpc_of(from, header, Proof::Session) {
            Ok(found) => found,
            Err(reason) => {
                if self.identity.profile == Profile::Kernel && data.incoming < data.message_length {
                    // RPC-5: the call is over, and its server waits for grants: it never gives up by itself.
                    self.answer_with_acks(from, header);
                }
                return Err(reason);
            }
        };
        if self.rpcs[rpc].incoming.is_none() {
            let length = u64::from(data.message_length);
            if length > self.config.max_message() {
                self.begin_response(peer, rpc);
                let length = data.message_length;
                self.fail_and_disown(rpc, FailureKind::ResponseTooLarge { length });
                return Err(DropReason::TooLarge);
            }
            if !self.reserve_receive(peer, length) {
                // The server lives; we will ask again when there may be room.
                self.hear(peer, rpc);
                self.rpcs[rpc].no_room = true;
                return Err(DropReason::NoBuffers);
            }
            self.begin_response(peer, rpc);
            self.rpcs[rpc].no_room = false;
            if let Some(response) = self.message_in_one_packet(peer, data, payload) {
                self.complete_client(rpc, response);
                return Ok(());
            }
            self.rpcs[rpc].incoming = Some(self.message_in(data));
        }
        self.add_data(rpc, data, payload)
    }

    /// The server has the whole request: its bytes are not needed any more.
    fn begin_response(&mut self, peer: PeerId, rpc: RpcKey) {
        let now = self.now();
        let entry = &mut self.rpcs[rpc];
        self.outbox.messages.remove(rpc, entry);
        if let Side::Client(client) = &mut entry.side
            && let Some(state) = client.state.after(ClientStep::ResponseBegins)
        {
            client.state = state;
        }
        let Some(request) = entry.outgoing.take() else { return };
        if !request.resent {
            let elapsed = now.since(request.last_sent);
            self.peers[peer].rtt.sample_upper_bound(now, elapsed);
        }
        self.release_send(peer, Role::Client, u64::from(request.length()));
    }
}
