//! RPC_UNKNOWN: the peer does not have an RPC, or will not serve it.

use super::lookup::{Proof, Source, rpc_of};
use super::send_again::send_again;
use crate::drop_reason::DropReason;
use crate::error::{Execution, FailureKind, RpcError};
use crate::inbound::Inbound;
use crate::lifecycle::{Ending, end_server, fail_client, fail_client_with};
use crate::probe::ProbeKind;
use crate::protocol::Protocol;
use crate::rpc::{Binding, Rpc, RpcKey, RpcStep, Side};
use crate::tx::Output;
use apus_wire::{Features, Flags, Header, Profile, Refusal};

/// Handles a peer that does not have the RPC (HM `homa_incoming.c` `homa_rpc_unknown_pkt`, TIME-8),
/// or will not serve it.
pub(super) fn on_rpc_unknown(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    from: &Source<'_>,
    header: &Header,
) -> Result<(), DropReason> {
    let (peer, rpc) = rpc_of(&protocol.tables, from, header, Proof::SessionIfAny)?;
    let flags = header.udp().map_or(Flags::NONE, |fields| fields.flags);
    let entry = &mut protocol.tables.rpcs[rpc];
    match &entry.side {
        Side::Server(_) => {
            output.observation.metrics.recovery.server_rpcs_unknown += 1;
            end_server(protocol, inbound, output, rpc, Ending::Discarded);
            if output.outbound.identity.profile == Profile::Udp {
                let interval =
                    protocol.timers.resend_interval.least(protocol.config.resend_interval_usecs());
                protocol.tables.peers[peer].disclaim(protocol.now, interval);
            }
            Ok(())
        }
        Side::Client(_) if flags.contains(Flags::REFUSED) => {
            let refusal = Refusal::from_wire(header.sequence);
            let (kind, stated) = (FailureKind::Refused(refusal), Execution::stated_by(refusal));
            refused(protocol, inbound, output, rpc, kind, stated, flags);
            Ok(())
        }
        Side::Client(client) if flags.contains(Flags::FINISHED) => {
            // Only the session that may have executed it can state that.
            let bound = flags.contains(Flags::SESSION) && client.binding != Binding::None;
            if !bound {
                return Err(DropReason::StaleSession);
            }
            fail_client(protocol, inbound, output, rpc, FailureKind::ResponseLost);
            Ok(())
        }
        Side::Client(_) if is_empty_request(entry) && !header.states(Features::EMPTY_MESSAGES) => {
            // WIRE-32: the server has dropped the request, and would drop it again forever.
            let (kind, stated) = (FailureKind::PeerTooOld, Execution::NotExecuted);
            refused(protocol, inbound, output, rpc, kind, stated, flags);
            Ok(())
        }
        Side::Client(_) => {
            if !entry.step(RpcStep::Unknown) {
                return Err(DropReason::WrongState);
            }
            restart(protocol, output, rpc);
            if output.outbound.identity.profile == Profile::Udp {
                // Chosen by us: a server that answers is not silent, even if it has to drop
                // requests for lack of room. The kernel counts this as silence (HM
                // `homa_incoming.c` `homa_dispatch_pkts`).
                protocol.tables.hear(protocol.now, peer, rpc);
            }
            Ok(())
        }
    }
}

/// Whether the call has an empty request whose response has not started.
fn is_empty_request(entry: &Rpc) -> bool {
    entry.outgoing.as_ref().is_some_and(|request| request.length() == 0)
}

/// Fails a call that the server does not serve; `stated` is the execution that its reason implies.
/// The server's statement covers its present life only: a call is certainly not executed if it was
/// never confirmed, or if the session it is bound to states so.
fn refused(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
    kind: FailureKind,
    stated: Execution,
    flags: Flags,
) {
    let can_tell = protocol.tables.rpcs[rpc].client().is_some_and(|client| {
        let is_bound = client.binding != Binding::None;
        let same_life = match stated {
            // Without a session nothing was executed.
            Execution::NotExecuted => !is_bound || flags.contains(Flags::SESSION),
            Execution::Executed | Execution::Unknown => is_bound && flags.contains(Flags::SESSION),
        };
        same_life && !client.binding.is_moved()
    });
    let outcome = if can_tell { stated } else { Execution::Unknown };
    fail_client_with(protocol, inbound, output, rpc, RpcError { kind, execution: outcome });
}

/// Sends the sent part of the request again, at its unscheduled priority. Does nothing if it was
/// sent so recently that it had not arrived when the server answered.
fn restart(protocol: &mut Protocol, output: &mut Output, rpc: RpcKey) {
    let in_flight = protocol.timers.in_flight(&protocol.config, protocol.now);
    let highest = protocol.config.highest_priority();
    let entry = &protocol.tables.rpcs[rpc];
    let Some(request) = &entry.outgoing else { return };
    let level = protocol.tables.peers[entry.peer].cutoffs.level(request.length(), highest);
    let sent = 0..request.sent();
    if !send_again(protocol, output, rpc, sent, level, in_flight) {
        return;
    }
    output.observation.metrics.recovery.rpc_restarts += 1;
    output.observation.note(&protocol.tables, rpc, ProbeKind::Restart);
}
