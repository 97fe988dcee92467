//! Bounded queues between the stages of a router.
//!
//! A queue has a fixed length, and its buffers circulate: a stage that hands over a full one gets an empty one for it.
//! Nothing is allocated, nothing is copied, and no stage waits. The latter is not for speed: a stage at real-time
//! priority that waits for a lock, whose holder it has interrupted, would wait forever.

use rtrb::{Consumer, Producer, RingBuffer};

use super::frame::Frame;

/// The end at which packets are put in.
pub(super) struct Inlet {
    full: Producer<Frame>,
    empty: Consumer<Frame>,
    bound: usize,
}

/// The end at which they are taken out.
pub(super) struct Outlet {
    full: Consumer<Frame>,
    empty: Producer<Frame>,
}

/// Returns a queue of at most `bound` packets.
pub(super) fn link(bound: usize) -> (Inlet, Outlet) {
    let (full_in, full_out) = RingBuffer::new(bound);
    let (mut empty_in, empty_out) = RingBuffer::new(bound);
    for _ in 0..bound {
        empty_in.push(Frame::empty()).expect("there is room for as many");
    }
    let inlet = Inlet { full: full_in, empty: empty_out, bound };
    (inlet, Outlet { full: full_out, empty: empty_in })
}

impl Inlet {
    /// Hands the packet over; an empty buffer is left for it. `false` if the queue is full: the packet is
    /// still there then.
    #[must_use]
    pub(super) fn push(&mut self, frame: &mut Frame) -> bool {
        // A buffer is free, so there is a place for it among the full ones.
        let Ok(empty) = self.empty.pop() else { return false };
        let full = std::mem::replace(frame, empty);
        self.full.push(full).expect("as many places as buffers");
        true
    }

    /// Returns the packets in the queue. It may be fewer already.
    pub(super) fn len(&self) -> usize {
        self.bound - self.full.slots()
    }
}

impl Outlet {
    /// Takes the oldest packet; the buffer that was in its place goes back. `false` if there is none.
    #[must_use]
    pub(super) fn pop(&mut self, frame: &mut Frame) -> bool {
        let Ok(full) = self.full.pop() else { return false };
        let empty = std::mem::replace(frame, full);
        self.empty.push(empty).expect("as many places as buffers");
        true
    }

    /// Returns the packets in the queue. It may be more already.
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
    fn packets_come_out_in_their_order_and_no_more_than_the_bound_are_in() {
        let (mut inlet, mut outlet) = link(3);
        let (mut ahead, mut behind) = (Frame::empty(), Frame::empty());
        for round in 0..50 {
            for number in 0..3 {
                numbered(&mut ahead, round + number);
                assert!(inlet.push(&mut ahead));
            }
            numbered(&mut ahead, 99);
            assert!(!inlet.push(&mut ahead), "full");
            assert_eq!(ahead.packet(), [99], "it is still there");
            assert_eq!((inlet.len(), outlet.len()), (3, 3));
            for number in 0..3 {
                assert!(outlet.pop(&mut behind));
                assert_eq!(behind.packet(), [round + number]);
            }
            assert!(!outlet.pop(&mut behind), "empty");
        }
    }
}
