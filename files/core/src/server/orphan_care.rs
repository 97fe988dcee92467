//! Care for orphans: sessions report whether they have one open, and unused ones are removed.

use std::collections::BTreeSet;

use crate::store::Store;
use crate::wire::{Errno, Ino, LeaseKind};

use super::core::Core;
use super::orphans::ABSENT;

/// Keeps a node without a name until each session that has it open has closed it. All sessions that
/// may have it open are asked.
pub(super) fn keep_orphan<S: Store>(
    core: &mut Core<S>,
    ino: Ino,
    remover: Option<u64>,
    is_closed: bool,
) {
    let others = core.access.sessions.iter();
    let mut undecided: BTreeSet<u64> = others
        .filter(|(number, session)| Some(*number) != remover && session.has_heard_of(ino))
        .map(|(number, _)| number)
        .collect();
    for session in &undecided {
        let began = core.access.began(*session);
        core.access.holdings.recalls.request(*session, ino, LeaseKind::None, true, began);
    }
    if core.access.is_grace() {
        undecided.insert(ABSENT);
    }
    core.orphans.insert(ino, remover.filter(|_| !is_closed), undecided);
    drop_if_unused(core, ino);
}

/// Asks about all orphans, once all clients that have one open have returned.
pub(super) fn ask_about_orphans<S: Store>(core: &mut Core<S>) {
    for ino in core.access.store.orphans() {
        keep_orphan(core, ino, None, true);
        core.orphans.decide(ABSENT, ino, false);
        drop_if_unused(core, ino);
    }
}

/// Removes an orphan if no session has it open any more.
pub(super) fn drop_if_unused<S: Store>(core: &mut Core<S>, ino: Ino) {
    if core.orphans.take_unused(ino) {
        core.access.store.drop_orphan(ino);
        forget_node(core, ino);
    }
}

/// Forgets a node that does not exist any more.
pub(super) fn forget_node<S: Store>(core: &mut Core<S>, ino: Ino) {
    core.access.holdings.leases.forget(ino);
    for session in core.access.sessions.values_mut() {
        session.forget(ino);
    }
    for call in core.locks.forget(ino) {
        core.output.fail_errno(call, Errno::STALE);
    }
    core.access.holdings.queue.touch(ino);
}
