//! FREEZE: a request to freeze the time trace.

use super::lookup::{Source, shows_session};
use crate::drop_reason::DropReason;
use crate::peer::Peers;
use crate::probe::{Notes, ProbeKind};
use apus_wire::{Flags, Header, Kind};

/// WIRE-16: the peer has frozen its time trace and requests the same here (HM `homa_plumbing.c`
/// `homa_softirq`). The core keeps no trace: it notes the packet for the engine, which decides.
pub(super) fn on_freeze(
    peers: &Peers,
    notes: &mut Notes,
    from: &Source<'_>,
    header: &Header,
) -> Result<(), DropReason> {
    let peer = from.peer.ok_or(DropReason::UnknownRpc)?;
    if !shows_session(&peers[peer], header) {
        return Err(DropReason::StaleSession);
    }
    let flags = header.udp().map_or(Flags::NONE, |fields| fields.flags);
    notes.add(None, *from.address, ProbeKind::Received { kind: Kind::Freeze, flags });
    Ok(())
}
