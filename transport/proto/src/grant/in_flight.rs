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
//! - **INFLIGHT-1** `bytes` is the sum of the shares over all incoming messages, and `through` the
//!   part of it that does not belong to candidates.

use super::by_host::ByHost;
use crate::allowed::Allowed;
use crate::config::Config;
use crate::peer::HostId;
use crate::rpc::InFlightShare;
use smallvec::SmallVec;

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
    bytes: ByHost,
    /// Bytes of the messages that need no further GRANT. They are served before all others.
    through: ByHost,
}

/// The bytes in flight of active messages up to one of them in SRPT order, by host.
#[derive(Debug, Default)]
pub(super) struct Upto(SmallVec<[(HostId, u64); 8]>);

impl Upto {
    /// Adds a message of `host`.
    pub(super) fn add(&mut self, host: HostId, share: InFlightShare) {
        let bytes = share.bytes.term();
        match self.0.iter_mut().find(|(other, _)| *other == host) {
            Some((_, sum)) => *sum += bytes,
            None => self.0.push((host, bytes)),
        }
    }

    /// The share of a message of `host` that was added has grown from `old` to `new`.
    pub(super) fn grow(&mut self, host: HostId, old: InFlightShare, new: InFlightShare) {
        if let Some((_, sum)) = self.0.iter_mut().find(|(other, _)| *other == host) {
            *sum = (*sum + new.bytes.term()).saturating_sub(old.bytes.term());
        }
    }
}

impl InFlight {
    pub(super) fn new(config: &Config) -> Self {
        let wanted = if config.informs() { config.informed_incoming() } else { 0 };
        let round_trip = config.learns_one_level().then(|| wanted * 10 / ROUND_TRIP_TENTHS);
        let (bytes, through) = (ByHost::new(wanted), ByHost::new(wanted));
        Self { wanted, round_trip, limit: wanted, bytes, through }
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
        self.bytes.set_limit(self.limit);
        self.through.set_limit(self.limit);
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

    /// The share of a message that holds `held` bytes, of which `waiting` were at its sender: at
    /// most the limit (GRANT-16).
    pub(super) fn share(&self, held: Allowed, waiting: Allowed, grantable: bool) -> InFlightShare {
        let on_way = held.get().saturating_sub(self.excess(waiting.get()));
        InFlightShare { bytes: Allowed::at_most(on_way, self.limit()), grantable }
    }

    /// Replaces the share `old` of a message of `host` by `new`. Returns whether room was freed.
    pub(super) fn change(&mut self, host: HostId, old: InFlightShare, new: InFlightShare) -> bool {
        if old == new {
            return false;
        }
        let through =
            |share: InFlightShare| if share.grantable { Allowed::NONE } else { share.bytes };
        self.bytes.change(host, old.bytes, new.bytes);
        self.through.change(host, through(old), through(new));
        new.bytes < old.bytes
    }

    /// Makes `host` doubtful, or trusts it again (GRANT-21).
    pub(super) fn doubt(&mut self, host: HostId, is_doubtful: bool) {
        self.bytes.doubt(host, is_doubtful);
        self.through.doubt(host, is_doubtful);
    }

    /// Bytes that a message of `host` may be granted if it and the active messages before it are
    /// `upto`. Messages that need no GRANT count in addition. The bytes of a doubtful host count up
    /// to half of the limit for others (GRANT-21).
    ///
    /// A message that is shorter than all others so gets its first GRANT although the others have
    /// all they may have: half of the limit is left for this. It overtakes them by its priority.
    pub(super) fn room(&self, host: HostId, upto: &Upto) -> u32 {
        let active = |(other, bytes): &(HostId, u64)| {
            let through = self.through.of(*other);
            if *other == host {
                *bytes
            } else {
                self.through.counts(*other, through + bytes) - self.through.counts(*other, through)
            }
        };
        let upto = self.through.for_host(host) + upto.0.iter().map(active).sum::<u64>();
        let most = (self.limit + self.limit / 2).saturating_sub(self.bytes.for_host(host));
        let room = self.limit.saturating_sub(upto).min(most);
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
    use super::super::by_host::tests::{bytes, hosts};
    use super::*;

    fn upto(messages: &[(HostId, InFlightShare)]) -> Upto {
        let mut upto = Upto::default();
        messages.iter().for_each(|(host, share)| upto.add(*host, *share));
        upto
    }

    fn in_flight() -> InFlight {
        InFlight::new(&Config::builder().informed_incoming(18_000).build().unwrap())
    }

    #[test]
    fn what_waits_at_a_sender_beyond_a_step_is_not_counted() {
        let in_flight = in_flight();
        assert_eq!(in_flight.step(), 3_000);
        let share = |held, waiting| in_flight.share(bytes(held), bytes(waiting), true).bytes.get();
        let of_12_000 = |waiting| share(12_000, waiting);
        let waiting = [0, 3_000, 4_000, 15_000, u32::MAX];
        assert_eq!(waiting.map(of_12_000), [12_000, 12_000, 11_000, 0, 0]);
        assert_eq!(share(1_000_000, 0), 18_000, "GRANT-16");
    }

    /// GRANT-15.
    #[test]
    fn the_limit_holds_for_a_message_and_those_before_it_and_half_more_for_all() {
        let [host] = hosts();
        let mut in_flight = in_flight();
        let none = InFlightShare::default();
        let long = in_flight.share(bytes(18_000), Allowed::NONE, true);
        assert!(!in_flight.change(host, none, long));
        assert_eq!(in_flight.room(host, &upto(&[(host, long)])), 0, "it has all it may have");
        assert_eq!(in_flight.room(host, &upto(&[])), 9_000, "a shorter one has the half");
        let ending = in_flight.share(bytes(5_000), Allowed::NONE, false);
        in_flight.change(host, none, ending);
        assert_eq!(in_flight.room(host, &upto(&[])), 4_000);
        assert!(in_flight.change(host, ending, none) && in_flight.change(host, long, none));
        assert_eq!((in_flight.bytes.all(), in_flight.through.all()), (0, 0));
    }

    /// GRANT-21.
    #[test]
    fn the_bytes_of_a_doubtful_host_leave_half_of_the_limit_to_others() {
        let [one, other] = hosts();
        let mut in_flight = in_flight();
        let none = InFlightShare::default();
        let granted = in_flight.share(bytes(18_000), Allowed::NONE, false);
        let active = in_flight.share(bytes(18_000), Allowed::NONE, true);
        for share in [granted, active] {
            in_flight.change(one, none, share);
        }
        assert_eq!(in_flight.room(other, &upto(&[(one, active)])), 0);
        in_flight.doubt(one, true);
        assert_eq!(in_flight.room(one, &upto(&[(one, active)])), 0);
        assert_eq!(in_flight.room(other, &upto(&[(one, active)])), 9_000);
        let own = in_flight.share(bytes(4_000), Allowed::NONE, true);
        in_flight.change(other, none, own);
        assert_eq!(in_flight.room(other, &upto(&[(one, active), (other, own)])), 5_000);
    }

    /// Found by the swarm: a sixth of such a limit never fitted into `max_incoming`, so no message
    /// was granted anything.
    #[test]
    fn the_limit_is_no_more_than_max_incoming() {
        let mut in_flight = in_flight();
        in_flight.set_max_incoming(2_000);
        let [host] = hosts();
        assert_eq!((in_flight.limit(), in_flight.step()), (2_000, 334));
        assert_eq!(in_flight.room(host, &upto(&[])), 2_000);
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
