//! Stateless session challenges: the session offered to an unknown client, and the check of a
//! session that it shows.
//!
//! A session is a keyed hash of the client's address, its claim (a statement of its packet about
//! itself) and the time. A client that repeats it has recently received it at that address. No
//! state is kept about an unknown client, so a flood of forged first contacts takes no place from
//! an honest one ([ADR 36](../../docs/adr/0036-unknown-clients-are-asked-without-state.md)).
//!
//! # Invariants
//!
//! - **CHALLENGE-1** A number is accepted for one to two [`SLOT`]s after it was offered.
//! - **CHALLENGE-2** (AMO-2) A number is not accepted after its session has ended: the finished ids
//!   of the session are gone, and a late duplicate would be executed again. The end of a session
//!   that could still be accepted therefore changes the *generation* of its address, and with that
//!   all numbers.

use super::Address;
use crate::secret::{Purpose, Secret};
use crate::time::Instant;

/// Lifetime of an offered number, in nanoseconds.
///
/// Chosen by us: longer than a client keeps retrying a silent server, and shorter than the time in
/// which an address changes hands.
pub(crate) const SLOT: u64 = 30_000_000_000;

/// Addresses share generations by this many, so that they take a bounded memory. An address cannot
/// choose whose generation it shares: the secret decides.
const GENERATIONS: usize = 1 << 10;

/// Bits of a session.
const SESSION_BITS: u32 = 48;

/// The keys and generations that determine session numbers.
#[derive(Debug)]
pub(crate) struct Challenges {
    secret: Secret,
    generations: Box<[u32; GENERATIONS]>,
}

/// The time of a session's offer, in [`SLOT`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Slot(u64);

impl Slot {
    fn at(now: Instant) -> Self {
        Self(now.as_nanos() / SLOT)
    }

    /// Whether numbers that were offered then are still accepted.
    fn is_open(self, now: Instant) -> bool {
        Self::at(now).0 <= self.0 + 1
    }
}

impl Challenges {
    pub(crate) fn new(secret: Secret) -> Self {
        Self { secret, generations: Box::new([0; GENERATIONS]) }
    }

    /// The session that is offered to the client at `address` that made this claim.
    pub(crate) fn offer(&self, address: Address, claim: u32, now: Instant) -> u64 {
        self.number(address, claim, Slot::at(now))
    }

    /// When session `number` was offered to this client; `None` if it was not, or too long ago.
    pub(crate) fn accept(
        &self,
        address: Address,
        claim: u32,
        number: u64,
        now: Instant,
    ) -> Option<Slot> {
        let present = Slot::at(now);
        let before = Slot(present.0.wrapping_sub(1));
        [present, before].into_iter().find(|slot| self.number(address, claim, *slot) == number)
    }

    /// A session of this client has ended that was offered in `slot`.
    pub(crate) fn end(&mut self, address: Address, slot: Slot, now: Instant) {
        if slot.is_open(now) {
            let place = self.place(address);
            self.generations[place] = self.generations[place].wrapping_add(1);
        }
    }

    fn number(&self, address: Address, claim: u32, slot: Slot) -> u64 {
        let generation = self.generations[self.place(address)];
        let about = [u64::from(claim), u64::from(generation), slot.0];
        let number = self.secret.number_about(Purpose::Session, address, about);
        let number = number >> (u64::BITS - SESSION_BITS);
        // A short one would look like a session of an older version (WIRE-33).
        if number >> 32 == 0 { number | 1 << (SESSION_BITS - 1) } else { number }
    }

    fn place(&self, address: Address) -> usize {
        self.secret.number_of(Purpose::Generation, address) as usize % GENERATIONS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u16) -> Address {
        Address::from(([10, 0, 0, 1], n))
    }

    fn slots(n: u64) -> Instant {
        Instant::from_nanos(n * SLOT)
    }

    #[test]
    fn a_number_is_good_for_its_address_its_claim_and_its_time() {
        let challenges = Challenges::new(Secret::new(1));
        let number = challenges.offer(address(1), 7, slots(3));
        assert!(number < 1 << 48);
        let accept = |n, claim, number, now| challenges.accept(address(n), claim, number, now);
        assert_eq!(accept(1, 7, number, slots(3)), Some(Slot(3)));
        let late = Instant::from_nanos(5 * SLOT - 1);
        assert_eq!(accept(1, 7, number, late), Some(Slot(3)), "CHALLENGE-1");
        assert_eq!(accept(1, 7, number, slots(5)), None, "CHALLENGE-1");
        assert_eq!(accept(2, 7, number, slots(3)), None);
        assert_eq!(accept(1, 8, number, slots(3)), None);
        assert_eq!(accept(1, 7, number ^ 1, slots(3)), None);
        let other = Challenges::new(Secret::new(2));
        assert_eq!(other.accept(address(1), 7, number, slots(3)), None);
    }

    /// CHALLENGE-2.
    #[test]
    fn a_number_is_not_good_after_the_end_of_its_session() {
        let mut challenges = Challenges::new(Secret::new(1));
        let number = challenges.offer(address(1), 7, slots(3));
        let slot = challenges.accept(address(1), 7, number, slots(4)).unwrap();
        challenges.end(address(1), slot, slots(4));
        assert_eq!(challenges.accept(address(1), 7, number, slots(4)), None);
        // The next number differs, and its end after its lifetime changes nothing.
        let next = challenges.offer(address(1), 7, slots(4));
        assert_ne!(next, number);
        challenges.end(address(1), Slot(4), slots(6));
        assert_eq!(challenges.offer(address(1), 7, slots(4)), next);
    }
}
