//! Hello and Goodbye: sessions start, resume and end by their client's request.

use crate::store::{ClientId, Store};
use crate::wire::{
    Errno, Failure, FoundNode, Hello, Ino, LeaseKind, Response, Welcome, WireVersion,
};

use super::batches::commit;
use super::core::Core;
use super::effect::CallToken;
use super::ending::end_session;
use super::grants::{is_readable, offer};
use super::latecomers::note_return;
use super::queue::LAST;
use super::session::{Sender, Session};
use super::settings::EXPORT_SHIFT;
use super::shares::Host;

/// Starts or resumes a session.
pub(super) fn welcome<S: Store>(
    core: &mut Core<S>,
    sender: &Sender,
    call: CallToken,
    hello: &Hello,
) {
    let version = hello.newest.min(WireVersion::CURRENT);
    if version < hello.oldest || version < WireVersion::OLDEST {
        let failure =
            Failure::Version { oldest: WireVersion::OLDEST, newest: WireVersion::CURRENT };
        return core.output.fail(call, failure);
    }
    // The client's appended batches count, whether or not it resumes.
    commit(core);
    let client = ClientId(hello.client);
    let before = core.access.sessions.of_client(client);
    let owner = before.map(|number| core.access.rights(number));
    if owner.is_some_and(|rights| !rights.is_same_client(&sender.rights)) {
        // The identity of a mount is a secret: this is none of its client's processes.
        return core.output.fail(call, Failure::NotTrusted);
    }
    let is_resumed = before.is_some() && before == hello.session;
    if !is_resumed {
        if let Some(number) = before {
            end_session(core, number, false);
        }
        if !make_room(core, sender.host()) {
            return core.output.fail(call, Failure::TooManySessions);
        }
        return begin_session(core, sender, call, hello, version);
    }
    let number = before.unwrap_or_default();
    let now = core.access.now;
    if let Some(session) = core.access.sessions.get_mut(number) {
        session.peer = sender.peer;
        if hello.greeting > session.greeting {
            session.greeting = hello.greeting;
            session.is_stopped = false;
        }
        session.is_known = true;
        session.read_only = hello.read_only;
    }
    core.access.sessions.hear(number, now, core.access.settings.term);
    core.access.holdings.recalls.wake(number);
    accept(core, call, number, None, hello, version);
}

fn begin_session<S: Store>(
    core: &mut Core<S>,
    sender: &Sender,
    call: CallToken,
    hello: &Hello,
    version: WireVersion,
) {
    let Some(first) = core.access.reserve_inos() else {
        return core.output.fail_errno(call, Errno::IO);
    };
    let number = first | u64::from(core.access.settings.export) << EXPORT_SHIFT;
    let client = ClientId(hello.client);
    let applied = core.access.store.applied(client);
    let mut session = Session::new(client, hello.name.clone(), sender, core.access.now, applied);
    session.read_only = hello.read_only;
    session.is_fenced = core.access.store.is_fenced(client);
    session.greeting = hello.greeting;
    core.access.sessions.insert(number, session);
    note_return(&mut core.access, number, first, hello);
    accept(core, call, number, Some(first), hello, version);
}

/// Gives a session a range, that from `first` on if it has begun just now, and responds.
fn accept<S: Store>(
    core: &mut Core<S>,
    call: CallToken,
    number: u64,
    first: Option<u64>,
    hello: &Hello,
    version: WireVersion,
) {
    let resumed = first.is_none();
    let Some(first) = first.or_else(|| core.access.reserve_inos()) else {
        return core.output.fail_errno(call, Errno::IO);
    };
    let client = ClientId(hello.client);
    let range = core.access.proofs.range(client, first, core.access.settings.inos);
    let proofs = &core.access.proofs;
    let Some(session) = core.access.sessions.get_mut(number) else { return };
    for old in &hello.ranges {
        let is_known = session.ranges.contains(&(old.first, old.count));
        if !is_known && proofs.range(client, old.first, old.count) == *old {
            session.add_range(old.first, old.count);
        }
    }
    session.add_range(range.first, range.count);
    let applied = session.applied;
    let attributes = match core.access.store.attributes(Ino::ROOT) {
        Ok(attributes) => attributes,
        Err(errno) => return core.output.fail_errno(call, errno),
    };
    let lease = if is_readable(&core.access, LAST, number, Ino::ROOT) {
        offer(&mut core.access, LAST, number, Ino::ROOT, LeaseKind::Shared)
    } else {
        LeaseKind::None
    };
    let root = FoundNode {
        handle: core.access.proofs.handle(Ino::ROOT),
        attributes,
        lease,
        contents: None,
    };
    let welcome = Welcome {
        version,
        session: number,
        resumed,
        term_ms: u32::try_from(core.access.settings.term.as_millis()).unwrap_or(u32::MAX),
        root,
        first_ino: range.first,
        inos: range.count,
        inos_proof: range.proof,
        applied,
        read_only: core.access.settings.read_only,
        failed: core.access.store.last_failure(client),
    };
    core.output.respond(call, &Response::Welcome(welcome));
}

/// Makes room for a session of a host: ends the session that was silent longest, of this host or of
/// all; false if neither was silent for a term.
fn make_room<S: Store>(core: &mut Core<S>, host: Host) -> bool {
    let sessions = &core.access.sessions;
    if sessions.has_room(host) {
        return true;
    }
    let of_all = sessions.first_heard().map(|(number, _)| number);
    let silent = [sessions.first_of(host), of_all].into_iter().flatten();
    for number in silent.filter(|number| core.access.is_silent(*number)).collect::<Vec<_>>() {
        end_session(core, number, true);
        if core.access.sessions.has_room(host) {
            return true;
        }
    }
    false
}

/// Ends a session by its client's wish. The client's identity is never used again.
pub(super) fn part<S: Store>(core: &mut Core<S>, number: u64, call: CallToken) {
    if let Some(session) = end_session(core, number, false)
        && !core.access.is_broken
    {
        core.access.returns.abandoned.forget(session.client);
        core.access.store.forget_client(session.client);
    }
    core.output.respond(call, &Response::Done);
}
