//! Recalls: callbacks to clients, their outcomes, and the consequences of missing answers.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::wire::frame::{decode, encode};
use crate::wire::{Callback, CallbackResponse, Ino, RecalledNode};
use bytes::Bytes;

use super::access::Access;
use super::batches::commit_all;
use super::core::Core;
use super::effect::{CallbackToken, ServerEffect};
use super::ending::end_session;
use super::orphan_care::drop_if_unused;
use super::output::Output;
use super::recalls::SessionRecalls;
use super::settings::{
    EXCUSED_TERMS, MAX_CALLBACKS, PROGRESS, RECALL_TERMS, RETRY_PART, STUCK_TERMS,
};
use crate::store::Store;

/// Calls all sessions with recalls to send.
pub(super) fn send_recalls<S: Store>(access: &mut Access<S>, output: &mut Output) {
    for number in std::mem::take(&mut access.holdings.recalls.due) {
        let is_silent = access.is_silent(number);
        access.holdings.recalls.changed.insert(number);
        let Some(session) = access.sessions.get(number) else { continue };
        // A session that was silent for a term is not called: `check_recalls` ends it, or it sends
        // a request.
        let peer = session.peer;
        let Some(recalls) = access.holdings.recalls.sessions.get_mut(&number) else { continue };
        if is_silent || recalls.retry_at.is_some_and(|at| access.now < at) {
            continue;
        }
        recalls.retry_at = None;
        while recalls.outstanding.len() < MAX_CALLBACKS
            && let Some(recalled) = recalls.next_call()
        {
            access.holdings.recalls.last += 1;
            let callback = CallbackToken(access.holdings.recalls.last);
            let nodes = recalled.nodes.iter().map(|(ino, recall)| RecalledNode {
                node: access.proofs.handle(*ino),
                keep: recall.keep,
                is_removed: recall.is_removed,
            });
            let message = encode(&Callback::Recall { session: number, nodes: nodes.collect() });
            recalls.outstanding.insert(callback, recalled);
            output.counters.recalls += 1;
            access.holdings.recalls.tokens.insert(callback, number);
            output.push(ServerEffect::Call { callback, peer, message });
        }
    }
}

/// Handles the outcome of a callback.
pub(super) fn finish_recall<S: Store>(
    core: &mut Core<S>,
    callback: CallbackToken,
    response: Option<Bytes>,
) {
    // Without a session: a Fence, or the session has ended.
    let Some(number) = core.access.holdings.recalls.tokens.remove(&callback) else { return };
    let Some(recalls) = core.access.holdings.recalls.sessions.get_mut(&number) else { return };
    let Some(recalled) = recalls.outstanding.remove(&callback) else { return };
    if response.is_none() {
        recalls.failed_at = Some(core.access.now);
    }
    let response = response.and_then(|bytes| decode::<CallbackResponse>(bytes).ok());
    match response.map(|decoded| decoded.message) {
        Some(CallbackResponse::Recalled { open }) => {
            if recalls.pending.is_some() {
                core.access.holdings.recalls.due.insert(number);
            }
            core.access.holdings.recalls.remove_if_empty(number);
            // FSSERVE-6.
            commit_all(core);
            let open: BTreeSet<Ino> = open.iter().map(|handle| handle.ino).collect();
            for (ino, recall) in recalled.nodes {
                core.access.holdings.reduce(number, ino, recall.keep);
                if recall.is_removed {
                    core.orphans.decide(number, ino, open.contains(&ino));
                    drop_if_unused(core, ino);
                }
            }
        }
        Some(CallbackResponse::UnknownSession)
            if core.access.sessions.get(number).is_some_and(|session| session.is_known) =>
        {
            end_session(core, number, false);
        }
        // A client that has not received its Welcome yet does not have the session either.
        Some(CallbackResponse::UnknownSession | CallbackResponse::Malformed) | None => {
            for (ino, recall) in recalled.nodes {
                if recall.is_removed || core.access.holdings.leases.held(number, ino) > recall.keep
                {
                    recalls.add(ino, recall, recalled.since);
                } else {
                    // The client has returned the lease without an answer.
                    core.access.holdings.queue.touch(ino);
                }
            }
            recalls.retry_at = Some(core.access.now + core.access.settings.term / RETRY_PART);
            core.access.holdings.recalls.changed.insert(number);
            core.access.holdings.recalls.remove_if_empty(number);
        }
    }
}

/// Returns when a session that does not answer ends; `None` if no request waits for its answer. The
/// waiting requests proceed then (FS-15).
///
/// It has a term. Up to two more are added where its network is to blame: it was silent, calls to
/// it fail, or its changes trickle in. Each [`PROGRESS`] that it has sent since the recall is worth
/// another one: so a client that flushes a large log keeps its session.
fn fence_deadline<S: Store>(
    access: &Access<S>,
    number: u64,
    recalls: &SessionRecalls,
) -> Option<Duration> {
    let term = access.settings.term;
    let since = recalls.needed_since()?;
    let session = access.sessions.get(number)?;
    let terms = 1 + session.progress.saturating_sub(since.progress) / PROGRESS;
    let terms = u32::try_from(terms).unwrap_or(RECALL_TERMS).min(RECALL_TERMS);
    let tried = recalls.failed_at.unwrap_or_default().max(session.last_batch);
    let silence = session.silence.saturating_sub(since.silence);
    let excused = tried.saturating_sub(since.at) + silence;
    let deadline = since.at + term * terms + excused.min(term * EXCUSED_TERMS);
    Some((session.last_heard + term).min(deadline))
}

/// Ends sessions that do not answer recalls, and calls others again.
pub(super) fn check_recalls<S: Store>(core: &mut Core<S>) {
    schedule_checks(&mut core.access);
    while let Some((at, number)) = core.access.holdings.recalls.next_check()
        && at <= core.access.now
    {
        check_session(core, number);
        let next = recall_deadline_of(&core.access, number);
        // A check that has nothing left to do now would be repeated without end.
        let now = core.access.now;
        core.access.holdings.recalls.schedule(number, next.filter(|next| *next > now));
    }
}

fn check_session<S: Store>(core: &mut Core<S>, number: u64) {
    let Some(recalls) = core.access.holdings.recalls.sessions.get(&number) else { return };
    let deadline = fence_deadline(&core.access, number, recalls);
    if deadline.is_some_and(|deadline| core.access.now >= deadline) {
        end_session(core, number, true);
        return;
    }
    if recalls.retry_at.is_some_and(|at| core.access.now >= at) {
        core.access.holdings.recalls.due.insert(number);
    }
    if core.access.is_silent(number) {
        return;
    }
    // A client that sends requests but cannot be called keeps its possibly open nodes until it
    // closes them.
    let patience = core.access.settings.term * STUCK_TERMS;
    if let Some(limit) = core.access.now.checked_sub(patience) {
        for ino in core.access.holdings.recalls.give_up(number, limit) {
            core.orphans.decide(number, ino, true);
            core.access.holdings.queue.touch(ino);
        }
    }
}

/// Schedules the checks of sessions whose recalls have changed.
pub(super) fn schedule_checks<S: Store>(access: &mut Access<S>) {
    for number in std::mem::take(&mut access.holdings.recalls.changed) {
        let at = recall_deadline_of(access, number);
        access.holdings.recalls.schedule(number, at);
    }
}

/// Returns when [`check_recalls`] is needed.
pub(super) fn recall_deadline<S: Store>(access: &Access<S>) -> Option<Duration> {
    access.holdings.recalls.next_check().map(|(at, _)| at)
}

fn recall_deadline_of<S: Store>(access: &Access<S>, number: u64) -> Option<Duration> {
    let recalls = access.holdings.recalls.sessions.get(&number)?;
    // A silent session is not called: neither retry nor questions have a deadline then.
    let is_heard = !access.is_silent(number);
    let retry = recalls.retry_at.filter(|_| is_heard);
    let since = recalls.asked_since().filter(|_| is_heard);
    let question = since.map(|since| since + access.settings.term * STUCK_TERMS);
    [fence_deadline(access, number, recalls), retry, question].into_iter().flatten().min()
}
