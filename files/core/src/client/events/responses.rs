//! Responses of the server, dispatched by the purpose of their call.

use std::collections::HashSet;

use crate::wire::{Errno, Failure, Ino, LeaseKind, Listing, Response, SessionRequest, frame};
use bytes::Bytes;

use super::batches::{fail_operations, handle_batch_done, handle_refused};
use super::ending::{end_session, refuse};
use super::greeting::{handle_reclaimed, handle_welcome, reclaim_next, supported_versions};
use crate::client::core::Core;
use crate::client::interface::effect::{ClientCall, Clock, OpToken};
use crate::client::link::Link;
use crate::client::link::calls::{Calls, Outstanding, Purpose, backoff};
use crate::client::link::session::SessionState;
use crate::client::locks::relock::handle_relocked;
use crate::client::locks::restoring::{handle_cancelled, handle_lock_response, handle_restored};
use crate::client::locks::table::Locks;
use crate::client::nodes::cache::Cache;
use crate::client::nodes::install::{install, install_leased, install_listing, install_walk};
use crate::client::waiting::Event;

/// Handles the outcome of a call; `None` if the call failed.
pub(in crate::client) fn handle_response(
    core: &mut Core,
    clock: &Clock,
    call: ClientCall,
    response: Option<Bytes>,
) {
    let Core { link, waiting, .. } = core;
    let decoded = response.map(frame::decode::<Response>);
    let Some(Ok(decoded)) = decoded else {
        return retry_later(link, clock, call);
    };
    let Some(outstanding) = link.calls.remove(call) else { return };
    waiting.wake(outstanding.waiters.iter().copied());
    // The response to a call that was repeated may be the response to its first attempt.
    if outstanding.failures == 0 {
        link.session.note_round_trip(clock.now.saturating_sub(outstanding.sent_at));
    }
    match &decoded.message {
        Response::Failed(Failure::SessionEnded) => {
            link.session.to_reclaim.extend(outstanding.claims());
            return end_session(core, clock);
        }
        Response::Failed(failure @ Failure::Version { .. }) => {
            let own = supported_versions();
            return refuse(core, &format!("{failure}, and this client {own}"));
        }
        Response::Failed(failure @ (Failure::NotTrusted | Failure::NoSuchExport)) => {
            return refuse(core, &failure.to_string());
        }
        _ => link.session.renew(outstanding.sent_at),
    }
    if link.session.state == SessionState::Live {
        waiting.wake_for(Event::Session);
    }
    dispatch(core, clock, outstanding, decoded.message, &decoded.payload);
}

/// Schedules a call to be repeated, which is safe for all requests.
fn retry_later(link: &mut Link, clock: &Clock, call: ClientCall) {
    let Some(outstanding) = link.calls.get_mut(call) else { return };
    outstanding.failures += 1;
    outstanding.retry_at = Some(clock.now + backoff(outstanding.failures));
    let since = outstanding.sent_at;
    link.session.silent_since.get_or_insert(since);
}

/// Handles responses that concern the session, locks or batches, and passes on the others.
fn dispatch(
    core: &mut Core,
    clock: &Clock,
    outstanding: Outstanding,
    response: Response,
    payload: &Bytes,
) {
    let voided = &outstanding.voided;
    let Core { link, cache, waiting, locks, .. } = core;
    match (&outstanding.purpose, response) {
        (Purpose::Greet, Response::Welcome(welcome)) => {
            handle_welcome(core, clock, outstanding.sent_at, &welcome, voided);
        }
        (Purpose::Greet, _) => link.session.greet_at = clock.now + backoff(5),
        (Purpose::Reclaim(nodes), Response::Reclaimed(leases)) => {
            handle_reclaimed(core, clock, nodes, &leases, voided);
        }
        (Purpose::Relock(ino, owner), response) => {
            if handle_relocked(&mut link.output, locks, (*ino, *owner), &response) {
                reclaim_next(core, clock);
            }
        }
        (Purpose::CancelLock(ino, owner), _) => {
            handle_cancelled(link, cache, locks, clock, (*ino, *owner));
        }
        (Purpose::Restore(ino, part), response) => {
            let part = (*ino, *part);
            handle_restored(link, cache, locks, waiting, clock, part, &response);
        }
        (Purpose::Batch(_), Response::BatchDone(done)) => handle_batch_done(core, clock, &done),
        (Purpose::Batch(number), Response::Failed(failure)) => {
            handle_refused(core, clock, *number, &failure);
        }
        (Purpose::Operation(token), response) => {
            handle_lock_response(link, cache, locks, waiting, clock, (*token, &response));
            waiting.give(*token, response);
        }
        (_, response) => cache_response(core, outstanding, response, payload),
    }
}

/// Handles responses that fill the cache.
fn cache_response(core: &mut Core, outstanding: Outstanding, response: Response, payload: &Bytes) {
    let Outstanding { purpose, request, waiters, voided, .. } = outstanding;
    let Core { link, cache, waiting, recalls, locks, .. } = core;
    match (purpose, response) {
        (Purpose::LookUp(start, name), Response::Found { start: entry, steps }) => {
            if entry.handle.ino == start {
                install(&link.log, cache, &entry, &voided);
                install_walk(&link.log, cache, start, (name.as_slice(), &steps), &voided);
            }
        }
        (Purpose::LookUp(node, None), Response::Failed(Failure::Errno(_))) => {
            lose_node(&mut link.calls, cache, locks, node);
        }
        (
            Purpose::LookUp(_, Some(_))
            | Purpose::List(_)
            | Purpose::Read(..)
            | Purpose::Xattrs(_)
            | Purpose::Lease(_),
            Response::Failed(Failure::Errno(error)),
        ) => fail_operations(link, waiting, &waiters, error),
        (Purpose::List(_), Response::Listed(listings)) => {
            install_listings(link, cache, request.as_ref(), &listings, &voided);
        }
        (Purpose::Lease(nodes), Response::Leased { leases, lent }) => {
            for ((ino, _), (kind, attributes)) in nodes.iter().zip(&leases) {
                let own = cache.get(*ino).map(|node| node.lease);
                if attributes.is_none() && own == Some(LeaseKind::Exclusive) {
                    continue; // Its creation is in flight.
                }
                if attributes.is_none() && *kind == LeaseKind::None {
                    // The node no longer exists; its name is looked up again.
                    lose_node(&mut link.calls, cache, locks, *ino);
                    continue;
                }
                let kind = if voided.contains(ino) { LeaseKind::None } else { *kind };
                if let Ok(handle) = cache.handle(*ino) {
                    install_leased(cache, handle, attributes.as_ref(), kind);
                }
                if kind == LeaseKind::Exclusive && lent.contains(ino) {
                    recalls.loans.add(*ino, &waiters);
                }
            }
        }
        (Purpose::Read(file, offset, length), Response::ReadDone(_)) => {
            cache_read(cache, file, (offset, length), (&waiters, &voided), payload);
        }
        (Purpose::Xattrs(ino), Response::Xattrs(names)) => {
            if let Some(node) = cache.get_mut(ino).filter(|_| !voided.contains(&ino))
                && names.is_empty()
            {
                node.xattrs = Some(Default::default());
            }
            for token in waiters {
                waiting.give(token, Response::Xattrs(names.clone()));
            }
        }
        (_, Response::Failed(failure)) => {
            link.output.warn(failure.to_string());
            fail_operations(link, waiting, &waiters, Errno::IO);
        }
        // Any response ends these calls.
        (Purpose::Renew | Purpose::Farewell, _) => {}
        // The response does not fit the request.
        _ => fail_operations(link, waiting, &waiters, Errno::IO),
    }
}

/// Installs the listings of a directory and of the tree below it.
fn install_listings(
    link: &Link,
    cache: &mut Cache,
    request: Option<&SessionRequest>,
    listings: &[Listing],
    voided: &HashSet<Ino>,
) {
    let after = match request {
        Some(SessionRequest::ListTree(list)) => list.after.as_ref(),
        _ => None,
    };
    for (index, listing) in listings.iter().enumerate() {
        let after = after.filter(|_| index == 0);
        install_listing(&link.log, cache, listing, after, voided);
    }
}

/// Caches bytes of a file that an operation waits for, or that are read ahead.
fn cache_read(
    cache: &mut Cache,
    file: Ino,
    (offset, length): (u64, u32),
    (waiters, voided): (&[OpToken], &HashSet<Ino>),
    payload: &Bytes,
) {
    let (from, to) = cache.read_ahead.kept(file);
    let is_needed = !waiters.is_empty() || (offset < to && offset + u64::from(length) > from);
    if let Some(node) = cache.get_mut(file).filter(|_| !voided.contains(&file))
        && node.lease > LeaseKind::None
        && is_needed
    {
        let read = payload.len().min(length as usize);
        node.contents.fill_from_server(offset, &payload.slice(..read));
        // The file is shorter at the server than its attributes state: the rest reads as zeros.
        let rest = Bytes::from(vec![0; length as usize - read]);
        node.contents.fill_from_server(offset + read as u64, &rest);
    }
}

/// Drops a node that the server no longer has, with its locks.
fn lose_node(calls: &mut Calls, cache: &mut Cache, locks: &mut Locks, ino: Ino) {
    if ino == Ino::ROOT {
        return;
    }
    calls.void(ino);
    locks.forget_file(ino);
    let Some(mut node) = cache.remove(ino) else { return };
    if let Some(parent) = node.parent.and_then(|parent| cache.get_mut(parent)) {
        parent.names_mut().known.retain(|_, child| *child != ino);
        parent.names_mut().complete = false;
    }
    if node.is_directory() && node.references > 0 {
        node.become_removed();
        node.lease = LeaseKind::None;
        cache.insert(node);
    }
}
