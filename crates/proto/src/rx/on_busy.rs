//! BUSY: the peer is alive and makes this endpoint wait.

use super::confirm::confirm;
use super::lookup::{Proof, Source, rpc_of};
use crate::drop_reason::DropReason;
use crate::lifecycle::Context;
use crate::rpc::Side;
use apus_wire::{Flags, Header, Role};

/// The peer is alive: this endpoint waits (HM `homa_incoming.c` `homa_dispatch_pkts`). With CONFIRM, a client says that
/// the call which it was asked about is live (requirement AMO-2).
pub(super) fn on_busy(
    cx: &mut Context<'_>,
    from: Source,
    header: &Header,
) -> Result<(), DropReason> {
    let (peer, rpc) = rpc_of(cx.tables, from, header, Proof::NotContradicting)?;
    // An unconfirmed RPC counts its questions until the answer, so that the round-trip time can be read.
    let entry = &cx.tables.rpcs[rpc];
    if entry.may_receive() {
        // Only a RESEND makes a server say BUSY: the time says how long packets wait at the peer (TIME-11).
        let asked = entry.asked;
        if entry.role() == Role::Client && entry.asks == 1 {
            cx.tables.peers[peer].rtt.sample(cx.now, cx.now.since(asked));
        }
        cx.tables.hear_busy(cx.now, peer, rpc);
    }
    let Some(fields) = header.udp().filter(|f| f.flags.contains(Flags::CONFIRM)) else {
        return Ok(());
    };
    match cx.tables.rpcs[rpc].side {
        Side::Server(_) => confirm(cx, rpc, fields.incarnation),
        Side::Client(_) => Err(DropReason::WrongRole),
    }
}
