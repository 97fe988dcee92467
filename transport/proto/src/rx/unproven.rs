//! Senders that have shown no session: whether they are answered (BAD-10).

use super::lookup::{Source, shows_session};
use crate::drop_reason::DropReason;
use crate::protocol::Protocol;
use apus_wire::Header;

/// Counts an answer to the packet with this header.
///
/// Its sender is proven if the packet carries the session that it has with this endpoint: its
/// answer leaves.
///
/// # Errors
///
/// [`DropReason::Unanswered`]: the answer is one too many, and must not leave.
pub(super) fn count_answer(
    protocol: &mut Protocol,
    from: &Source<'_>,
    header: &Header,
) -> Result<(), DropReason> {
    let peers = &mut protocol.tables.peers;
    if from.peer.is_some_and(|peer| shows_session(&peers[peer], header)) {
        return Ok(());
    }
    let is_behind = protocol.timers.arrears.is_behind(protocol.now);
    let per_ms = protocol.config.unproven_answers_per_ms();
    let leaves = peers.unproven.take(*from.address, protocol.now, is_behind, per_ms);
    if leaves { Ok(()) } else { Err(DropReason::Unanswered) }
}
