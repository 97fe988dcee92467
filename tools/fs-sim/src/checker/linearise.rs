//! Linearisability of one object: searches an order of its operations that explains all results.
//!
//! The search is Lowe's just-in-time linearisation ("Testing for linearizability", 2017): all states that are possible after
//! a prefix of the history are kept, and operations are put in order no sooner than one of them returns. It is exact.
//!
//! Write-back makes two things possible which the usual definition does not have: a mount that crashes loses a suffix of what
//! it did since its last `fsync`, although the application was answered; and what another mount has seen cannot be lost
//! any more. So a state has a tail: the states before each of the last changes, if one mount made all of them.

use std::collections::{BTreeSet, HashSet};
use std::hash::Hash;

use crate::history::{Event, Happening, MountId};

/// An object with operations.
pub trait Model {
    /// State of the object.
    type State: Clone + Eq + Hash;
    /// Operation, with its result.
    type Action;

    /// Returns the states to which an action can lead, with the result that it had; none if it cannot have had it.
    fn apply(&self, state: &Self::State, action: &Self::Action) -> Vec<Self::State>;

    /// Returns whether an action, with the result that it had, changes nothing in any state.
    fn only_reads(&self, action: &Self::Action) -> bool;
}

/// What the search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is an order that explains all results.
    Linearisable,
    /// There is none: no order of the events before this one explains its result.
    Impossible {
        /// Position in the history.
        event: usize,
    },
    /// The search was given up after too many states.
    Undecided,
}

/// The state of an object, and what a crash can take back.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Lossy<S> {
    now: S,
    /// The mount that made the last changes, and the states before each of them.
    tail: Option<(MountId, Vec<S>)>,
}

/// A possible past: the state, and the pending operations that are in effect already.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Past<S> {
    state: Lossy<S>,
    effective: BTreeSet<usize>,
}

struct Search<'a, M: Model> {
    model: &'a M,
    events: &'a [Event<Happening<M::Action>>],
    /// Mounts that lose something in this history. Only their tails are kept.
    losers: BTreeSet<MountId>,
    pending: BTreeSet<usize>,
}

/// Searches an order of all events. Gives up when more than `limit` pasts are possible at once.
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
    let state = Lossy { now: initial, tail: None };
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
    /// Returns all pasts in which an operation is in effect. `None`: there are too many.
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

    /// Puts all pending operations into effect for which sooner is never worse: those that only read, and syncs, which cover
    /// nothing that was done after they were invoked.
    fn absorb(&self, mut past: Past<M::State>) -> Past<M::State> {
        for next in &self.pending {
            let is_eager = match &self.events[*next].action {
                Happening::Action(action) => self.model.only_reads(action),
                Happening::Synced => true,
                Happening::Lost => false,
            };
            if !is_eager || past.effective.contains(next) {
                continue;
            }
            let is_sync = matches!(self.events[*next].action, Happening::Synced);
            if let [state] = &self.step(&past.state, *next)[..]
                && (is_sync || *state == past.state)
            {
                past.state = state.clone();
                past.effective.insert(*next);
            }
        }
        past
    }

    /// Returns the states behind one operation.
    fn step(&self, state: &Lossy<M::State>, index: usize) -> Vec<Lossy<M::State>> {
        let event = &self.events[index];
        let own_tail = state.tail.as_ref().filter(|(mount, _)| *mount == event.mount);
        match &event.action {
            Happening::Action(action) => {
                let states = self.model.apply(&state.now, action);
                states.into_iter().map(|now| self.change(state, now, event.mount)).collect()
            }
            Happening::Synced => match own_tail {
                Some(_) => vec![Lossy { now: state.now.clone(), tail: None }],
                None => vec![state.clone()],
            },
            Happening::Lost => {
                let before = own_tail.map_or(&[][..], |(_, states)| states);
                let kept = before.iter().chain([&state.now]);
                kept.map(|now| Lossy { now: now.clone(), tail: None }).collect()
            }
        }
    }

    /// Returns the state behind an action of a mount.
    fn change(&self, before: &Lossy<M::State>, now: M::State, mount: MountId) -> Lossy<M::State> {
        let tail = match &before.tail {
            Some((owner, states)) if *owner == mount => {
                let mut states = states.clone();
                if now != before.now {
                    states.push(before.now.clone());
                }
                Some((mount, states))
            }
            // Another mount has seen the changes: they are at the server.
            Some(_) | None if now != before.now && self.losers.contains(&mount) => {
                Some((mount, vec![before.now.clone()]))
            }
            Some(_) | None => None,
        };
        Lossy { now, tail }
    }
}
