//! A session that was agreed upon outside of the protocol, by a handshake that has proved more than a challenge does.

use super::challenge::end_life;
use super::on_need_ack::{begin_session, peer_restarted};
use crate::drop_reason::DropReason;
use crate::lifecycle::Context;
use crate::peer::{Address, Offer, Slot};
use apus_wire::UdpFields;

/// `session` is now the session of the endpoint at `address` with this one, and of this one with it (SEAL-11).
///
/// As client, calls that were in no session begin in it, and those of another one end or move as after an offer (AMO-3). As
/// server, the requests of another session belong to an earlier life of the client (AMO-4).
///
/// # Errors
///
/// There is no room for the peer.
pub(crate) fn establish_session(
    cx: &mut Context,
    address: Address,
    session: u64,
) -> Result<(), DropReason> {
    let peer = match cx.tables.peers.find(&address) {
        Some(peer) => peer,
        None => cx.peer_for_client(address)?,
    };
    let offer = Offer { session, claim: None };
    match cx.tables.peers[peer].calls.session() {
        Some(known) if known == session => {}
        Some(_) => peer_restarted(cx, peer, offer),
        None => begin_session(cx, peer, offer),
    }
    let serving = &mut cx.tables.peers[peer].serving;
    if !serving.is_current(session) {
        cx.observation.metrics.admission.sessions_begun += 1;
        // It was not offered here, so that no number of a challenge ends with it.
        let claim = UdpFields::claim(session);
        if let Some(displaced) = serving.establish(session, claim, Slot::default()) {
            cx.tables.peers.end_session(address, displaced, cx.now);
            end_life(cx, peer, displaced.number);
        }
    }
    Ok(())
}
