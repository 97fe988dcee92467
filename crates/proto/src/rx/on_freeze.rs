//! What does a FREEZE do?

use super::Source;
use crate::drop_reason::DropReason;
use crate::peer::PeerId;
use crate::probe::ProbeKind;
use crate::transport::Transport;
use apus_wire::{Flags, Header, Kind, Role};

impl Transport {
    /// WIRE-16: the peer has frozen its time trace and asks for ours (row P-20). The core keeps none: whoever watches
    /// single RPCs is told, and decides.
    pub(super) fn on_freeze(&mut self, from: Source, header: &Header) -> Result<(), DropReason> {
        let peer = from.peer.ok_or(DropReason::UnknownRpc)?;
        if !self.shows_session(peer, header) {
            return Err(DropReason::StaleSession);
        }
        let flags = header.udp().map_or(Flags::NONE, |fields| fields.flags);
        self.notes.add(None, from.address, ProbeKind::Received { kind: Kind::Freeze, flags });
        Ok(())
    }

    /// Whether a packet carries the session that its sender has with us, as client or as server. The kernel profile
    /// knows no sessions: there, everybody on the network is believed.
    fn shows_session(&self, peer: PeerId, header: &Header) -> bool {
        let Some(fields) = header.udp() else { return true };
        let peer = &self.peers[peer];
        fields.flags.contains(Flags::SESSION)
            && match header.sender_id.sender() {
                Role::Client => peer.serving.is_current(fields.incarnation),
                Role::Server => peer.calls.session == Some(fields.incarnation),
            }
    }
}
