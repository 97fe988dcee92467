//! Bounded queues between the stages of a router.
//!
//! A queue has a fixed length, and its buffers circulate: a stage hands over a full buffer and
//! receives an empty one. No buffer is allocated or copied, and no stage waits. Waiting would not
//! only be slow: a stage at real-time priority that waits for a lock whose holder it has preempted
//! waits forever.

use rtrb::{Consumer, Producer, RingBuffer};

use super::frame::Frame;

/// The end that packets enter.
pub(super) struct Inlet {
    full: Producer<Frame>,
    empty: Consumer<Frame>,
    bound: usize,
}

/// The end that packets leave.
pub(super) struct Outlet {
    full: Consumer<Frame>,
    empty: Producer<Frame>,
}

/// Returns a queue of at most `bound` packets.
pub(super) fn link(bound: usize) -> (Inlet, Outlet) {
    let (full_in, full_out) = RingBuffer::new(bound);
    let (mut empty_in, empty_out) = RingBuffer::new(bound);
    for _ in 0..bound {
        empty_in.push(Frame::empty()).expect("a place for each buffer");
    }
    let inlet = Inlet { full: full_in, empty: empty_out, bound };
    (inlet, Outlet { full: full_out, empty: empty_in })
}

impl Inlet {
    /// Hands the packet over and leaves an empty buffer in `frame`. Returns `false` and keeps the
    /// packet if the queue is full.
    #[must_use]
    pub(super) fn push(&mut self, frame: &mut Frame) -> bool {
        // A buffer is free, so the ring of full buffers has a place.
        let Ok(empty) = self.empty.pop() else { return false };
        let full = std::mem::replace(frame, empty);
        self.full.push(full).expect("as many places as buffers");
        true
    }

    /// Returns the number of packets in the queue; it may have fallen since.
    pub(super) fn len(&self) -> usize {
        self.bound - self.full.slots()
    }
}

impl Outlet {
    /// Takes the oldest packet and returns the previous buffer of `frame` to the queue; `false` if
    /// it is empty.
    #[must_use]
    pub(super) fn pop(&mut self, frame: &mut Frame) -> bool {
        let Ok(full) = self.full.pop() else { return false };
        let empty = std::mem::replace(frame, full);
        self.empty.push(empty).expect("as many places as buffers");
        true
    }

    /// Returns the number of packets in the queue; it may have risen since.
    pub(super) fn len(&self) -> usize {
        self.full.slots()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(frame: &mut Frame, number: u8) {
        frame.room()[0] = number;
        frame.filled(1);
    }

    #[test]
    fn packets_leave_in_order_and_the_queue_is_bounded() {
        let (mut inlet, mut outlet) = link(3);
        let (mut ahead, mut behind) = (Frame::empty(), Frame::empty());
        for round in 0..50 {
            for number in 0..3 {
                numbered(&mut ahead, round + number);
                assert!(inlet.push(&mut ahead));
            }
            numbered(&mut ahead, 99);
            assert!(!inlet.push(&mut ahead), "full");
            assert_eq!(ahead.packet(), [99], "the packet is kept");
            assert_eq!((inlet.len(), outlet.len()), (3, 3));
            for number in 0..3 {
                assert!(outlet.pop(&mut behind));
                assert_eq!(behind.packet(), [round + number]);
            }
            assert!(!outlet.pop(&mut behind), "empty");
        }
    }
}
