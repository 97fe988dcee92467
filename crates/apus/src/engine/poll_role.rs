//! Who turns the loop?
//!
//! At any moment at most one thread has the *turn*: it polls the driver, handles packets and delivers
//! what they bring. Whoever waits takes the turn if it is free, and so gets its own message without
//! being woken by anybody. When it has what it wants, it passes the turn to another one who waits.
//!
//! # Invariants
//!
//! - **N1** `held` is true from the moment somebody takes the turn, or is told that it has it, until
//!   it passes it or lets it go.
//! - **N2** If somebody waits, the turn is held: nobody waits while nobody polls.

use super::waiter::{Notice, Waiter};
use super::wake_list::WakeList;
use apus_trace::{Event, recorder};
use std::sync::Arc;

/// The turn. Lives under the core lock.
#[derive(Debug, Default)]
pub(crate) struct PollRole {
    held: bool,
    /// Whether the keeper has it, who would rather give it away.
    in_background: bool,
    /// Whether somebody has come by who does not wait but would poll.
    requested: bool,
    /// Those who wait for something and would take the turn, the newest last.
    candidates: Vec<Arc<Waiter>>,
    /// Counts changes, so that the keeper sees whether anybody has had the turn meanwhile.
    changes: u64,
}

impl PollRole {
    /// Takes the turn if it is free.
    pub(crate) fn take(&mut self) -> bool {
        let free = !self.held;
        if free {
            self.held = true;
            self.changes += 1;
        }
        free
    }

    /// The same for the keeper.
    pub(crate) fn take_in_background(&mut self) -> bool {
        let taken = self.take();
        self.in_background |= taken;
        taken
    }

    /// Passes the turn to whoever began to wait last, or lets it go. Whether somebody has it.
    pub(crate) fn pass(&mut self, wakes: &mut WakeList) -> bool {
        debug_assert!(self.held, "N1");
        self.changes += 1;
        self.in_background = false;
        self.requested = false;
        while let Some(waiter) = self.candidates.pop() {
            let name = waiter.name();
            if wakes.notify(waiter, Notice::PollRole) {
                recorder::record(Event::PassTurn, 0, name);
                return true;
            }
        }
        self.held = false;
        false
    }

    /// Somebody waits who would take the turn.
    pub(crate) fn enlist(&mut self, waiter: Arc<Waiter>) {
        self.candidates.push(waiter);
    }

    /// It does not wait any more.
    pub(crate) fn delist(&mut self, waiter: &Arc<Waiter>) {
        self.candidates.retain(|other| !Arc::ptr_eq(other, waiter));
    }

    /// Whether the keeper has the turn.
    pub(crate) const fn is_in_background(&self) -> bool {
        self.in_background
    }

    /// Asks the keeper to let it go, for somebody who does not wait but will come again. `false` if it
    /// is not the keeper who has it.
    pub(crate) const fn ask_background_poller(&mut self) -> bool {
        self.requested |= self.in_background;
        self.in_background
    }

    /// Whether the keeper should let somebody else have it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.requested || !self.candidates.is_empty()
    }

    /// Whether nobody has it.
    pub(crate) const fn is_free(&self) -> bool {
        !self.held
    }

    /// How often it has changed hands.
    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }
}
