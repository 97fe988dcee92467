//! FREEZE: the peer asks for the time trace of this moment.

use super::lookup::Source;
use crate::drop_reason::DropReason;
use crate::peer::{Peer, Peers};
use crate::probe::{Notes, ProbeKind};
use apus_wire::{Flags, Header, Kind, Role};

/// WIRE-16: the peer has frozen its time trace and asks for this endpoint's (HM `homa_plumbing.c` `homa_softirq`). The
/// core keeps none: it notes the packet for the engine, which decides.
pub(super) fn on_freeze(
    peers: &Peers,
    notes: &mut Notes,
    from: Source,
    header: &Header,
) -> Result<(), DropReason> {
    let peer = from.peer.ok_or(DropReason::UnknownRpc)?;
    if !shows_session(&peers[peer], header) {
        return Err(DropReason::StaleSession);
    }
    let flags = header.udp().map_or(Flags::NONE, |fields| fields.flags);
    notes.add(None, from.address, ProbeKind::Received { kind: Kind::Freeze, flags });
    Ok(())
}

/// Whether a packet carries the session that its sender has with this endpoint, as client or as server. The kernel
/// profile has no sessions: every host of the network is believed there.
fn shows_session(peer: &Peer, header: &Header) -> bool {
    let Some(fields) = header.udp() else { return true };
    fields.flags.contains(Flags::SESSION)
        && match header.sender_id.sender() {
            Role::Client => peer.serving.is_current(fields.incarnation),
            Role::Server => peer.calls.session == Some(fields.incarnation),
        }
}
