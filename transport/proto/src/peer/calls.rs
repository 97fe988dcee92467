//! A client's state about one server.

use super::FinishedIds;
use crate::time::Instant;
use apus_wire::UdpFields;

/// Calls to one peer: their ids, and the session that the peer serves them in.
///
/// Ids are dense per server in the udp profile (RPC-7); see [`FinishedIds`].
#[derive(Debug)]
pub(crate) struct Calls {
    /// Id of the next call.
    next_id: u64,
    /// Calls that have ended.
    ended: FinishedIds,
    /// The session that the server has offered, once it was called.
    offer: Option<Offer>,
    /// The session that was forgotten last: the server may still be there, and ask about calls that
    /// have ended.
    former: Option<u64>,
    /// When the session was offered, or a packet last showed that the server has it.
    shown: Instant,
}

/// A session that a server has offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Its number.
    pub(crate) session: u64,
    /// The claim for which the session was offered. DATA repeats it until a packet shows that the
    /// server has the session: a server keeps nothing when it offers one.
    pub(crate) claim: Option<u32>,
}

impl Calls {
    /// No call yet; ids start at `first_id`.
    pub(crate) fn starting_at(first_id: u64) -> Self {
        Self {
            next_id: first_id,
            ended: FinishedIds::starting_at(first_id),
            offer: None,
            former: None,
            shown: Instant::ZERO,
        }
    }

    /// The session that the server has offered, if it is known.
    pub(crate) fn session(&self) -> Option<u64> {
        self.offer.map(|offer| offer.session)
    }

    /// The session that the server has offered last, even if another server may answer there next.
    pub(crate) fn latest_session(&self) -> Option<u64> {
        self.session().or(self.former)
    }

    /// Whether the server recently offered this session.
    pub(crate) fn knows(&self, session: u64) -> bool {
        self.session() == Some(session) || self.former == Some(session)
    }

    /// The claim that DATA of a call in `session` repeats, until the server has shown that it has
    /// the session.
    pub(crate) fn claim(&self, session: u64) -> Option<u32> {
        self.offer.filter(|offer| offer.session == session)?.claim
    }

    /// Accepts an offer of the server at `now`.
    pub(crate) fn accept(&mut self, offer: Offer, now: Instant) {
        self.forget_session();
        self.offer = Some(offer);
        self.shown = now;
    }

    /// Records that the server has shown `session` at `now`.
    #[inline]
    pub(crate) fn note_known(&mut self, session: u64, now: Instant) {
        if let Some(offer) = &mut self.offer
            && offer.session == session
        {
            offer.claim = None;
            self.shown = now;
        }
    }

    /// When the server last showed a session.
    pub(crate) const fn shown(&self) -> Instant {
        self.shown
    }

    /// Drops the session: the next host at this address may be another server.
    pub(crate) fn forget_session(&mut self) {
        if let Some(offer) = self.offer.take() {
            self.former = Some(offer.session);
        }
    }

    /// The id of a new call.
    pub(crate) const fn allocate(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id = id.wrapping_add(2);
        id
    }

    /// The id that the next call will get.
    pub(crate) const fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Records the end of call `id`.
    pub(crate) fn end(&mut self, id: u64) {
        let _ = self.ended.insert(id);
    }

    /// The low-water mark in packets of call `id`: the oldest call that may be live, AMO-8
    /// ([`UdpFields::low_water`]).
    pub(crate) fn low_water(&self, id: u64) -> u32 {
        let distance = id.saturating_sub(self.ended.low()) / 2;
        u32::try_from(distance)
            .unwrap_or(UdpFields::LOW_WATER_UNKNOWN)
            .min(UdpFields::LOW_WATER_UNKNOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requirement AMO-8.
    #[test]
    fn the_low_water_mark_is_the_oldest_call_alive() {
        let mut calls = Calls::starting_at(1_000);
        let ids = [calls.allocate(), calls.allocate(), calls.allocate()];
        assert_eq!(ids, [1_000, 1_002, 1_004]);
        assert_eq!(calls.low_water(1_004), 2);
        calls.end(1_002);
        assert_eq!(calls.low_water(1_004), 2, "1000 still lives");
        calls.end(1_000);
        assert_eq!(calls.low_water(1_004), 0);
    }

    #[test]
    fn a_mark_that_is_too_far_away_is_not_stated() {
        let mut calls = Calls::starting_at(0);
        calls.allocate();
        let far = 2 * u64::from(UdpFields::LOW_WATER_UNKNOWN);
        assert_eq!(calls.low_water(far - 2), UdpFields::LOW_WATER_UNKNOWN - 1);
        assert_eq!(calls.low_water(far), UdpFields::LOW_WATER_UNKNOWN);
        assert_eq!(calls.low_water(u64::MAX), UdpFields::LOW_WATER_UNKNOWN);
    }
}
