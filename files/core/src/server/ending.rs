//! The end of a session.

use crate::store::Store;
use crate::wire::frame::encode;
use crate::wire::{Callback, Failure};

use super::batches::{commit, refuse_held};
use super::core::Core;
use super::effect::ServerEffect;
use super::fences::abandon;
use super::orphan_care::drop_if_unused;
use super::session::Session;
use super::settings::IDLE_TERMS;

/// Ends a session: frees its leases and locks, and fails its waiting requests. If `is_fenced`, its
/// client is notified.
pub(super) fn end_session<S: Store>(
    core: &mut Core<S>,
    number: u64,
    is_fenced: bool,
) -> Option<Session> {
    core.access.sessions.get(number)?;
    // FSSERVE-6: its appended batches are applied before its leases are free. Its held batches are
    // not.
    refuse_held(core, number, &Failure::SessionEnded);
    commit(core);
    let session = core.access.sessions.remove(number)?;
    abandon(&mut core.access, number, session.client);
    for ticket in core.access.holdings.queue.tickets_of(number) {
        if let Some(waiting) = core.access.holdings.queue.remove(ticket) {
            core.output.fail(waiting.call, Failure::SessionEnded);
        }
    }
    core.access.holdings.recalls.end(number);
    for ino in core.access.holdings.leases.end(number) {
        core.access.holdings.queue.touch(ino);
    }
    core.early_locks.end(&mut core.output, number);
    for call in core.locks.end(number) {
        core.output.fail(call, Failure::SessionEnded);
    }
    for ino in core.orphans.end(number) {
        drop_if_unused(core, ino);
    }
    if is_fenced {
        let message = encode(&Callback::Fence { session: number });
        let callback = core.access.holdings.recalls.draw_token();
        core.output.push(ServerEffect::Call { callback, peer: session.peer, message });
    }
    Some(session)
}

/// Ends sessions of clients that are gone for good.
pub(super) fn end_idle_sessions<S: Store>(core: &mut Core<S>) {
    let idle = core.access.settings.term * IDLE_TERMS;
    while let Some((number, heard)) = core.access.sessions.first_heard()
        && core.access.now >= heard + idle
    {
        if end_session(core, number, true).is_none() {
            return;
        }
    }
}
