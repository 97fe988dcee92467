//! Confirmation: the client of a request has shown its session (requirement AMO-2).

use super::assemble::finish_if_complete;
use crate::drop_reason::DropReason;
use crate::lifecycle::{Context, Ending, end_server};
use crate::peer::{Confirmation, PeerId};
use crate::rpc::{RpcKey, Step};

/// The client of `rpc` has shown session `number`: the request may be executed.
pub(super) fn confirm(cx: &mut Context<'_>, rpc: RpcKey, number: u32) -> Result<(), DropReason> {
    let entry = &mut cx.tables.rpcs[rpc];
    let Some(server) = entry.server() else { return Err(DropReason::WrongRole) };
    if server.session != number {
        return Err(DropReason::StaleSession);
    }
    if server.is_confirmed() {
        return Ok(());
    }
    let peer = entry.peer;
    match cx.tables.peers[peer].serving.confirm(number) {
        Confirmation::Stale => return Err(DropReason::StaleSession),
        confirmation => note_confirmation(cx, peer, confirmation),
    }
    cx.observation.metrics.admission.confirms_received += 1;
    let now = cx.now;
    let entry = &mut cx.tables.rpcs[rpc];
    let asked = entry.asked;
    let once = entry.asks == 1;
    entry.hear(now);
    if once {
        cx.tables.peers[peer].rtt.sample(now, now.since(asked));
    }
    release_confirmed(cx, peer, rpc);
    Ok(())
}

/// A confirmed request becomes an ordinary one, if there is room for it. Otherwise it is given up, and
/// the client learns so when it asks.
fn release_confirmed(cx: &mut Context<'_>, peer: PeerId, rpc: RpcKey) {
    let Some(message) = &cx.tables.rpcs[rpc].incoming else { return };
    let (length, received) = (message.length(), message.received());
    let entry = &mut cx.tables.peers[peer];
    if !cx.inbound.budget.reserve_receive(cx.config, entry, u64::from(length)) {
        cx.observation.metrics.count_drop(DropReason::NoBuffers);
        end_server(cx, rpc, Ending::GivenUp);
        return;
    }
    cx.inbound.budget.release_unconfirmed(u64::from(received));
    entry.held -= 1;
    cx.tables.rpcs[rpc].step(Step::Confirm);
    cx.inbound.granter.data_arrived(&mut cx.tables.rpcs, rpc, received);
    finish_if_complete(cx, rpc);
}

/// If another session has become current, the RPCs of the one before belong to an earlier life of
/// the client, and end.
pub(super) fn note_confirmation(cx: &mut Context<'_>, peer: PeerId, confirmation: Confirmation) {
    let Confirmation::Established { displaced: Some(displaced) } = confirmation else { return };
    cx.observation.metrics.admission.sessions_replaced += 1;
    let orphans = cx.tables.rpcs.iter().filter(|(_, rpc)| {
        rpc.peer == peer && rpc.server().is_some_and(|server| server.session == displaced)
    });
    cx.timers.reaper.orphans(orphans.map(|(rpc, _)| rpc));
}
