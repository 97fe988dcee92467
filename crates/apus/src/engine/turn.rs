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

use super::waiter::{Told, Waiter};
use super::wakes::Wakes;
use apus_trace::{Event, recorder};
use std::sync::Arc;

/// The turn. Lives under the core lock.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    held: bool,
    /// Whether the keeper has it, who would rather give it away.
    by_keeper: bool,
    /// Whether somebody has come by who does not wait but would poll.
    asked_for: bool,
    /// Those who wait for something and would take the turn, the newest last.
    candidates: Vec<Arc<Waiter>>,
    /// Counts changes, so that the keeper sees whether anybody has had the turn meanwhile.
    changes: u64,
}

impl Turn {
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
    pub(crate) fn take_as_keeper(&mut self) -> bool {
        let taken = self.take();
        self.by_keeper |= taken;
        taken
    }

    /// Passes the turn to whoever began to wait last, or lets it go. Whether somebody has it.
    pub(crate) fn pass(&mut self, wakes: &mut Wakes) -> bool {
        debug_assert!(self.held, "N1");
        self.changes += 1;
        self.by_keeper = false;
        self.asked_for = false;
        while let Some(waiter) = self.candidates.pop() {
            let name = waiter.name();
            if wakes.tell(waiter, Told::Turn) {
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
    pub(crate) const fn is_kept(&self) -> bool {
        self.by_keeper
    }

    /// Asks the keeper to let it go, for somebody who does not wait but will come again. `false` if it
    /// is not the keeper who has it.
    pub(crate) const fn ask_keeper(&mut self) -> bool {
        self.asked_for |= self.by_keeper;
        self.by_keeper
    }

    /// Whether the keeper should let somebody else have it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.asked_for || !self.candidates.is_empty()
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
