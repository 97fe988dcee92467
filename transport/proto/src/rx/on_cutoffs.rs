//! CUTOFFS: the priorities that the peer requests.

use super::lookup::{Source, shows_session};
use crate::drop_reason::DropReason;
use crate::peer::Peers;
use apus_wire::{Cutoffs, Header};

/// Applies the peer's priorities for unscheduled packets, and its room for them (WIRE-28) (HM
/// `homa_incoming.c` `homa_cutoffs_pkt`). PRIO-14: only a packet with the session may change them.
pub(super) fn on_cutoffs(
    peers: &mut Peers,
    from: &Source<'_>,
    header: &Header,
    cutoffs: &Cutoffs,
) -> Result<(), DropReason> {
    let peer = from.peer.ok_or(DropReason::UnknownRpc)?;
    if !shows_session(&peers[peer], header) {
        return Err(DropReason::StaleSession);
    }
    peers[peer].cutoffs.update(cutoffs, header.profile());
    peers[peer].unscheduled.set_room(header.sequence);
    peers[peer].reads_shared_datagrams = header.sequence > 0;
    Ok(())
}
