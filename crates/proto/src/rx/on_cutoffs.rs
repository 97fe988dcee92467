//! What does a CUTOFFS packet do?

use super::Source;
use crate::drop_reason::DropReason;
use crate::transport::Transport;
use apus_wire::Cutoffs;

impl Transport {
    /// The peer wants these priorities for unscheduled packets from now on (row P-16).
    pub(super) fn on_cutoffs(&mut self, from: Source, cutoffs: &Cutoffs) -> Result<(), DropReason> {
        let peer = from.peer.ok_or(DropReason::UnknownRpc)?;
        self.peers[peer].cutoffs.update(cutoffs);
        Ok(())
    }
}
