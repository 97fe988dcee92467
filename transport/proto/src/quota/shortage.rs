//! Shortage: whether something waits for room.

use crate::time::Instant;

/// What found no room.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shortage {
    /// Whether something waits until room is made.
    is_waited_for: bool,
    /// When a packet found no room last. Its sender repeats it.
    lacked: Option<Instant>,
}

impl Shortage {
    /// A packet found no room at `now`.
    pub(crate) const fn note(&mut self, now: Instant) {
        self.lacked = Some(now);
    }

    /// Something waits from now on until room is made.
    pub(crate) const fn wait(&mut self) {
        self.is_waited_for = true;
    }

    /// Whether something waits until room is made.
    pub(crate) const fn is_waited_for(&self) -> bool {
        self.is_waited_for
    }

    /// What waited for room is tried again.
    pub(crate) const fn retry(&mut self) {
        self.is_waited_for = false;
    }

    /// Room was made: what needs it tries again, or reports the lack once more.
    pub(crate) const fn is_met(&mut self) {
        *self = Self { is_waited_for: false, lacked: None };
    }

    /// Whether something waits, or a packet found no room in the last `nanos` nanoseconds.
    pub(crate) fn is_felt(&self, now: Instant, nanos: u64) -> bool {
        self.is_waited_for || self.lacked.is_some_and(|at| now.since(at) < nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_lacks_room_for_a_while_and_a_waiter_until_it_is_made() {
        let mut shortage = Shortage::default();
        let at = |nanos| Instant::from_nanos(nanos);
        shortage.note(at(10));
        assert!(shortage.is_felt(at(14), 5) && !shortage.is_felt(at(15), 5));
        shortage.wait();
        assert!(shortage.is_felt(at(1_000), 5));
        shortage.retry();
        assert!(!shortage.is_felt(at(1_000), 5) && shortage.is_felt(at(12), 5));
        shortage.is_met();
        assert!(!shortage.is_felt(at(12), 5));
    }
}
