//! Requests that need leases: each is served, or waits for its turn.

use crate::store::Store;
use crate::wire::{Errno, Handle, LeaseKind, Response, SessionRequest};

use super::access::Access;
use super::attempt::Attempt;
use super::batches::commit_all;
use super::core::Core;
use super::effect::CallToken;
use super::ending::end_session;
use super::grants::lease;
use super::leases::is_conflict;
use super::lists::list_tree;
use super::permissions::check_xattr;
use super::queue::Waiting;
use super::reads::{look_up, read, read_node};

/// Serves a request that needs leases, now or later.
pub(super) fn serve<S: Store>(
    core: &mut Core<S>,
    session: u64,
    call: CallToken,
    request: SessionRequest,
) {
    let ticket = core.access.holdings.queue.draw_ticket();
    match attempt(&mut core.access, ticket, session, &request) {
        // The response may depend on durable state (FSSERVE-15).
        _ if core.access.is_broken => core.output.fail_errno(call, Errno::IO),
        Attempt::Done(header, payload) => core.output.respond_with(call, header, payload),
        Attempt::Blocked(needs) if core.access.holdings.queue.has_room(session, needs.len()) => {
            core.access.holdings.queue.insert(ticket, Waiting { session, call, request, needs });
            recall_for(core, ticket);
        }
        Attempt::Blocked(_) => core.output.fail_errno(call, Errno::AGAIN),
    }
}

/// Attempts a waiting request again.
pub(super) fn retry<S: Store>(core: &mut Core<S>, ticket: u64) {
    let Some(waiting) = core.access.holdings.queue.get(ticket) else { return };
    let (session, request) = (waiting.session, waiting.request.clone());
    match attempt(&mut core.access, ticket, session, &request) {
        _ if core.access.is_broken => {
            if let Some(waiting) = core.access.holdings.queue.remove(ticket) {
                core.output.fail_errno(waiting.call, Errno::IO);
            }
        }
        Attempt::Done(header, payload) => {
            if let Some(waiting) = core.access.holdings.queue.remove(ticket) {
                core.output.respond_with(waiting.call, header, payload);
            }
        }
        Attempt::Blocked(needs) => {
            core.access.holdings.queue.set_needs(ticket, needs);
            recall_for(core, ticket);
        }
    }
}

fn attempt<S: Store>(
    access: &mut Access<S>,
    ticket: u64,
    session: u64,
    request: &SessionRequest,
) -> Attempt {
    match request {
        SessionRequest::LookUp(path) => look_up(access, ticket, session, path),
        SessionRequest::ListTree(list) => list_tree(access, ticket, session, list),
        SessionRequest::Read { ranges } => read(access, ticket, session, ranges),
        SessionRequest::Lease { wanted } => lease(access, ticket, session, wanted),
        SessionRequest::GetXattr { node, name } => {
            read_node(access, ticket, session, *node, |store, ino| {
                check_xattr(name)?;
                store.xattr(ino, name).map(Response::Xattr)
            })
        }
        SessionRequest::ListXattr { node } => {
            read_node(access, ticket, session, *node, |store, ino| {
                store.xattrs(ino).map(Response::Xattrs)
            })
        }
        SessionRequest::Seek { file, offset, target } => {
            read_node(access, ticket, session, *file, |store, ino| {
                store.seek(ino, *offset, *target).map(Response::Position)
            })
        }
        _ => Attempt::failed(Errno::INVAL),
    }
}

/// Handles leases that a client returns.
pub(super) fn release<S: Store>(
    core: &mut Core<S>,
    session: u64,
    call: CallToken,
    leases: &[(Handle, LeaseKind)],
) {
    // FSSERVE-6.
    commit_all(core);
    for (handle, keep) in leases {
        core.access.holdings.give_back(session, handle.ino, *keep);
    }
    core.output.respond(call, &Response::Done);
}

/// Recalls lent leases that requests wait for, and that were not returned in time.
pub(super) fn recall_lent<S: Store>(core: &mut Core<S>) {
    for ino in core.access.holdings.contention.take_late(core.access.now) {
        for ticket in core.access.holdings.queue.tickets_at(ino) {
            recall_for(core, ticket);
        }
    }
}

/// Recalls the leases that prevent a waiting request.
fn recall_for<S: Store>(core: &mut Core<S>, ticket: u64) {
    let Some(waiting) = core.access.holdings.queue.get(ticket) else { return };
    let mut recalls = Vec::new();
    for (ino, kind) in &waiting.needs {
        let others = core.access.holdings.leases.holders(*ino).iter();
        let others =
            others.filter(|(holder, held)| *holder != waiting.session && is_conflict(*held, *kind));
        let keep = if *kind == LeaseKind::Shared { *kind } else { LeaseKind::None };
        recalls.extend(others.map(|(holder, held)| (*holder, *ino, keep, *held)));
    }
    for (holder, ino, keep, held) in recalls {
        if core.access.is_silent(holder) {
            end_session(core, holder, true);
        } else if held == LeaseKind::Exclusive
            && core.access.holdings.contention.is_lent(ino, core.access.now)
        {
            // FSSERVE-14: the client returns it without a recall.
        } else {
            if held == LeaseKind::Exclusive {
                core.access.holdings.contention.note_holder(ino, holder, core.access.now);
            }
            let began = core.access.began(holder);
            core.access.holdings.recalls.request(holder, ino, keep, false, began);
        }
    }
}
