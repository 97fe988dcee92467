//! Sessions: whether a request that has just arrived may be executed.
//!
//! The network may keep a packet for longer than any state is kept, so that a server without memory of
//! a client cannot know whether a request is new or was executed long ago. It asks: it draws a
//! *session*, a random number that only this client learns, and executes the request when the client
//! has repeated that number and said that the call is live. From then on the client puts the session
//! into its packets, and the server remembers which ids of the session are finished.
//!
//! ```text
//!   client                                  server
//!     | -- DATA, incarnation C ---------------> |  no session: candidate session S
//!     | <------------- NEED_ACK+CONFIRM, S ---- |  (request waits, not executed)
//!     | -- BUSY+CONFIRM, S -------------------> |  S becomes the current session; execute
//!     | -- DATA, S ---------------------------> |  later requests: no question asked
//! ```
//!
//! # Invariants (requirements AMO-1, AMO-2, AMO-4)
//!
//! - **SESSION-1** A request is executed only in the current session, and only if its id is not finished
//!   there.
//! - **SESSION-2** A request that was sent without a session is executed only after its client has confirmed
//!   that very call.
//! - **SESSION-3** A candidate becomes current only by a packet that carries its number.
//! - **SESSION-4** A candidate is not displaced while it is young: a late duplicate from an earlier life of
//!   the client cannot disturb the client's first contact.
//!
//! The kernel profile (AMO-7) has no sessions on the wire: there is one without number that is always
//! current, and remembering finished ids makes the kernel's known hole (docs/reference/homa-module.md, *At most once*)
//! smaller.

use super::{FinishedIds, SparseIds};
use crate::time::Instant;
use apus_wire::{Flags, UdpFields};

/// One session of a client with this endpoint.
#[derive(Debug)]
pub(crate) struct Session {
    number: u32,
    claim: Claim,
    /// Requests that were executed, refused or given up.
    finished: Finished,
    /// When it was proposed.
    since: Instant,
}

/// Finished ids.
#[derive(Debug)]
enum Finished {
    /// Udp profile: ids are dense (RPC-7).
    Dense(FinishedIds),
    /// Kernel profile.
    Sparse(SparseIds),
}

impl Finished {
    fn contains(&self, id: u64) -> bool {
        match self {
            Self::Dense(ids) => ids.contains(id),
            Self::Sparse(ids) => ids.contains(id),
        }
    }

    fn insert(&mut self, id: u64) {
        match self {
            Self::Dense(ids) => ids.insert(id),
            Self::Sparse(ids) => ids.insert(id),
        }
    }
}

/// What a client stated about itself when its session was proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// Its incarnation: it had no session with this endpoint.
    Incarnation(u32),
    /// A session that is not known (any more).
    Session(u32),
    /// Kernel profile.
    Kernel,
}

/// The requests of one peer to this endpoint.
#[derive(Debug, Default)]
pub(crate) struct Serving {
    current: Option<Session>,
    candidate: Option<Session>,
}

/// The decision about a request of which nothing is known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is new: execute it when it is complete.
    Fresh {
        /// Its session.
        session: u32,
        /// Whether the packet made its session current, and if so which one it displaced.
        confirmation: Confirmation,
    },
    /// Hold it, and ask its client to confirm it.
    Confirm {
        /// The session to ask with.
        session: u32,
    },
    /// It was finished: a late duplicate.
    Finished,
    /// Another first contact from the same address is in progress (SESSION-4).
    Occupied,
}

/// What a packet that proves the client's address has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmation {
    /// Nothing: its session was current already.
    Known,
    /// Its session has become current.
    Established {
        /// The session that was current before.
        displaced: Option<u32>,
    },
    /// It does not belong to any session of this peer.
    Stale,
}

impl Serving {
    /// Decides about the first packet of request `id`. `fields` is `None` in the kernel profile;
    /// `new_session` draws a number; a candidate younger than `young` nanoseconds is not displaced.
    pub(crate) fn admit(
        &mut self,
        id: u64,
        fields: Option<&UdpFields>,
        now: Instant,
        young: u64,
        new_session: impl FnOnce() -> u32,
    ) -> Admission {
        let claim = match fields {
            None => return self.admit_kernel(id, now),
            Some(fields) if fields.flags.contains(Flags::SESSION) => {
                let confirmation = self.confirm(fields.incarnation);
                if confirmation != Confirmation::Stale {
                    return self.admit_in_session(id, fields, confirmation);
                }
                Claim::Session(fields.incarnation)
            }
            Some(fields) => Claim::Incarnation(fields.incarnation),
        };
        if let Some(current) = &self.current
            && current.claim == claim
        {
            let (session, finished) = (current.number, current.finished.contains(id));
            return if finished { Admission::Finished } else { Admission::Confirm { session } };
        }
        self.propose(claim, now, young, new_session)
    }

    /// A packet carries session `number`, which proves that the client has learnt it (SESSION-3).
    pub(crate) fn confirm(&mut self, number: u32) -> Confirmation {
        if self.is_current(number) {
            return Confirmation::Known;
        }
        if self.candidate.as_ref().is_none_or(|candidate| candidate.number != number) {
            return Confirmation::Stale;
        }
        let displaced = self.current.take().map(|session| session.number);
        self.current = self.candidate.take();
        Confirmation::Established { displaced }
    }

    /// Whether `number` is the current session: its client has proved its address.
    pub(crate) fn is_current(&self, number: u32) -> bool {
        self.current.as_ref().is_some_and(|current| current.number == number)
    }

    /// Whether a client has proved this address.
    pub(crate) const fn is_established(&self) -> bool {
        self.current.is_some()
    }

    /// Number of the current session.
    pub(crate) fn session(&self) -> Option<u32> {
        self.current.as_ref().map(|session| session.number)
    }

    /// Notes that request `id` of session `number` will not be executed (again).
    pub(crate) fn finish(&mut self, number: u32, id: u64) {
        if let Some(session) = self.current.as_mut().filter(|session| session.number == number) {
            session.finished.insert(id);
        }
    }

    /// Whether request `id` was finished in the current session.
    pub(crate) fn is_finished(&self, id: u64) -> bool {
        self.current.as_ref().is_some_and(|session| session.finished.contains(id))
    }

    /// Drops the candidate if it has this number; its last request was disowned or given up.
    pub(crate) fn withdraw(&mut self, number: u32) {
        self.candidate.take_if(|candidate| candidate.number == number);
    }

    /// Takes the client's statement that all its calls below a certain id are over.
    pub(crate) fn note_low_water(&mut self, id: u64, fields: &UdpFields) {
        let distance = u64::from(fields.low_water);
        if fields.low_water != UdpFields::LOW_WATER_UNKNOWN
            && fields.flags.contains(Flags::SESSION)
            && let Some(current) = &mut self.current
            && current.number == fields.incarnation
            && let Finished::Dense(finished) = &mut current.finished
        {
            finished.raise_low(id.saturating_sub(2 * distance));
        }
    }

    fn admit_kernel(&mut self, id: u64, now: Instant) -> Admission {
        let session = self.current.get_or_insert_with(|| Session {
            number: 0,
            claim: Claim::Kernel,
            finished: Finished::Sparse(SparseIds::default()),
            since: now,
        });
        if session.finished.contains(id) {
            return Admission::Finished;
        }
        Admission::Fresh { session: session.number, confirmation: Confirmation::Known }
    }

    /// The packet carries the current session.
    fn admit_in_session(
        &mut self,
        id: u64,
        fields: &UdpFields,
        confirmation: Confirmation,
    ) -> Admission {
        self.note_low_water(id, fields);
        if self.is_finished(id) {
            return Admission::Finished;
        }
        Admission::Fresh { session: fields.incarnation, confirmation }
    }

    /// The candidate for `claim`, made if necessary and possible.
    fn propose(
        &mut self,
        claim: Claim,
        now: Instant,
        young: u64,
        new_session: impl FnOnce() -> u32,
    ) -> Admission {
        match &self.candidate {
            Some(candidate) if candidate.claim == claim => {
                return Admission::Confirm { session: candidate.number };
            }
            Some(candidate) if now.since(candidate.since) < young => return Admission::Occupied,
            _ => {}
        }
        let number = new_session();
        let finished = Finished::Dense(FinishedIds::default());
        self.candidate = Some(Session { number, claim, finished, since: now });
        Admission::Confirm { session: number }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YOUNG: u64 = 100;

    fn fresh_client(incarnation: u32) -> UdpFields {
        UdpFields { incarnation, ..UdpFields::default() }
    }

    fn in_session(number: u32, low_water: u32) -> UdpFields {
        UdpFields { flags: Flags::SESSION, incarnation: number, low_water, ..UdpFields::default() }
    }

    fn admit(serving: &mut Serving, at: u64, id: u64, fields: UdpFields) -> Admission {
        serving.admit(id, Some(&fields), Instant::from_nanos(at), YOUNG, || 7_000 + at as u32)
    }

    /// A client of incarnation 1 whose session is 7000.
    fn established() -> Serving {
        let mut serving = Serving::default();
        let asked = admit(&mut serving, 0, 2, fresh_client(1));
        assert_eq!(asked, Admission::Confirm { session: 7_000 });
        let established = Confirmation::Established { displaced: None };
        assert_eq!(serving.confirm(7_000), established);
        serving
    }

    fn fresh(session: u32) -> Admission {
        Admission::Fresh { session, confirmation: Confirmation::Known }
    }

    #[test]
    fn the_first_contact_is_held_until_it_is_confirmed() {
        let mut serving = Serving::default();
        let confirm = Admission::Confirm { session: 7_000 };
        assert_eq!(admit(&mut serving, 0, 2, fresh_client(1)), confirm);
        assert_eq!(admit(&mut serving, 5, 4, fresh_client(1)), confirm, "the same question");
        assert!(!serving.is_established());
        assert_eq!(serving.confirm(6_999), Confirmation::Stale, "SESSION-3");
        // A request that carries the session is as good as a confirmation.
        let confirmation = Confirmation::Established { displaced: None };
        let admitted = admit(&mut serving, 9, 6, in_session(7_000, 2));
        assert_eq!(admitted, Admission::Fresh { session: 7_000, confirmation });
    }

    #[test]
    fn within_a_session_no_question_is_asked_and_nothing_is_executed_twice() {
        let mut serving = established();
        assert_eq!(admit(&mut serving, 1, 4, in_session(7_000, 1)), fresh(7_000));
        serving.finish(7_000, 4);
        assert_eq!(admit(&mut serving, 2, 4, in_session(7_000, 0)), Admission::Finished);
        // A late duplicate from before the session was known is asked about, or known as finished.
        assert_eq!(admit(&mut serving, 3, 4, fresh_client(1)), Admission::Finished);
        let confirm = Admission::Confirm { session: 7_000 };
        assert_eq!(admit(&mut serving, 3, 8, fresh_client(1)), confirm, "SESSION-2");
    }

    #[test]
    fn what_the_client_gave_up_is_refused_for_ever() {
        let mut serving = established();
        assert_eq!(admit(&mut serving, 1, 20, in_session(7_000, 1)), fresh(7_000));
        assert_eq!(admit(&mut serving, 2, 16, in_session(7_000, 0)), Admission::Finished);
        assert_eq!(admit(&mut serving, 2, 18, in_session(7_000, 0)), fresh(7_000));
        let unknown = UdpFields::LOW_WATER_UNKNOWN;
        assert_eq!(admit(&mut serving, 3, 1 << 40, in_session(7_000, unknown)), fresh(7_000));
        assert_eq!(admit(&mut serving, 4, 18, in_session(7_000, unknown)), fresh(7_000));
    }

    #[test]
    fn a_restarted_client_displaces_its_earlier_life_only_after_confirming() {
        let mut serving = established();
        let confirm = Admission::Confirm { session: 7_010 };
        assert_eq!(admit(&mut serving, 10, 900, fresh_client(2)), confirm);
        assert_eq!(admit(&mut serving, 11, 4, in_session(7_000, 0)), fresh(7_000));
        let established = Confirmation::Established { displaced: Some(7_000) };
        assert_eq!(serving.confirm(7_010), established);
        assert_eq!(serving.confirm(7_000), Confirmation::Stale);
    }

    #[test]
    fn a_session_that_was_forgotten_is_asked_about_again() {
        let mut serving = Serving::default();
        let confirm = Admission::Confirm { session: 7_000 };
        assert_eq!(admit(&mut serving, 0, 2, in_session(55, 0)), confirm);
        assert_eq!(admit(&mut serving, 1, 4, in_session(55, 1)), confirm);
    }

    #[test]
    fn a_young_first_contact_is_not_disturbed() {
        let mut serving = Serving::default();
        admit(&mut serving, 0, 2, fresh_client(1));
        assert_eq!(admit(&mut serving, 50, 9, fresh_client(2)), Admission::Occupied, "SESSION-4");
        let confirm = Admission::Confirm { session: 7_100 };
        assert_eq!(admit(&mut serving, 100, 9, fresh_client(2)), confirm, "old enough");
        assert_eq!(serving.confirm(7_000), Confirmation::Stale);
        serving.withdraw(7_000);
        assert_eq!(admit(&mut serving, 101, 9, fresh_client(2)), confirm);
        serving.withdraw(7_100);
        let again = Admission::Confirm { session: 7_102 };
        assert_eq!(admit(&mut serving, 102, 9, fresh_client(1)), again);
    }

    #[test]
    fn the_kernel_profile_has_one_session_and_remembers_what_is_finished() {
        let mut serving = Serving::default();
        let admit = |serving: &mut Serving, id| {
            serving.admit(id, None, Instant::ZERO, YOUNG, || unreachable!("no sessions"))
        };
        assert_eq!(admit(&mut serving, 2), fresh(0));
        serving.finish(0, 2);
        assert_eq!(admit(&mut serving, 2), Admission::Finished);
        assert_eq!(admit(&mut serving, 4), fresh(0));
    }

    /// Requirement CAP-11: a client of eight servers, one of whose requests has lost its first packet.
    #[test]
    fn in_the_kernel_profile_a_request_may_be_overtaken_by_many() {
        let mut serving = Serving::default();
        let mut admit = |id| {
            let admitted = serving.admit(id, None, Instant::ZERO, YOUNG, || unreachable!());
            serving.finish(0, id);
            admitted
        };
        for call in 1..10_000 {
            assert_eq!(admit(16 * call), fresh(0));
        }
        assert_eq!(admit(2), fresh(0), "it comes after 80,000 calls of its host");
        assert_eq!(admit(2), Admission::Finished);
    }
}
