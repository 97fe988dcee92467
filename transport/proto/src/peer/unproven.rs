//! Limits on answers to senders that have not proven their address.
//!
//! A session challenge, a refusal and RPC_UNKNOWN cost a server a hundred times as much as a
//! dropped packet: each leaves in a separate datagram. A sender that forges addresses could
//! otherwise decide how a server spends its time, or what arrives at a client. A packet that
//! carries its sender's session is always answered.
//!
//! Rationale, from `apus-lab lab hostile`: limits only while the endpoint is behind let a server
//! that keeps up be used against its clients (p50 of honest calls 123 ms, with both limits 6);
//! limits at all times keep newcomers away from idle servers. 20 answers per millisecond while
//! behind keep floods of 195,000 packets a second harmless.
//!
//! # Invariants (requirement BAD-10)
//!
//! - **UNPROVEN-1** An address gets no more answers than [`PER_ADDRESS`] makes in any time and in
//!   [`SAVED`].
//! - **UNPROVEN-2** While the endpoint is behind with reading, no more leave than the rate makes in
//!   that time and in [`SAVED`].
//! - **UNPROVEN-3** Then a host gets at most a [`SHARE`]th of them.
//!
//! Addresses share with others of the same group, and hosts, too. Which group that is depends on a
//! secret.

use super::Address;
use super::hosts::HostAddress;
use crate::time::{Instant, MSEC};
use foldhash::fast::FixedState;
use std::hash::{BuildHasher, Hash};

/// Longest time for which unused answers accumulate, in nanoseconds.
///
/// Chosen by us: a thousand clients that call a busy server at once find a thousand answers.
const SAVED: u64 = 50 * MSEC;

/// Answers per millisecond to an address.
///
/// Chosen by us: reading them takes an innocent client a few hundredths of a core; a client that
/// was restarted while hundreds of its requests were in flight still disclaims them all at once
/// (TIME-15).
const PER_ADDRESS: u64 = 10;

/// Part of all answers that the host of an address gets while the endpoint is behind: one in this
/// number.
///
/// Chosen by us: a sender with one address leaves three quarters to others; the clients behind a
/// NAT still get a quarter.
const SHARE: u64 = 4;

/// Groups of addresses. Chosen by us: 8 KiB, and an honest address rarely shares its group with a
/// flooded one.
const ADDRESSES: usize = 1 << 10;

/// Groups of hosts.
const HOSTS: usize = 1 << 6;

/// Answers to unproven senders.
#[derive(Debug)]
pub(crate) struct UnprovenAnswers {
    all: Meter,
    by_host: [Meter; HOSTS],
    by_address: Box<[Meter; ADDRESSES]>,
    hash: FixedState,
}

impl UnprovenAnswers {
    /// No answer has left. `seed` is secret.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            all: Meter::default(),
            by_host: [Meter::default(); HOSTS],
            by_address: Box::new([Meter::default(); ADDRESSES]),
            hash: FixedState::with_seed(seed),
        }
    }

    /// Counts an answer to `address`, and returns whether it may leave. Of an endpoint that is
    /// `behind` with reading, `per_ms` leave in each millisecond.
    pub(crate) fn take(
        &mut self,
        address: Address,
        now: Instant,
        is_behind: bool,
        per_ms: u64,
    ) -> bool {
        let host = self.group(HostAddress::of(&address), HOSTS);
        let address = self.group(address, ADDRESSES);
        let (of_host, of_address) = (&mut self.by_host[host], &mut self.by_address[address]);
        let is_due = self.all.is_due(now) && of_host.is_due(now);
        let leaves = of_address.is_due(now) && (is_due || !is_behind);
        if leaves {
            of_address.note(now, MSEC / PER_ADDRESS);
        }
        if leaves && is_due {
            self.all.note(now, MSEC / per_ms);
            of_host.note(now, MSEC / per_ms * SHARE);
        }
        leaves
    }

    fn group(&self, member: impl Hash, groups: usize) -> usize {
        self.hash.hash_one(member) as usize % groups
    }
}

/// A rate: when the answers that have left would all have been due.
#[derive(Clone, Copy, Debug, Default)]
struct Meter(Instant);

impl Meter {
    /// Whether another answer is due, or saved from before.
    const fn is_due(self, now: Instant) -> bool {
        self.0.since(now) < SAVED
    }

    /// Records an answer; the next one is due `interval` nanoseconds later.
    fn note(&mut self, now: Instant, interval: u64) {
        self.0 = self.0.max(now).plus(interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PER_MS: u64 = 20;
    const SECOND: u64 = 1_000 * MSEC;

    /// A sender of host `n`.
    fn sender(n: u64) -> Address {
        Address::from(((n as u32).to_be_bytes(), 7))
    }

    /// The answers of the second from `from` on, in each microsecond of which this sender sends a
    /// packet.
    fn of_a_second(
        answers: &mut UnprovenAnswers,
        from: u64,
        is_behind: bool,
        sender: impl Fn(u64) -> Address,
    ) -> u64 {
        let taken = (0..1_000_000).filter(|micros| {
            let now = Instant::from_nanos(from + micros * 1_000);
            answers.take(sender(*micros), now, is_behind, PER_MS)
        });
        taken.count() as u64
    }

    /// UNPROVEN-1, and no limit for all addresses together.
    #[test]
    fn an_address_gets_its_rate_always() {
        let mut answers = UnprovenAnswers::new(1);
        let one = of_a_second(&mut answers, SECOND, false, |_| sender(1));
        assert_eq!(one, (1_000 + 50) * PER_ADDRESS);
        let many = of_a_second(&mut answers, 3 * SECOND, false, sender);
        assert_eq!(many, 1_000_000);
    }

    /// UNPROVEN-2: earlier answers are not held against an endpoint that is behind, but no answers
    /// accumulate then.
    #[test]
    fn a_flood_in_many_names_gets_the_rate() {
        let mut answers = UnprovenAnswers::new(1);
        let mut second = |from, is_behind| of_a_second(&mut answers, from, is_behind, sender);
        assert_eq!(second(SECOND, true), (1_000 + 50) * PER_MS);
        assert_eq!(second(2 * SECOND, true), 1_000 * PER_MS);
        assert_eq!(second(3 * SECOND, false), 1_000_000);
        assert_eq!(second(4 * SECOND, true), 1_000 * PER_MS);
        assert_eq!(second(9 * SECOND, true), (1_000 + 50) * PER_MS);
    }

    /// UNPROVEN-3.
    #[test]
    fn a_host_gets_a_quarter_from_any_number_of_ports() {
        let mut answers = UnprovenAnswers::new(1);
        let port = |n: u64| Address::from(([10, 0, 0, 1], n as u16));
        let taken = of_a_second(&mut answers, SECOND, true, port);
        assert_eq!(taken, (1_000 + 50) * PER_MS / SHARE);
        let other = of_a_second(&mut answers, 2 * SECOND, true, |n| {
            if n % 2 == 0 { port(n) } else { sender(7) }
        });
        assert_eq!(other, (2 * 1_000 + 50) * PER_MS / SHARE);
    }

    /// UNPROVEN-3: the addresses of an IPv6 network are one host.
    #[test]
    fn addresses_of_a_network_share() {
        let mut answers = UnprovenAnswers::new(1);
        let of = |n: u64| Address::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, n as u16], 7));
        let taken = of_a_second(&mut answers, SECOND, true, of);
        assert_eq!(taken, (1_000 + 50) * PER_MS / SHARE);
    }
}
