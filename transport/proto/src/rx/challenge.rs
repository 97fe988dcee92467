//! The session challenge: the proof required of a request before any state of it is kept (AMO-1).

use super::lookup::Source;
use crate::drop_reason::DropReason;
use crate::lifecycle::peer_for_client;
use crate::peer::{PeerId, Slot, Standing};
use crate::protocol::Protocol;
use crate::tx::Output;
use apus_wire::{Flags, UdpFields};

/// The proof of its session in a request (udp profile).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// The current session of its client.
    Current,
    /// A session that its client was offered, and that is not current yet.
    Offered(Slot),
    /// No valid session: its client is offered this one.
    Nothing {
        /// The session.
        offer: u64,
    },
}

/// Returns the proof in request `id` with these fields.
///
/// A client that has lost the session is offered it again even for a request that was finished in
/// it: only there can it obtain the result (AMO-5). Otherwise it would ask and send without end.
///
/// # Errors
///
/// [`DropReason::Finished`] if it is a late duplicate of a request of the current session: not sent
/// again by its client (`retransmit`).
pub(super) fn shown(
    protocol: &Protocol,
    from: &Source<'_>,
    id: u64,
    fields: &UdpFields,
    retransmit: bool,
) -> Result<Shown, DropReason> {
    let peers = &protocol.tables.peers;
    let serving = peers.serving_of(*from.address, from.peer);
    let is_finished = || serving.is_some_and(|serving| serving.is_finished(id));
    match serving.map_or(Standing::Unknown, |serving| serving.standing(fields)) {
        Standing::Current => Ok(Shown::Current),
        Standing::Before { .. } if !retransmit && is_finished() => Err(DropReason::Finished),
        Standing::Before { session } => Ok(Shown::Nothing { offer: session }),
        Standing::Unknown => {
            let challenges = &peers.challenges;
            let answers = Flags::SESSION.with(Flags::CONFIRM);
            let (claim, session) = (fields.low_water, fields.incarnation);
            if fields.flags.contains(answers)
                && let Some(slot) = challenges.accept(*from.address, claim, session, protocol.now)
            {
                return Ok(Shown::Offered(slot));
            }
            let claim = UdpFields::claim(fields.incarnation);
            Ok(Shown::Nothing { offer: challenges.offer(*from.address, claim, protocol.now) })
        }
    }
}

/// Returns the peer of a client that has proved its address, created or woken if necessary. The
/// session that the request has shown is now current.
///
/// # Errors
///
/// [`DropReason::TooManyPeers`] or [`DropReason::HostPeers`] if there is no room for it.
pub(super) fn enter(
    protocol: &mut Protocol,
    output: &mut Output,
    from: &Source<'_>,
    fields: &UdpFields,
    shown: Shown,
) -> Result<PeerId, DropReason> {
    let peer = match from.peer {
        Some(peer) => peer,
        None => peer_for_client(protocol, output, from.address)?,
    };
    if let Shown::Offered(slot) = shown {
        output.observation.metrics.admission.sessions_begun += 1;
        let (session, claim) = (fields.incarnation, fields.low_water);
        let displaced = protocol.tables.peers[peer].serving.establish(session, claim, slot);
        if let Some(displaced) = displaced {
            protocol.tables.peers.end_session(*from.address, displaced, protocol.now);
            end_life(protocol, output, peer, displaced.number);
        }
    }
    Ok(peer)
}

/// Another session has become current than session `number`, whose requests belong to an earlier
/// life of the client, and end (AMO-4).
pub(super) fn end_life(protocol: &mut Protocol, output: &mut Output, peer: PeerId, number: u64) {
    output.observation.metrics.admission.sessions_replaced += 1;
    let orphans = protocol
        .tables
        .rpcs_with(peer)
        .filter(|(_, entry)| entry.server().is_some_and(|server| server.session == number));
    protocol.timers.reaper.orphans(orphans.map(|(rpc, _)| rpc));
}
