//! Bytes in flight from senders that report their backlog.
//!
//! A receiver that cannot see which senders are busy grants to several, so that its link does not
//! idle, and pays with queues in the switch before it. If a sender reports how many granted bytes
//! wait with it (WIRE-34), its message is *informed about*: waiting bytes fill no queue and are not
//! counted, so the rest can be limited to little more than the link needs to stay full. Source:
//! SIRD (NSDI 2025), whose senders report with a bit that they are busy; docs/networks.md.
//!
//! # Invariants
//!
//! - **INFLIGHT-1** `bytes` is the sum of the shares over all incoming messages, and `grantable`
//!   the part of it that belongs to candidates.

use crate::config::Config;
use crate::rpc::InFlightShare;

/// The bytes in flight, and their limits (GRANT-15).
#[derive(Debug)]
pub(super) struct InFlight {
    /// `informed_incoming`, or its learned replacement; 0 if nothing is counted.
    wanted: u64,
    /// With one level: the bytes that the link carries in a round-trip time, derived from
    /// `informed_incoming`.
    round_trip: Option<u64>,
    /// The smaller of `wanted` and `max_incoming`.
    limit: u64,
    bytes: u64,
    grantable: u64,
}

impl InFlight {
    pub(super) fn new(config: &Config) -> Self {
        let wanted = if config.informs() { config.informed_incoming() } else { 0 };
        let round_trip = config.learns_one_level().then(|| wanted * 10 / ROUND_TRIP_TENTHS);
        Self { wanted, round_trip, limit: wanted, bytes: 0, grantable: 0 }
    }

    /// Unscheduled bytes leave `free` thousandths of the link. Returns whether limits follow from
    /// that (GRANT-20); [`InFlight::set_max_incoming`] must be called then.
    pub(super) fn set_free(&mut self, free: u64) -> bool {
        let Some(round_trip) = self.round_trip else { return false };
        self.wanted = (round_trip * free.clamp(LEAST_FREE, 1_000) / 1_000).max(1);
        true
    }

    /// Sets the limit on granted bytes of all messages together: more are never in flight, and a
    /// longer step would never fit.
    pub(super) fn set_max_incoming(&mut self, bytes: u64) {
        self.limit = self.wanted.min(bytes);
    }

    /// Whether senders are listened to.
    pub(super) const fn is_on(&self) -> bool {
        self.wanted > 0
    }

    /// Most bytes in flight: `informed_incoming`, its learned replacement, or `max_incoming` if it
    /// is less.
    pub(super) fn limit(&self) -> u32 {
        u32::try_from(self.limit).unwrap_or(u32::MAX)
    }

    /// The smaller of `max_incoming` and the limit of bytes in flight.
    pub(super) fn cap(&self, max_incoming: u64) -> u64 {
        if self.is_on() { max_incoming.min(self.limit) } else { max_incoming }
    }

    /// Least bytes of a GRANT.
    pub(super) fn step(&self) -> u32 {
        u32::try_from(self.limit.div_ceil(STEPS)).unwrap_or(u32::MAX)
    }

    /// The excess of `waiting` bytes at the sender of a message: one step may wait there, since
    /// GRANTs are issued in steps.
    pub(super) fn excess(&self, waiting: u32) -> u32 {
        waiting.saturating_sub(self.step())
    }

    /// The share of a message with `outstanding` granted and not received bytes, of which `waiting`
    /// were at its sender: at most the limit, whatever the message announces (GRANT-16).
    pub(super) fn share(&self, outstanding: u32, waiting: u32, grantable: bool) -> InFlightShare {
        let bytes = outstanding.saturating_sub(self.excess(waiting)).min(self.limit());
        InFlightShare { bytes, grantable }
    }

    /// Replaces the share `old` of a message by `new`. Returns whether room was freed.
    pub(super) fn change(&mut self, old: InFlightShare, new: InFlightShare) -> bool {
        let grantable =
            |share: InFlightShare| if share.grantable { u64::from(share.bytes) } else { 0 };
        debug_assert!(
            self.bytes >= u64::from(old.bytes) && self.grantable >= grantable(old),
            "INFLIGHT-1"
        );
        self.bytes = self.bytes - u64::from(old.bytes) + u64::from(new.bytes);
        self.grantable = self.grantable - grantable(old) + grantable(new);
        new.bytes < old.bytes
    }

    /// Bytes of the messages that need no further GRANT. They are served before all others.
    pub(super) const fn granted_through(&self) -> u64 {
        self.bytes - self.grantable
    }

    /// Bytes that a message may be granted if it and the messages before it have `upto` bytes in
    /// flight.
    ///
    /// A message that is shorter than all others so gets its first GRANT although the others have
    /// all they may have: half of the limit is left for this. It overtakes them by its priority.
    pub(super) fn room(&self, upto: u64) -> u32 {
        let most = self.limit + self.limit / 2;
        let room = self.limit.saturating_sub(upto).min(most.saturating_sub(self.bytes));
        u32::try_from(room).unwrap_or(u32::MAX)
    }
}

/// `informed_incoming` is this number of tenths of the bytes that the link carries in a round-trip
/// time, as its description states.
const ROUND_TRIP_TENTHS: u64 = 18;

/// Thousandths of the link that are left to granted bytes at least. Chosen by us: long messages
/// must move on in any case.
const LEAST_FREE: u64 = 100;

/// A step is one part in this number of the limit. Chosen by us: two packets of 1.5 kB at 10
/// Gbit/s. Steps of three packets make messages of the mean length 4 % slower, and one packet costs
/// twice as many GRANTs (lab/log, 2026-11-28).
pub(super) const STEPS: u64 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn in_flight() -> InFlight {
        InFlight::new(&Config::builder().informed_incoming(18_000).build().unwrap())
    }

    #[test]
    fn what_waits_at_a_sender_beyond_a_step_is_not_counted() {
        let in_flight = in_flight();
        assert_eq!(in_flight.step(), 3_000);
        let bytes = |waiting| in_flight.share(12_000, waiting, true).bytes;
        assert_eq!([0, 3_000, 4_000, 15_000, u32::MAX].map(bytes), [12_000, 12_000, 11_000, 0, 0]);
        assert_eq!(in_flight.share(1_000_000, 0, false).bytes, 18_000, "GRANT-16");
    }

    /// GRANT-15.
    #[test]
    fn the_limit_holds_for_a_message_and_those_before_it_and_half_more_for_all() {
        let mut in_flight = in_flight();
        let none = InFlightShare::default();
        let long = in_flight.share(18_000, 0, true);
        assert!(!in_flight.change(none, long));
        assert_eq!(in_flight.room(18_000), 0, "it has all it may have");
        assert_eq!(in_flight.room(0), 9_000, "a shorter one has the half");
        let ending = in_flight.share(5_000, 0, false);
        in_flight.change(none, ending);
        assert_eq!(in_flight.granted_through(), 5_000);
        assert_eq!(in_flight.room(5_000), 4_000);
        assert!(in_flight.change(ending, none) && in_flight.change(long, none));
        assert_eq!((in_flight.bytes, in_flight.grantable), (0, 0));
    }

    /// Found by the swarm: a sixth of such a limit never fitted into `max_incoming`, so no message
    /// was granted anything.
    #[test]
    fn the_limit_is_no_more_than_max_incoming() {
        let mut in_flight = in_flight();
        in_flight.set_max_incoming(2_000);
        assert_eq!((in_flight.limit(), in_flight.step(), in_flight.room(0)), (2_000, 334, 2_000));
        in_flight.set_max_incoming(1_000_000);
        assert_eq!((in_flight.limit(), in_flight.step()), (18_000, 3_000));
    }

    /// GRANT-20.
    #[test]
    fn with_one_level_unscheduled_bytes_take_their_part_of_the_link_from_granted_ones() {
        let limits = |levels| {
            let config = Config::builder().informed_incoming(18_000).num_priorities(levels);
            let mut in_flight = InFlight::new(&config.build().unwrap());
            [1_000, 457, 0].map(|free| {
                in_flight.set_free(free);
                in_flight.set_max_incoming(68_000);
                in_flight.limit()
            })
        };
        assert_eq!(limits(1), [10_000, 4_570, 1_000]);
        assert_eq!(limits(2), [18_000; 3]);
    }

    #[test]
    fn without_a_limit_it_is_off() {
        assert!(!InFlight::new(&Config::default()).is_on());
    }
}
