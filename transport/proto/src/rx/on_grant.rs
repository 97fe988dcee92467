//! GRANT: the receiver of a message takes more of it.

use super::lookup::{Proof, Source, note_known, rpc_of};
use crate::drop_reason::DropReason;
use crate::rpc::{RpcStep, Tables};
use crate::time::Instant;
use crate::tx::SendQueue;
use apus_wire::{Features, Grant, Header};

/// GRANT-9: raises the limit of an outgoing message (HM `homa_incoming.c` `homa_grant_pkt`). A
/// limit past the message's end counts as its end; an old limit takes nothing back; the priority
/// counts in any case.
pub(super) fn on_grant(
    now: Instant,
    tables: &mut Tables,
    queue: &mut SendQueue,
    from: &Source<'_>,
    header: &Header,
    grant: &Grant,
) -> Result<(), DropReason> {
    let (peer, rpc) = rpc_of(tables, from, header, Proof::Session)?;
    note_known(&mut tables.peers[peer], header, now);
    let entry = &mut tables.rpcs[rpc];
    let possible = entry.step(RpcStep::Grant);
    let Some(message) = entry.outgoing.as_mut().filter(|_| possible) else {
        return Err(DropReason::WrongState);
    };
    message.grant(grant.offset);
    message.note_progress(now);
    message.scheduled_priority = grant.priority;
    message.is_sprayable = header.states(Features::SPRAYABLE);
    let timely = !message.grant_seen && !message.resent && message.sent() > 0;
    let elapsed = now.since(message.first_sent);
    tables.peers[peer].unscheduled.release(message.unread());
    message.grant_seen = true;
    if timely {
        tables.peers[peer].rtt.sample_grant(now, elapsed);
    }
    tables.hear(now, peer, rpc);
    queue.update(&mut tables.rpcs, rpc);
    queue.announce(&tables.rpcs, rpc);
    Ok(())
}
