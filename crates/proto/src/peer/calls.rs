//! A client's state about one server.

use super::FinishedIds;
use apus_wire::UdpFields;

/// Calls to one peer: their ids, and the session in which the peer serves them.
///
/// Ids are dense per server in the udp profile (RPC-7); see [`FinishedIds`].
#[derive(Debug)]
pub(crate) struct Calls {
    /// Id of the next call.
    next_id: u64,
    /// Calls that have ended.
    ended: FinishedIds,
    /// The session that the server has chosen, once it has asked for a confirmation.
    pub(crate) session: Option<u32>,
}

impl Calls {
    /// No call yet; ids start at `first_id`.
    pub(crate) fn starting_at(first_id: u64) -> Self {
        Self { next_id: first_id, ended: FinishedIds::starting_at(first_id), session: None }
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

    /// Notes that call `id` has ended.
    pub(crate) fn end(&mut self, id: u64) {
        self.ended.insert(id);
    }

    /// What packets of call `id` say about the oldest call that may be alive, AMO-8
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
