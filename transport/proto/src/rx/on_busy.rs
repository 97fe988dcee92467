//! BUSY: the peer is alive and makes this endpoint wait.

use super::lookup::{Proof, Source, note_known, rpc_of};
use crate::drop_reason::DropReason;
use crate::lifecycle::Context;
use apus_wire::{Header, Role};

/// The peer is alive: this endpoint waits (HM `homa_incoming.c` `homa_dispatch_pkts`).
pub(super) fn on_busy(
    cx: &mut Context,
    from: Source<'_>,
    header: &Header,
) -> Result<(), DropReason> {
    let (peer, rpc) = rpc_of(&cx.tables, from, header, Proof::Session)?;
    // Only a RESEND makes a server say BUSY: the time says how long packets wait at the peer (TIME-11).
    let entry = &cx.tables.rpcs[rpc];
    let asked = entry.asked;
    if entry.role() == Role::Client {
        note_known(&mut cx.tables.peers[peer], header);
        if entry.asks == 1 {
            cx.tables.peers[peer].rtt.sample(cx.now, cx.now.since(asked));
        }
    }
    cx.tables.hear_busy(cx.now, peer, rpc);
    Ok(())
}
