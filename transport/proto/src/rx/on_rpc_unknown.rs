//! RPC_UNKNOWN: the peer does not know an RPC, or will not serve it.

use super::lookup::{Proof, Source, rpc_of};
use crate::drop_reason::DropReason;
use crate::error::{Execution, FailureKind, RpcError};
use crate::lifecycle::{Context, Ending, end_server, fail_client, fail_client_with};
use crate::probe::ProbeKind;
use crate::rpc::{Binding, Rpc, RpcKey, Side, Step};
use apus_wire::{Features, Flags, Header, Profile, Refusal};

/// The peer does not know the RPC that it was asked about (HM `homa_incoming.c` `homa_rpc_unknown_pkt`, TIME-8), or
/// will not serve it.
pub(super) fn on_rpc_unknown(
    cx: &mut Context,
    from: Source<'_>,
    header: &Header,
) -> Result<(), DropReason> {
    let (peer, rpc) = rpc_of(&cx.tables, from, header, Proof::SessionIfAny)?;
    let flags = header.udp().map_or(Flags::NONE, |fields| fields.flags);
    let entry = &mut cx.tables.rpcs[rpc];
    match &entry.side {
        Side::Server(_) => {
            cx.observation.metrics.recovery.server_rpcs_unknown += 1;
            end_server(cx, rpc, Ending::Discarded);
            if cx.outbound.identity.profile == Profile::Udp {
                let interval = cx.timers.resend_interval.least(cx.config.resend_interval_usecs());
                cx.tables.peers[peer].disclaim(cx.now, interval);
            }
            Ok(())
        }
        Side::Client(_) if flags.contains(Flags::REFUSED) => {
            let refusal = Refusal::from_wire(header.sequence);
            let before = refusal.is_before_execution();
            refused(cx, rpc, FailureKind::Refused(refusal), before, flags);
            Ok(())
        }
        Side::Client(client) if flags.contains(Flags::FINISHED) => {
            // Only the session in which it may have been executed can know that.
            let bound = flags.contains(Flags::SESSION) && client.binding != Binding::None;
            if !bound {
                return Err(DropReason::StaleSession);
            }
            fail_client(cx, rpc, FailureKind::ResponseLost);
            Ok(())
        }
        Side::Client(_) if is_empty_request(entry) && !header.states(Features::EMPTY_MESSAGES) => {
            // WIRE-32: the server has dropped the request, and would drop it again forever.
            refused(cx, rpc, FailureKind::PeerTooOld, true, flags);
            Ok(())
        }
        Side::Client(_) => {
            if !entry.step(Step::Unknown) {
                return Err(DropReason::WrongState);
            }
            restart(cx, rpc);
            if cx.outbound.identity.profile == Profile::Udp {
                // Chosen by us: a server that answers is not silent, even if it has to drop requests for
                // lack of room. The kernel counts this as silence (HM `homa_incoming.c` `homa_dispatch_pkts`).
                cx.tables.hear(cx.now, peer, rpc);
            }
            Ok(())
        }
    }
}

/// Whether the call has an empty request whose response has not begun.
fn is_empty_request(entry: &Rpc) -> bool {
    entry.outgoing.as_ref().is_some_and(|request| request.length() == 0)
}

/// The server does not serve the call; `before` says that it decides so before it executes a request. It speaks for its
/// present life only: that a call was not executed can be said of one that was never confirmed, or by the session that
/// it is bound to.
fn refused(cx: &mut Context, rpc: RpcKey, kind: FailureKind, before: bool, flags: Flags) {
    let can_tell = cx.tables.rpcs[rpc].client().is_some_and(|client| {
        let same_life = client.binding == Binding::None || flags.contains(Flags::SESSION);
        same_life && !client.binding.is_moved()
    });
    let outcome = if can_tell && before { Execution::NotExecuted } else { Execution::Unknown };
    fail_client_with(cx, rpc, RpcError { kind, execution: outcome });
}

/// Sends the request again from its start, as far as it was sent, at its unscheduled priority. Does nothing if it has
/// left so lately that it had not arrived when the server said that it does not know it.
fn restart(cx: &mut Context, rpc: RpcKey) {
    let (now, in_flight) = (cx.now, cx.timers.in_flight(&cx.config, cx.now));
    let highest = cx.config.highest_priority();
    let entry = &mut cx.tables.rpcs[rpc];
    let peer = &cx.tables.peers[entry.peer];
    let Some(request) = &mut entry.outgoing else { return };
    let priority = peer.cutoffs.level(request.length(), highest);
    let on_its_way = |sent| in_flight.covers(&peer.rtt, now.since(sent));
    if !request.request_resend(0..request.sent(), priority, on_its_way) {
        return;
    }
    cx.observation.metrics.recovery.rpc_restarts += 1;
    cx.observation.note(&cx.tables, rpc, ProbeKind::Restart);
    cx.sender().queue_resend(rpc);
}
