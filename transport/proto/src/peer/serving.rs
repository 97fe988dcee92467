//! Sessions: whether a request that has just arrived may be executed.
//!
//! The network may keep a packet for longer than any state is kept, so a server without memory of a
//! client cannot tell a new request from one that was executed long ago. It asks: it offers a
//! *session*, a number that only this client receives ([`super::Challenges`]), forgets the request,
//! and executes it when the client sends it again with that number. From then on the client puts
//! the session into its packets, and the server remembers the finished ids of the session.
//!
//! ```text
//!   client                                  server
//!     | -- DATA, incarnation C ---------------> |  no session: offer S, keep nothing
//!     | <---------- NEED_ACK+CONFIRM, S, C ---- |
//!     | -- DATA+CONFIRM, S, C ----------------> |  S becomes the current session; execute
//!     | -- DATA, S ---------------------------> |  later requests: no question asked
//! ```
//!
//! # Invariants (requirements AMO-1, AMO-2, AMO-4)
//!
//! - **SESSION-1** A request is executed only in the current session, and only if its id is not
//!   finished there.
//! - **SESSION-2** A session becomes current only by DATA that carries its number and claim: its
//!   client has received the offer, and the call is live.
//! - **SESSION-3** A replaced session never becomes current again (CHALLENGE-2).
//!
//! The kernel profile (AMO-7) has no sessions on the wire: one is always current, with numbers for
//! the lives of the host ([`HostLives`], AMO-10). Remembering finished ids narrows the kernel's
//! known hole (docs/reference/homa-module.md, *At most once*).

use super::host_lives::{HostLives, RequestSign};
use super::{FinishedIds, Slot};
use crate::time::Instant;
use apus_wire::{Flags, UdpFields};

/// The session of a client with this endpoint.
#[derive(Debug)]
pub(crate) struct Session {
    number: u64,
    /// Statement of its client about itself, for which it was offered.
    claim: u32,
    /// When it was offered.
    offered: Slot,
    /// Requests that were executed, refused or given up.
    finished: Finished,
}

/// Finished ids.
#[derive(Debug)]
enum Finished {
    /// Udp profile: ids are dense (RPC-7).
    Dense(FinishedIds),
    /// Kernel profile.
    Sparse(Box<HostLives>),
}

impl Finished {
    fn contains(&self, id: u64) -> bool {
        match self {
            Self::Dense(ids) => ids.contains(id),
            Self::Sparse(lives) => lives.is_finished(id),
        }
    }

    /// Memory of the ids that are kept one by one, in bytes.
    fn memory(&self) -> usize {
        match self {
            Self::Dense(ids) => ids.memory(),
            Self::Sparse(lives) => lives.memory(),
        }
    }
}

/// The requests of one peer to this endpoint.
#[derive(Debug, Default)]
pub(crate) struct Serving {
    current: Option<Session>,
}

/// Where a packet of a client belongs, compared with the session that is known at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It carries that session.
    Current,
    /// It left its client before that had learnt of the session.
    Before {
        /// The session.
        session: u64,
    },
    /// Another client, another life of the same one, or a session that is no longer known.
    Unknown,
}

/// A session that was current and has been replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Displaced {
    /// Its number.
    pub(crate) number: u64,
    /// When it was offered.
    pub(crate) offered: Slot,
}

impl Serving {
    /// Where a packet with these fields belongs, compared with the current session.
    pub(crate) fn standing(&self, fields: &UdpFields) -> Standing {
        let in_session = fields.flags.contains(Flags::SESSION);
        match &self.current {
            Some(current) if in_session && current.number == fields.incarnation => {
                Standing::Current
            }
            Some(current) if current.claim == UdpFields::claim(fields.incarnation) => {
                Standing::Before { session: current.number }
            }
            _ => Standing::Unknown,
        }
    }

    /// Makes session `number` current, which the client has shown and which was offered for `claim`
    /// in the slot `offered` (SESSION-2). Returns the session that was current before.
    pub(crate) fn establish(
        &mut self,
        number: u64,
        claim: u32,
        offered: Slot,
    ) -> Option<Displaced> {
        let finished = Finished::Dense(FinishedIds::default());
        let before = self.current.replace(Session { number, claim, offered, finished });
        before.map(|before| Displaced { number: before.number, offered: before.offered })
    }

    /// Whether `number` is the current session: its client has proved its address.
    pub(crate) fn is_current(&self, number: u64) -> bool {
        self.current.as_ref().is_some_and(|current| current.number == number)
    }

    /// Whether a client has proved this address.
    pub(crate) const fn is_established(&self) -> bool {
        self.current.is_some()
    }

    /// When the current session was offered.
    pub(crate) fn offered(&self) -> Option<Slot> {
        self.current.as_ref().map(|session| session.offered)
    }

    /// Number of the current session.
    pub(crate) fn session(&self) -> Option<u64> {
        self.current.as_ref().map(|session| session.number)
    }

    /// Memory of the finished ids that are kept one by one, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.current.as_ref().map_or(0, |session| session.finished.memory())
    }

    /// The client is idle, so that its calls are over (CAP-22): all ids up to the highest finished one
    /// count as finished, and take no memory.
    pub(crate) fn rest(&mut self, now: Instant) {
        match self.current.as_mut().map(|session| &mut session.finished) {
            Some(Finished::Dense(ids)) => ids.close_gaps(),
            Some(Finished::Sparse(lives)) => lives.rest(now),
            None => {}
        }
    }

    /// Frees about half of the memory of finished ids: ids below them count as finished (CAP-22).
    pub(crate) fn close_some_gaps(&mut self, now: Instant) {
        match self.current.as_mut().map(|session| &mut session.finished) {
            Some(Finished::Dense(ids)) => ids.close_some_gaps(),
            Some(Finished::Sparse(lives)) => lives.close_some(now),
            None => {}
        }
    }

    /// Records that request `id` of session `number` will not be executed (again). Returns whether
    /// that takes memory: [`Peers::count_ids`](super::Peers::count_ids) must follow then.
    #[must_use = "memory must be counted"]
    pub(crate) fn finish(&mut self, number: u64, id: u64, now: Instant) -> bool {
        let Some(session) = &mut self.current else { return false };
        match &mut session.finished {
            Finished::Dense(ids) if session.number == number => ids.insert(id),
            Finished::Dense(_) => false,
            Finished::Sparse(lives) => lives.finish(number, id, now),
        }
    }

    /// Kernel profile: records a packet of a request. Returns the number of its host's life, and of
    /// the life that it has ended, if any.
    pub(crate) fn note_request(&mut self, sign: RequestSign) -> (u64, Option<u64>) {
        self.lives().note(sign)
    }

    /// Kernel profile: handles a packet about request `id` that arrived at `arrived` or later.
    /// Returns whether the request is finished.
    pub(crate) fn touch(&mut self, id: u64, arrived: Instant, now: Instant) -> bool {
        self.known_lives().is_some_and(|lives| lives.touch(id, arrived, now))
    }

    /// Kernel profile: the client has acked request `id`.
    pub(crate) fn acked(&mut self, id: u64, now: Instant) {
        if let Some(lives) = self.known_lives() {
            lives.acked(id, now);
        }
    }

    /// Kernel profile: ICMP has reported that `port` of the client's host is closed.
    pub(crate) fn port_closed(&mut self, port: u16, now: Instant) {
        if let Some(lives) = self.known_lives() {
            lives.port_closed(port, now);
        }
    }

    /// Kernel profile: a RESEND for the whole response to the finished request `id` has arrived.
    /// Returns whether it is about a call of the next life of its host.
    pub(crate) fn asked_anew(&mut self, id: u64, arrived: Instant) -> bool {
        self.known_lives().is_some_and(|lives| lives.asked_anew(id, arrived))
    }

    fn known_lives(&mut self) -> Option<&mut HostLives> {
        match self.current.as_mut().map(|session| &mut session.finished) {
            Some(Finished::Sparse(lives)) => Some(lives),
            Some(Finished::Dense(_)) | None => None,
        }
    }

    /// Whether request `id` was finished in the current session.
    pub(crate) fn is_finished(&self, id: u64) -> bool {
        self.current.as_ref().is_some_and(|session| session.finished.contains(id))
    }

    /// Applies the low-water mark of these fields, and returns whether request `id` of the current
    /// session is finished; `None` if they do not carry that session.
    #[inline(always)]
    pub(crate) fn check_current(&mut self, id: u64, fields: &UdpFields) -> Option<bool> {
        let shows = fields.flags.contains(Flags::SESSION) && self.is_current(fields.incarnation);
        shows.then(|| {
            self.note_low_water(id, fields);
            self.is_finished(id)
        })
    }

    /// Takes the client's statement that all its calls below a certain id are over.
    pub(crate) fn note_low_water(&mut self, id: u64, fields: &UdpFields) {
        let distance = u64::from(fields.low_water);
        if fields.low_water != UdpFields::LOW_WATER_UNKNOWN
            && fields.flags.contains(Flags::SESSION)
            && !fields.flags.contains(Flags::CONFIRM)
            && let Some(current) = &mut self.current
            && current.number == fields.incarnation
            && let Finished::Dense(finished) = &mut current.finished
        {
            finished.raise_low(id.saturating_sub(2 * distance));
        }
    }

    /// The number of the life that request `id` of a host without sessions belongs to, if it may be
    /// executed: it is not known to be finished (kernel profile).
    pub(crate) fn admit_kernel(&mut self, id: u64) -> Option<u64> {
        let lives = self.lives();
        if lives.is_finished(id) { None } else { Some(lives.number_of(id)) }
    }

    /// Kernel profile: the lives of the host.
    fn lives(&mut self) -> &mut HostLives {
        let session = self.current.get_or_insert_with(|| Session {
            number: 0,
            claim: 0,
            offered: Slot::default(),
            finished: Finished::Sparse(Box::default()),
        });
        match &mut session.finished {
            Finished::Sparse(lives) => lives,
            Finished::Dense(_) => unreachable!("an endpoint has one profile"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_client(incarnation: u64) -> UdpFields {
        UdpFields { incarnation, ..UdpFields::default() }
    }

    fn in_session(number: u64, low_water: u32) -> UdpFields {
        UdpFields { flags: Flags::SESSION, incarnation: number, low_water, ..UdpFields::default() }
    }

    /// A client of incarnation 1 whose session is 7000.
    fn established() -> Serving {
        let mut serving = Serving::default();
        assert_eq!(serving.standing(&new_client(1)), Standing::Unknown);
        assert_eq!(serving.establish(7_000, 1, Slot::default()), None);
        serving
    }

    #[test]
    fn a_packet_carries_the_session_or_left_before_it_was_known_or_is_unknown() {
        let serving = established();
        assert_eq!(serving.standing(&in_session(7_000, 0)), Standing::Current);
        assert_eq!(serving.standing(&new_client(1)), Standing::Before { session: 7_000 });
        assert_eq!(serving.standing(&new_client(2)), Standing::Unknown);
        assert_eq!(serving.standing(&new_client(7_000)), Standing::Unknown, "not a session");
        assert_eq!(serving.standing(&in_session(7_001, 0)), Standing::Unknown);
    }

    #[test]
    fn what_is_finished_or_given_up_is_finished_for_ever() {
        let mut serving = established();
        let _ = serving.finish(7_000, 4, Instant::ZERO);
        let _ = serving.finish(6_999, 6, Instant::ZERO);
        assert!(serving.is_finished(4) && !serving.is_finished(6), "SESSION-1");
        serving.note_low_water(20, &in_session(7_000, 1));
        assert!(serving.is_finished(16) && !serving.is_finished(18));
        serving.note_low_water(1 << 40, &in_session(7_000, UdpFields::LOW_WATER_UNKNOWN));
        serving.note_low_water(1 << 40, &in_session(6_999, 0));
        let flags = Flags::SESSION.with(Flags::CONFIRM);
        serving.note_low_water(1 << 40, &UdpFields { flags, ..in_session(7_000, 0) });
        assert!(!serving.is_finished(18), "no low-water mark, another session, a claim");
    }

    #[test]
    fn a_restarted_client_displaces_its_earlier_life() {
        let mut serving = established();
        let _ = serving.finish(7_000, 4, Instant::ZERO);
        let displaced = Displaced { number: 7_000, offered: Slot::default() };
        assert_eq!(serving.establish(7_010, 2, Slot::default()), Some(displaced));
        assert_eq!(serving.standing(&in_session(7_000, 0)), Standing::Unknown);
        assert!(serving.is_current(7_010) && !serving.is_finished(4));
    }

    #[test]
    fn the_kernel_profile_has_one_session_and_remembers_what_is_finished() {
        let mut serving = Serving::default();
        assert!(serving.admit_kernel(2).is_some());
        let _ = serving.finish(0, 2, Instant::ZERO);
        assert!(serving.admit_kernel(2).is_none());
        assert!(serving.admit_kernel(4).is_some());
    }

    /// Requirement CAP-11: a client of eight servers, one of whose requests has lost its first
    /// packet.
    #[test]
    fn in_the_kernel_profile_a_request_may_be_overtaken_by_many() {
        let mut serving = Serving::default();
        let mut admit = |id| {
            let admitted = serving.admit_kernel(id).is_some();
            let _ = serving.finish(0, id, Instant::ZERO);
            admitted
        };
        for call in 1..10_000 {
            assert!(admit(16 * call));
        }
        assert!(admit(2), "it comes after 80,000 calls of its host");
        assert!(!admit(2));
    }
}
