//! The memory of long messages, which is used again when the application has dropped them.
//!
//! Allocators return memory of hundreds of kilobytes to the system and request it again, and every
//! page then costs a fault: a third of the cost of receiving a message. Therefore a reference to
//! each delivered message is kept, and once it is the only one, its memory serves the next message.
//! Source: measured by us (`lab/log`).
//!
//! # Invariants
//!
//! - **BUFFERS-1** Memory that the application can still see is not written to: only the last
//!   reference gives it back ([`Bytes::try_into_mut`]).
//! - **BUFFERS-2** (CAP-14) At most [`MAX_KEPT_BYTES`] are kept, and none after a second without
//!   long messages.

use crate::limits::{KEPT_LENGTHS, MAX_KEPT_BYTES};
use bytes::Bytes;
use std::collections::VecDeque;

/// Delivered messages whose memory may be used again.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// The oldest first, each with the size of its memory: a message may be shorter than that.
    kept: VecDeque<(Bytes, usize)>,
    /// Sum of these sizes.
    bytes: usize,
    /// Whether a long message has arrived since the last scan.
    used: bool,
}

impl Buffers {
    /// Returns empty memory for a message that retains `length` bytes. It has no capacity if none
    /// can be reused, or if `length` is small: memory is then allocated when the first bytes
    /// arrive.
    pub(crate) fn take(&mut self, length: u32) -> Vec<u8> {
        let length = length as usize;
        if !KEPT_LENGTHS.contains(&length) {
            return Vec::new();
        }
        self.used = true;
        // Memory that is too large is left for longer messages: a message counts with its length.
        let fits = length..=length + length / 4;
        let found =
            self.kept.iter().position(|(kept, size)| fits.contains(size) && kept.is_unique());
        let Some((kept, size)) = found.and_then(|at| self.kept.remove(at)) else {
            return Vec::new();
        };
        self.bytes -= size;
        match kept.try_into_mut() {
            Ok(mut memory) => {
                memory.clear();
                memory.into()
            }
            // BUFFERS-1. Cannot happen: a unique reference cannot have been cloned in the meantime.
            Err(_) => Vec::new(),
        }
    }

    /// Records the delivery of a message whose retained bytes occupy `size` bytes of memory.
    pub(crate) fn keep(&mut self, message: &Bytes, size: usize) {
        if !KEPT_LENGTHS.contains(&message.len()) {
            return;
        }
        self.kept.push_back((message.clone(), size));
        self.bytes += size;
        while self.bytes > MAX_KEPT_BYTES {
            let Some((_, oldest)) = self.kept.pop_front() else { break };
            self.bytes -= oldest;
        }
    }

    /// Frees everything if no long message has arrived since the last scan (BUFFERS-2).
    pub(crate) fn scan(&mut self) {
        if !std::mem::take(&mut self.used) {
            self.clear();
        }
    }

    /// Frees everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: usize = 100_000;

    fn message(buffers: &mut Buffers, length: usize) -> Bytes {
        let mut memory = buffers.take(length as u32);
        assert!(memory.is_empty());
        memory.resize(length, 7);
        let size = memory.capacity();
        let message = Bytes::from(memory);
        buffers.keep(&message, size);
        message
    }

    #[test]
    fn memory_is_used_again_when_the_application_has_dropped_it() {
        let mut buffers = Buffers::default();
        let first = message(&mut buffers, LONG);
        let slice = first.slice(5..10);
        let place = first.as_ptr();
        let second = message(&mut buffers, LONG);
        assert_ne!(second.as_ptr(), place, "BUFFERS-1: the first one is still referenced");
        drop(first);
        let third = message(&mut buffers, LONG);
        assert_ne!(third.as_ptr(), place, "BUFFERS-1: a part of it is");
        drop(slice);
        let fourth = message(&mut buffers, LONG - 1);
        assert_eq!(fourth.as_ptr(), place);
        assert_eq!(fourth.len(), LONG - 1);
    }

    #[test]
    fn memory_that_does_not_fit_is_left_for_others() {
        let mut buffers = Buffers::default();
        drop(message(&mut buffers, 3 * LONG));
        assert_eq!(buffers.take(2 * LONG as u32).capacity(), 0, "half as long again");
        assert_eq!(buffers.take(3 * LONG as u32 + 1).capacity(), 0, "too short");
        assert!(buffers.take(5 * LONG as u32 / 2).capacity() >= 3 * LONG);
    }

    /// CAP-14: memory that serves shorter and shorter messages stays as large as it is.
    #[test]
    fn memory_counts_with_its_own_size() {
        let mut buffers = Buffers::default();
        drop(message(&mut buffers, 5 * LONG));
        drop(message(&mut buffers, 4 * LONG));
        assert_eq!((buffers.kept.len(), buffers.bytes), (1, 5 * LONG));
        assert_eq!(buffers.take(3 * LONG as u32).capacity(), 0, "five thirds as large");
    }

    /// CAP-14.
    #[test]
    fn kept_memory_is_bounded_and_freed() {
        let mut buffers = Buffers::default();
        for length in [1, KEPT_LENGTHS.start - 1, KEPT_LENGTHS.end] {
            message(&mut buffers, length);
        }
        assert_eq!(buffers.kept.len(), 0, "short ones, and very long ones, are not kept");
        let messages: Vec<Bytes> = (0..200).map(|_| message(&mut buffers, LONG)).collect();
        assert!(
            buffers.bytes <= MAX_KEPT_BYTES && buffers.bytes > MAX_KEPT_BYTES - LONG,
            "BUFFERS-2"
        );
        drop(messages);
        buffers.scan();
        assert!(!buffers.kept.is_empty(), "they were used in the last second");
        buffers.scan();
        assert_eq!((buffers.kept.len(), buffers.bytes), (0, 0), "BUFFERS-2");
    }
}
