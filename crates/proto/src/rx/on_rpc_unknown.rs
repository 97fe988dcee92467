//! What does an RPC_UNKNOWN do?

use super::{Proof, Source};
use crate::drop_reason::DropReason;
use crate::error::{Execution, FailureKind, RpcError};
use crate::probe::ProbeKind;
use crate::rpc::{ClientStep, RpcKey, Side};
use crate::transport::{Ending, Transport};
use apus_wire::{Flags, Header, Profile, Refusal};

impl Transport {
    /// The peer does not know the RPC that we asked about (row P-14, TIME-8), or will not serve it.
    pub(super) fn on_rpc_unknown(
        &mut self,
        from: Source,
        header: &Header,
    ) -> Result<(), DropReason> {
        let (peer, rpc) = self.rpc_of(from, header, Proof::NotContradicting)?;
        let flags = header.udp().map_or(Flags::NONE, |fields| fields.flags);
        match &self.rpcs[rpc].side {
            Side::Server(_) => {
                self.metrics.recovery.server_rpcs_unknown += 1;
                self.end_server(rpc, Ending::Disowned);
                Ok(())
            }
            Side::Client(_) if flags.contains(Flags::REFUSED) => {
                self.refused(rpc, Refusal::from_wire(header.sequence), flags);
                Ok(())
            }
            Side::Client(client) if flags.contains(Flags::FINISHED) => {
                // Only the session in which it may have been executed can know that.
                let bound = flags.contains(Flags::SESSION) && client.session.is_some();
                if !bound {
                    return Err(DropReason::StaleSession);
                }
                self.fail_client(rpc, FailureKind::ResponseLost);
                Ok(())
            }
            Side::Client(client) => {
                client.state.after(ClientStep::Unknown).ok_or(DropReason::WrongState)?;
                self.restart(rpc);
                if self.identity.profile == Profile::Udp {
                    // Ours: a server that answers is not silent, even if it has to drop requests for
                    // lack of room. The kernel counts this as silence (row P-21).
                    self.hear(peer, rpc);
                }
                Ok(())
            }
        }
    }

    /// The server does not serve the call. It speaks for its present life only: that a call was not
    /// executed can be said of one that was never confirmed, or by the session that it is bound to.
    fn refused(&mut self, rpc: RpcKey, refusal: Refusal, flags: Flags) {
        let can_tell = self.rpcs[rpc].client().is_some_and(|client| {
            let same_life = client.session.is_none() || flags.contains(Flags::SESSION);
            same_life && !client.moved
        });
        let outcome = if can_tell && refusal.is_before_execution() {
            Execution::NotExecuted
        } else {
            Execution::Unknown
        };
        self.fail_client_with(
            rpc,
            RpcError { kind: FailureKind::Refused(refusal), execution: outcome },
        );
    }

    /// Sends the request again from its start, as far as it was sent, at its unscheduled priority.
    fn restart(&mut self, rpc: RpcKey) {
        let highest = self.highest_priority();
        let entry = &mut self.rpcs[rpc];
        let cutoffs = &self.peers[entry.peer].cutoffs;
        let Some(request) = &mut entry.outgoing else { return };
        let priority = cutoffs.level(request.length(), highest);
        request.request_resend(0..request.sent(), priority);
        self.metrics.recovery.rpc_restarts += 1;
        self.note(rpc, ProbeKind::Restart);
        self.queue_resend(rpc);
    }
}
