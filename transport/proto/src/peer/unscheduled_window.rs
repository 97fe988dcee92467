//! The limit of unscheduled bytes in flight to a peer.
//!
//! Unscheduled bytes leave without a GRANT. Many messages at once can exceed the capacity of the
//! receiver's socket while its processor is busy. A receiver therefore states its room (WIRE-28),
//! and the sender starts long messages with a single packet when the room is used up: the rest
//! waits for GRANTs (PRIO-12).

/// Unscheduled bytes in flight to one peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnscheduledWindow {
    /// Bytes that the peer has room for; `u64::MAX` if it does not state any.
    room: u64,
    /// Unscheduled bytes of messages that the peer may not have read yet.
    in_flight: u64,
}

/// Room of a peer before its first CUTOFFS. Chosen by us: a quarter of the 4 MiB that an endpoint
/// requests, and enough for the first millisecond at 8 Gbit/s.
const INITIAL_ROOM: u64 = 1_000_000;

impl Default for UnscheduledWindow {
    fn default() -> Self {
        Self { room: INITIAL_ROOM, in_flight: 0 }
    }
}

impl UnscheduledWindow {
    /// Sets the room that the peer states, in bytes; 0 states none.
    pub(crate) fn set_room(&mut self, bytes: u32) {
        self.room = if bytes == 0 { u64::MAX } else { u64::from(bytes) };
    }

    /// Takes room for up to `wanted` bytes, and for at least `least` of them. Returns the number of
    /// bytes.
    pub(crate) fn take(&mut self, wanted: u32, least: u32) -> u32 {
        let free = u32::try_from(self.room.saturating_sub(self.in_flight)).unwrap_or(u32::MAX);
        let taken = wanted.min(free.max(least));
        self.in_flight += u64::from(taken);
        taken
    }

    /// Returns `bytes` that the peer has read, or will never get.
    pub(crate) fn release(&mut self, bytes: u32) {
        debug_assert!(self.in_flight >= u64::from(bytes), "PRIO-12: more returned than taken");
        self.in_flight -= u64::from(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_says_nothing_has_room_for_everything() {
        let mut window = UnscheduledWindow::default();
        assert_eq!(window.take(u32::MAX, 1), 1_000_000, "not heard of yet");
        window.set_room(0);
        assert_eq!(window.take(u32::MAX, 1), u32::MAX);
        assert_eq!(window.take(u32::MAX, 1), u32::MAX);
    }

    #[test]
    fn long_messages_get_what_is_free_and_a_packet_at_least() {
        let mut window = UnscheduledWindow::default();
        window.set_room(100_000);
        let taken = [60_000, 60_000, 60_000, 200].map(|wanted| window.take(wanted, 1_000));
        assert_eq!(taken, [60_000, 40_000, 1_000, 200]);
        window.release(60_000);
        assert_eq!(window.take(60_000, 1_000), 58_800);
        window.set_room(0);
        assert_eq!(window.take(60_000, 1_000), 60_000, "an older version says nothing");
    }
}
