//! What does a piece of a request do?

use super::Source;
use crate::drop_reason::DropReason;
use crate::message::Arrived;
use crate::probe::ProbeKind;
use crate::rpc::{RpcKey, Server, ServerState, ServerStep, Side};
use crate::transport::{Admitted, Event, Transport};
use apus_wire::{Data, Flags, Header};

impl Transport {
    pub(super) fn on_request(
        &mut self,
        from: Source,
        header: &Header,
        data: &Data,
        payload: &[u8],
    ) -> Result<(), DropReason> {
        let rpc = match self.find_rpc(from, header) {
            None => match self.admit(from, header, data, payload)? {
                Admitted::Served => return Ok(()),
                Admitted::Receiving(rpc) => rpc,
            },
            Some((peer, rpc)) => {
                if let Some(fields) = header.udp()
                    && fields.flags.contains(Flags::SESSION)
                {
                    self.confirm(rpc, fields.incarnation)?;
                    let id = header.sender_id.client_id();
                    self.peers[peer].serving.note_low_water(id, fields);
                }
                rpc
            }
        };
        if self.rpcs.get(rpc).is_none() {
            // It was confirmed, and then there was no room for it.
            return Err(DropReason::NoBuffers);
        }
        self.add_data(rpc, data, payload)
    }

    /// A request that came in several packets, or had to be confirmed, is complete.
    pub(super) fn complete_request(&mut self, rpc: RpcKey, request: Arrived) {
        self.silence.forget(&mut self.rpcs, rpc);
        if let Side::Server(server) = &mut self.rpcs[rpc].side
            && let Some(state) = server.state.after(ServerStep::RequestComplete)
        {
            server.state = state;
        }
        self.deliver_request(rpc, request);
    }

    /// The application gets the request (RPC-4). From now on until its reply nobody is waited for (row
    /// T-2).
    #[inline]
    pub(crate) fn deliver_request(&mut self, rpc: RpcKey, request: Arrived) {
        let entry = &self.rpcs[rpc];
        debug_assert!(
            matches!(
                entry.side,
                Side::Server(Server { confirmed: true, state: ServerState::InService, .. })
            ),
            "S1: only confirmed requests are executed"
        );
        let from = self.peers[entry.peer].address;
        self.note_selected(rpc, ProbeKind::Complete { rpc, length: request.length });
        self.record_message(&request);
        self.metrics.progress.server_requests_done += 1;
        self.metrics.progress.server_request_bytes_done += u64::from(request.length);
        self.events.push_back(Event::Request { rpc, from, payload: request.payload });
    }
}
