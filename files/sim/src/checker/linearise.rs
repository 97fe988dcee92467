//! Linearisability of one object: searches for an order of its operations that explains all
//! results.
//!
//! The search is Lowe's just-in-time linearisation ("Testing for linearizability", 2017): all
//! possible states after a prefix of the history are kept, and operations are ordered only when one
//! of them returns. It is exact.
//!
//! Write-back goes beyond the usual definition: a mount that crashes loses a suffix of its
//! operations since its last `fsync`, although its applications were answered. The remaining
//! history, without that suffix, must still explain all results of other mounts. So a past keeps
//! the events since the first one that may yet be lost.

use std::collections::{BTreeSet, HashSet};
use std::hash::Hash;

use crate::history::{Event, Happening, MountId};

/// Number of events shown before an unexplained one.
const EXPLAINED: usize = 40;

/// An object with operations.
pub trait Model {
    /// State of the object.
    type State: Clone + Eq + Hash;
    /// Operation, with its result.
    type Action;

    /// Returns the states that an action can lead to, given its result; empty if that result is
    /// impossible.
    fn apply(&self, state: &Self::State, action: &Self::Action) -> Vec<Self::State>;

    /// Returns whether an action, given its result, leaves every state unchanged.
    fn only_reads(&self, action: &Self::Action) -> bool;
}

/// Result of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is an order that explains all results.
    Linearisable,
    /// No order exists: no order of the events before this one explains its result.
    Impossible {
        /// Position in the history.
        event: usize,
    },
    /// The search was given up after too many states.
    Undecided,
}

/// The state of an object, and its history since the first change that may be lost.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Lossy<S> {
    now: S,
    /// The state before the first event of `log`.
    base: S,
    log: Vec<LinearEvent>,
}

/// An event that is in effect.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct LinearEvent {
    event: usize,
    is_change: bool,
    /// It is no change that can be lost.
    is_safe: bool,
}

/// A possible past: the state, and the pending operations that are in effect already.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Past<S> {
    state: Lossy<S>,
    effective: BTreeSet<usize>,
}

/// Formats an unexplained event, and the events before it.
pub(super) fn explain<A: std::fmt::Debug>(
    events: &[Event<Happening<A>>],
    impossible: usize,
) -> String {
    let event = &events[impossible];
    let end = event.returned.unwrap_or(event.invoked);
    let is_shown = |other: &&Event<Happening<A>>| {
        other.invoked < end && !matches!(other.action, Happening::Synced)
    };
    let mut before: Vec<_> = events.iter().filter(is_shown).collect();
    before.sort_by_key(|other| other.invoked);
    let start = before.len().saturating_sub(EXPLAINED);
    let mut text = format!("nothing explains {:?} of {}; before it:", event.action, event.mount);
    for other in &before[start..] {
        let returned = other.returned.map_or("-".to_owned(), |at| at.0.to_string());
        let (mount, invoked, action) = (other.mount, other.invoked.0, &other.action);
        text.push_str(&format!("\n    {invoked} to {returned}, {mount}: {action:?}"));
    }
    text
}

struct Search<'a, M: Model> {
    model: &'a M,
    events: &'a [Event<Happening<M::Action>>],
    /// Mounts that lose something in this history.
    losers: BTreeSet<MountId>,
    pending: BTreeSet<usize>,
}

/// Searches for an order of all events. Gives up when more than `limit` pasts are possible at once.
pub fn search<M: Model>(
    model: &M,
    initial: M::State,
    events: &[Event<Happening<M::Action>>],
    limit: usize,
) -> Verdict {
    let lost = |event: &&Event<_>| matches!(event.action, Happening::Lost);
    let losers = events.iter().filter(lost).map(|event| event.mount).collect();
    let mut search = Search { model, events, losers, pending: BTreeSet::new() };
    let mut moments: Vec<_> = events
        .iter()
        .enumerate()
        .flat_map(|(index, event)| {
            let returned = event.returned.map(|at| (at, true, index));
            [(event.invoked, false, index)].into_iter().chain(returned)
        })
        .collect();
    moments.sort_unstable();
    let state = Lossy { now: initial.clone(), base: initial, log: Vec::new() };
    let mut pasts = HashSet::from([Past { state, effective: BTreeSet::new() }]);
    for (_, is_return, index) in moments {
        if is_return {
            pasts = match search.finish(pasts, index, limit) {
                Some(pasts) if pasts.is_empty() => return Verdict::Impossible { event: index },
                Some(pasts) => pasts,
                None => return Verdict::Undecided,
            };
            search.pending.remove(&index);
        } else {
            search.pending.insert(index);
            pasts = pasts.into_iter().map(|past| search.absorb(past)).collect();
        }
    }
    Verdict::Linearisable
}

impl<M: Model> Search<'_, M> {
    /// Returns all pasts that include the effect of an operation. `None`: there are too many.
    fn finish(
        &self,
        pasts: HashSet<Past<M::State>>,
        index: usize,
        limit: usize,
    ) -> Option<HashSet<Past<M::State>>> {
        let mut finished = HashSet::new();
        let mut seen = pasts.clone();
        let mut open: Vec<_> = pasts.into_iter().collect();
        while let Some(mut past) = open.pop() {
            if past.effective.remove(&index) {
                finished.insert(past);
                continue;
            }
            for next in self.pending.iter().filter(|next| !past.effective.contains(next)) {
                for state in self.step(&past.state, *next) {
                    let mut effective = past.effective.clone();
                    effective.insert(*next);
                    let later = self.absorb(Past { state, effective });
                    if seen.insert(later.clone()) {
                        open.push(later);
                    }
                }
            }
            if seen.len() > limit {
                return None;
            }
        }
        Some(finished)
    }

    /// Puts all pending operations into effect for which sooner is never worse: syncs, which do not
    /// cover operations after their invocation, and reads, as long as no change may be lost: a lost
    /// change must not have been read.
    fn absorb(&self, mut past: Past<M::State>) -> Past<M::State> {
        for next in &self.pending {
            let is_eager = match &self.events[*next].action {
                Happening::Action(action) => {
                    past.state.log.is_empty() && self.model.only_reads(action)
                }
                // A pending loss may precede it.
                Happening::Synced => !self.may_lose(&past, self.events[*next].mount),
                Happening::Lost => false,
            };
            if !is_eager || past.effective.contains(next) {
                continue;
            }
            let is_sync = matches!(self.events[*next].action, Happening::Synced);
            if let [state] = &self.step(&past.state, *next)[..]
                && (is_sync || state.now == past.state.now)
            {
                past.state = state.clone();
                past.effective.insert(*next);
            }
        }
        past
    }

    /// Returns whether a mount may yet lose something.
    fn may_lose(&self, past: &Past<M::State>, mount: MountId) -> bool {
        self.pending.iter().filter(|event| !past.effective.contains(event)).any(|event| {
            let event = &self.events[*event];
            event.mount == mount && matches!(event.action, Happening::Lost)
        })
    }

    /// Returns the states behind one event.
    fn step(&self, state: &Lossy<M::State>, index: usize) -> Vec<Lossy<M::State>> {
        let event = &self.events[index];
        match &event.action {
            Happening::Action(action) => {
                let states = self.model.apply(&state.now, action);
                states.into_iter().map(|now| self.change(state, now, index)).collect()
            }
            Happening::Synced => {
                let mut synced = state.clone();
                for entry in &mut synced.log {
                    entry.is_safe |= self.events[entry.event].mount == event.mount;
                }
                self.fold(&mut synced);
                vec![synced]
            }
            Happening::Lost => self.lose(state, event.mount),
        }
    }

    /// Returns the state behind an action.
    fn change(&self, before: &Lossy<M::State>, now: M::State, event: usize) -> Lossy<M::State> {
        let is_change = now != before.now;
        let is_safe = !self.losers.contains(&self.events[event].mount);
        if before.log.is_empty() && (is_safe || !is_change) {
            return Lossy { base: now.clone(), now, log: Vec::new() };
        }
        let mut log = before.log.clone();
        log.push(LinearEvent { event, is_change, is_safe });
        Lossy { now, base: before.base.clone(), log }
    }

    /// Returns the states after the loss of any number of a mount's last changes.
    fn lose(&self, state: &Lossy<M::State>, mount: MountId) -> Vec<Lossy<M::State>> {
        let own = |entry: &LinearEvent| !entry.is_safe && self.events[entry.event].mount == mount;
        let changes =
            state.log.iter().enumerate().filter(|(_, entry)| entry.is_change && own(entry));
        let ends = changes.map(|(index, _)| index).chain([state.log.len()]);
        ends.filter_map(|end| {
            let kept = state.log.iter().enumerate().filter(|(at, entry)| *at < end || !own(entry));
            let mut left = Lossy {
                now: state.base.clone(),
                base: state.base.clone(),
                log: kept.map(|(_, entry)| *entry).collect(),
            };
            for entry in &mut left.log {
                left.now = self.replay(&left.now, entry.event)?;
                entry.is_safe |= self.events[entry.event].mount == mount;
            }
            self.fold(&mut left);
            Some(left)
        })
        .collect()
    }

    fn replay(&self, state: &M::State, event: usize) -> Option<M::State> {
        let Happening::Action(action) = &self.events[event].action else { return None };
        self.model.apply(state, action).into_iter().next()
    }

    /// Forgets the events before the first change that may be lost.
    fn fold(&self, state: &mut Lossy<M::State>) {
        let at_risk = |entry: &LinearEvent| entry.is_change && !entry.is_safe;
        let safe = state.log.iter().position(at_risk).unwrap_or(state.log.len());
        for entry in state.log.drain(..safe) {
            if let Some(base) = self.replay(&state.base, entry.event) {
                state.base = base;
            }
        }
    }
}
