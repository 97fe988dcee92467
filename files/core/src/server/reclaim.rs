//! Reclaiming: a client takes the leases of its previous session again.

use crate::store::Store;
use crate::wire::{Errno, Handle, LeaseKind, Response, Version};

use super::access::Access;
use super::effect::CallToken;
use super::fences::end_return;
use super::grants::offer_reclaimed;
use super::latecomers::check_late_claim;
use super::output::Output;

/// Grants leases of a client's previous session, and reports which of its copies are valid.
pub(super) fn reclaim<S: Store>(
    access: &mut Access<S>,
    output: &mut Output,
    session: u64,
    call: CallToken,
    leases: &[(Handle, LeaseKind, Version)],
) {
    if leases.is_empty() {
        end_return(access, session);
    }
    for (handle, _, _) in leases.iter().filter(|(_, kind, _)| *kind == LeaseKind::Exclusive) {
        check_late_claim(access, session, handle.ino);
    }
    let reclaimed = leases.iter().map(|(handle, kind, version)| {
        let ino = handle.ino;
        let attributes = if access.is_valid(session, *handle) {
            access.store.attributes(ino)
        } else {
            Err(Errno::STALE)
        };
        let Ok(attributes) = attributes else { return (LeaseKind::None, false) };
        let (mut client, mut is_fenced) = (None, false);
        if let Some(session) = access.sessions.get_mut(session) {
            // Even without a lease: the client may have the node open.
            session.note(ino);
            (client, is_fenced) = (Some(session.client), session.is_fenced);
        }
        if is_fenced {
            return (LeaseKind::None, false);
        }
        offer_reclaimed(access, session, ino, *kind);
        // During a recall, no new lease (FSSERVE-5), but the session's lease until it answers: the
        // first response may be lost.
        let kind = access.holdings.leases.held(session, ino).min(*kind);
        // A client has the contents of its own last change, even if the response with the version
        // was lost.
        let is_known = attributes.version == *version
            || client.is_some() && access.store.last_changer(ino) == client;
        (kind, kind != LeaseKind::None && is_known)
    });
    let reclaimed = reclaimed.collect();
    output.respond(call, &Response::Reclaimed(reclaimed));
}
