//! BUSY: the peer is alive and makes this endpoint wait.

use super::lookup::{Proof, Source, note_known, rpc_of};
use crate::drop_reason::DropReason;
use crate::protocol::Protocol;
use apus_wire::{Header, Role};

/// The peer is alive: this endpoint waits (HM `homa_incoming.c` `homa_dispatch_pkts`).
pub(super) fn on_busy(
    protocol: &mut Protocol,
    from: &Source<'_>,
    header: &Header,
) -> Result<(), DropReason> {
    let (peer, rpc) = rpc_of(&protocol.tables, from, header, Proof::Session)?;
    // A server sends BUSY only in response to a RESEND: the time shows how long packets wait at the
    // peer (TIME-11).
    let entry = &protocol.tables.rpcs[rpc];
    let asked = entry.asked;
    if entry.role() == Role::Client {
        note_known(&mut protocol.tables.peers[peer], header, protocol.now);
        if entry.asks == 1 {
            protocol.tables.peers[peer].rtt.sample(protocol.now, protocol.now.since(asked));
        }
    }
    protocol.tables.hear_busy(protocol.now, peer, rpc);
    Ok(())
}
