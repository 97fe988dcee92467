//! The lives of peers and RPCs: how peers are made, and how RPCs end.

mod ending;
mod stalled;

pub(crate) use ending::{
    Ending, complete_client, end_server, fail_and_disown, fail_client, fail_client_with,
    refuse_live, remove_client,
};
pub(crate) use stalled::end_stalled_response;

use crate::drop_reason::DropReason;
use crate::event::Event;
use crate::peer::{Address, PeerId};
use crate::protocol::Protocol;
use crate::tx::Output;

/// Returns the peer at `address`, an unknown client. Creates it if there is room for it, and room
/// among the peers of its host.
///
/// # Errors
///
/// [`DropReason::HostPeers`] or [`DropReason::TooManyPeers`].
pub(crate) fn peer_for_client(
    protocol: &mut Protocol,
    output: &mut Output,
    address: &Address,
) -> Result<PeerId, DropReason> {
    if !protocol.tables.peers.make_room_in_host(*address, protocol.now) {
        return Err(DropReason::HostPeers);
    }
    peer_for(protocol, output, address).ok_or(DropReason::TooManyPeers)
}

/// Returns the peer at `address`, created if necessary; `None` if there are too many peers.
#[cold]
pub(crate) fn peer_for(
    protocol: &mut Protocol,
    output: &mut Output,
    address: &Address,
) -> Option<PeerId> {
    let (peer, new) = protocol.tables.peers.find_or_insert(*address, protocol.now)?;
    if new {
        output.observation.events.push_back(Event::NewPeer(*address));
    }
    Some(peer)
}
