//! The room for unscheduled bytes that this endpoint states to its senders.

use crate::config::Config;

/// The part of the socket's buffer that is given to unscheduled bytes: one in this number. Chosen
/// by us: the system counts its own structures, which may be as large as the packets, and granted
/// bytes and retransmissions need room, too.
const PART: u64 = 4;

/// Room for unscheduled bytes (WIRE-28).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Bytes for all peers together; `None` if the socket's buffer is unknown.
    bytes: Option<u64>,
    /// The least that is stated, so that a long message does not wait for its first GRANT without
    /// need.
    least: u64,
    /// Number of peers, rounded up to a power of two, in the shares stated last.
    sharers: u64,
}

impl Room {
    /// No room is known yet.
    pub(crate) fn new(config: &Config) -> Self {
        Self { bytes: None, least: config.unsched_bytes_max(), sharers: 1 }
    }

    /// Sets the bytes that the socket holds, the system's structures included.
    pub(crate) const fn set_buffer(&mut self, bytes: u64) {
        self.bytes = Some(bytes / PART);
    }

    /// Returns the share of one of `peers` peers (PRIO-13); 0 if the buffer is unknown.
    pub(crate) fn share(&self, peers: usize) -> u32 {
        let sharers = sharers(peers);
        let share = self.bytes.map_or(0, |bytes| (bytes / sharers).max(self.least));
        u32::try_from(share).unwrap_or(u32::MAX)
    }

    /// Returns whether the shares must be stated again, because there are now `peers` peers; then
    /// they count as stated.
    pub(crate) fn take_change(&mut self, peers: usize) -> bool {
        let before = std::mem::replace(&mut self.sharers, sharers(peers));
        self.bytes.is_some() && before != self.sharers
    }
}

/// The number of peers as it is used for shares: a power of two, so that few changes need a
/// statement.
fn sharers(peers: usize) -> u64 {
    (peers as u64).max(1).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_share_the_room_and_each_has_the_least() {
        let mut room = Room::new(&Config::default());
        assert_eq!(room.share(1), 0, "nothing is known");
        room.set_buffer(8_000_000);
        let shares = [0, 1, 2, 3, 5, 1_000].map(|peers| room.share(peers));
        assert_eq!(shares, [2_000_000, 2_000_000, 1_000_000, 500_000, 250_000, 60_000]);
    }

    #[test]
    fn shares_are_stated_anew_when_the_number_of_peers_has_doubled() {
        let mut room = Room::new(&Config::default());
        assert!(!room.take_change(8), "nothing is known");
        room.set_buffer(8_000_000);
        assert!(!room.take_change(7));
        assert!(room.take_change(9));
        assert!(!room.take_change(16));
        assert!(room.take_change(3));
    }
}
