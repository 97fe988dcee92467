//! The poll role: at any moment at most one thread, the *leader*, runs the loop.
//!
//! The leader polls the driver, handles packets and delivers messages. A thread that waits takes
//! the role if it is free, and so receives its own message without a wake-up. When it has its
//! message, it passes the role to a *follower*: another waiting thread. The glossary has these
//! terms; the pattern is known as leader/followers.
//!
//! # Invariants
//!
//! - **ROLE-1** `taken` is true from the moment when a thread takes the role, or is notified that
//!   it has it, until it passes the role on or frees it.
//! - **ROLE-2** If a thread waits, the role is taken: no thread waits while none polls.

use super::waiter::{Notice, Waiter};
use super::wake_list::WakeList;
use apus_trace::{Event, recorder};
use std::sync::Arc;

/// The poll role and its followers. Lives under the core lock.
#[derive(Debug, Default)]
pub(crate) struct PollRole {
    taken: bool,
    /// Threads that wait and take the role when it is passed on, the newest last.
    followers: Vec<Arc<Waiter>>,
    /// Number of times that the role has changed hands. By it the background poller finds out
    /// whether another thread has had the role.
    changes: u64,
}

/// State of the role for the background poller, which reads it without the core lock: one word, as
/// of the last release of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoleState {
    pub(crate) taken: bool,
    /// Number of times that the role has changed hands.
    pub(crate) changes: u64,
}

impl RoleState {
    pub(crate) const fn to_word(self) -> u64 {
        self.changes << 1 | self.taken as u64
    }

    pub(crate) const fn from_word(word: u64) -> Self {
        Self { taken: word & 1 != 0, changes: word >> 1 }
    }
}

impl PollRole {
    pub(crate) const fn state(&self) -> RoleState {
        RoleState { taken: self.taken, changes: self.changes }
    }

    /// Takes the role if it is free. Returns whether it was.
    pub(crate) fn take(&mut self) -> bool {
        let free = !self.taken;
        if free {
            self.taken = true;
            self.changes += 1;
        }
        free
    }

    /// Passes the role to the follower that started to wait last, or frees it. Returns whether a
    /// follower has it.
    pub(crate) fn pass(&mut self, wakes: &mut WakeList) -> bool {
        debug_assert!(self.taken, "ROLE-1");
        self.changes += 1;
        while let Some(waiter) = self.followers.pop() {
            let name = waiter.name();
            if wakes.notify(waiter, Notice::PollRole) {
                recorder::record(Event::PassTurn, 0, name);
                return true;
            }
        }
        self.taken = false;
        false
    }

    /// Adds a waiting thread.
    pub(crate) fn add_follower(&mut self, waiter: Arc<Waiter>) {
        self.followers.push(waiter);
    }

    /// Removes a thread that does not wait any more.
    pub(crate) fn remove_follower(&mut self, waiter: &Arc<Waiter>) {
        self.followers.retain(|other| !Arc::ptr_eq(other, waiter));
    }

    /// Returns whether a thread waits for the role.
    pub(crate) const fn is_wanted(&self) -> bool {
        !self.followers.is_empty()
    }

    /// Returns whether no thread has the role.
    pub(crate) const fn is_free(&self) -> bool {
        !self.taken
    }

    /// Returns the number of times that the role has changed hands.
    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_one_word() {
        for state in [RoleState { taken: true, changes: 0 }, RoleState { taken: false, changes: 9 }]
        {
            assert_eq!(RoleState::from_word(state.to_word()), state);
        }
        let role = PollRole::default();
        assert_eq!(role.state(), RoleState::from_word(0), "as published before the first unlock");
    }
}
