//! A delay line: packets in order of arrival, each with its due time.

use std::collections::VecDeque;

/// The packets of one direction. All have the same delay, so the first packet is due first.
#[derive(Debug)]
pub(super) struct DelayLine {
    delay: u64,
    packets: VecDeque<(u64, Vec<u8>)>,
    /// Memory of packets that have left.
    free: Vec<Vec<u8>>,
}

impl DelayLine {
    /// Maximum number of packet buffers kept for reuse.
    const KEPT: usize = 4_096;

    /// Returns an empty line with a delay in nanoseconds.
    pub(super) const fn new(delay: u64) -> Self {
        Self { delay, packets: VecDeque::new(), free: Vec::new() }
    }

    /// Adds a packet that has arrived at `now`.
    pub(super) fn push(&mut self, now: u64, packet: &[u8]) {
        let mut memory = self.free.pop().unwrap_or_default();
        memory.clear();
        memory.extend_from_slice(packet);
        self.packets.push_back((now.saturating_add(self.delay), memory));
    }

    /// Returns when the next packet is due.
    pub(super) fn due(&self) -> Option<u64> {
        self.packets.front().map(|(due, _)| *due)
    }

    /// Removes the next packet if it is due at `now`; returns it with its lateness.
    pub(super) fn pop(&mut self, now: u64) -> Option<(u64, Vec<u8>)> {
        let late = now.checked_sub(self.due()?)?;
        self.packets.pop_front().map(|(_, packet)| (late, packet))
    }

    /// Recycles the memory of a packet.
    pub(super) fn recycle(&mut self, packet: Vec<u8>) {
        if self.free.len() < Self::KEPT {
            self.free.push(packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DELAY-1.
    #[test]
    fn packets_leave_in_order_and_not_early() {
        let mut line = DelayLine::new(100);
        line.push(5, b"one");
        line.push(7, b"two");
        assert_eq!((line.due(), line.pop(104)), (Some(105), None));
        assert_eq!(line.pop(106), Some((1, b"one".to_vec())));
        assert_eq!(line.pop(106), None);
        let (late, packet) = line.pop(200).unwrap();
        assert_eq!((late, &packet[..], line.due()), (93, &b"two"[..], None));
        line.recycle(packet);
        line.push(300, b"3");
        assert_eq!(line.pop(400), Some((0, b"3".to_vec())));
    }
}
