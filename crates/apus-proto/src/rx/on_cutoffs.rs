//! What does a CUTOFFS packet do?

use crate::drop_reason::DropReason;
use crate::peer::Address;
use crate::transport::Transport;
use apus_wire::Cutoffs;

impl Transport {
    /// The peer wants these priorities for unscheduled packets from now on (row P-16).
    pub(super) fn on_cutoffs(
        &mut self,
        from: Address,
        cutoffs: &Cutoffs,
    ) -> Result<(), DropReason> {
        let peer = self.peers.find(from).ok_or(DropReason::UnknownRpc)?;
        self.peers[peer].cutoffs.update(cutoffs);
        Ok(())
    }
}
