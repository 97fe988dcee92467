//! Sessions agreed upon outside of the protocol, by a handshake that proves more than a challenge
//! does.

use super::challenge::end_life;
use super::on_need_ack::{begin_session, peer_restarted};
use crate::drop_reason::DropReason;
use crate::inbound::Inbound;
use crate::lifecycle::peer_for_client;
use crate::peer::{Address, Birth, Offer, Slot};
use crate::protocol::Protocol;
use crate::tx::Output;
use apus_wire::UdpFields;

/// `session` is now the session of the endpoint at `address` with this one, and of this one with it
/// (SEAL-11).
///
/// As client, calls without a session start in it, and calls of another session end or move as
/// after an offer (AMO-3, AMO-11); `birth` is that of the endpoint at `address`, if it has stated
/// its age. As server, the requests of another session belong to an earlier life of the client
/// (AMO-4).
///
/// # Errors
///
/// A [`DropReason`] if there is no room for the peer.
pub(crate) fn establish_session(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    address: Address,
    session: u64,
    birth: Option<Birth>,
) -> Result<(), DropReason> {
    let peer = match protocol.tables.peers.find(&address) {
        Some(peer) => peer,
        None => peer_for_client(protocol, output, &address)?,
    };
    let offer = Offer { session, claim: None };
    match protocol.tables.peers[peer].calls.session() {
        Some(known) if known == session => {}
        Some(_) => peer_restarted(protocol, inbound, output, peer, offer, birth),
        None => begin_session(protocol, output, peer, offer),
    }
    let serving = &mut protocol.tables.peers[peer].serving;
    if !serving.is_current(session) {
        output.observation.metrics.admission.sessions_begun += 1;
        // It was not offered here, so that no number of a challenge ends with it.
        let claim = UdpFields::claim(session);
        if let Some(displaced) = serving.establish(session, claim, Slot::default()) {
            protocol.tables.peers.end_session(address, displaced, protocol.now);
            end_life(protocol, output, peer, displaced.number);
        }
    }
    Ok(())
}
