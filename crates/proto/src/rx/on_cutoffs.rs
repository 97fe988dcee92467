//! CUTOFFS: the priorities that the peer wants.

use super::lookup::Source;
use crate::drop_reason::DropReason;
use crate::peer::Peers;
use apus_wire::Cutoffs;

/// The peer wants these priorities for unscheduled packets from now on
/// (HM `homa_incoming.c` `homa_cutoffs_pkt`).
pub(super) fn on_cutoffs(
    peers: &mut Peers,
    from: Source,
    cutoffs: &Cutoffs,
) -> Result<(), DropReason> {
    let peer = from.peer.ok_or(DropReason::UnknownRpc)?;
    peers[peer].cutoffs.update(cutoffs);
    Ok(())
}
