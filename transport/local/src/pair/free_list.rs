//! Free list: reuses the memory of long messages.
//!
//! The list retains a reference to long messages that were delivered (as the core does,
//! docs/adr/0004). When it is the only reference left, the memory serves the next message. The
//! allocator would return it to the system, and each page would cost another fault.

use bytes::{Bytes, BytesMut};

/// Minimum length of a long message. Chosen by us: for shorter ones, the allocator keeps its
/// memory.
const LONG: usize = 64 << 10;
/// Maximum number of retained messages, and of their bytes.
const MAX_RETAINED: usize = 16;
const MAX_BYTES: usize = 8 << 20;

/// Messages that were delivered and may become unused.
#[derive(Debug, Default)]
pub(crate) struct FreeList {
    retained: Vec<Bytes>,
    bytes: usize,
}

impl FreeList {
    /// Returns an empty buffer with capacity for `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> BytesMut {
        if len >= LONG {
            for at in 0..self.retained.len() {
                let fits = (len..=2 * len).contains(&self.retained[at].len());
                if !fits || !self.retained[at].is_unique() {
                    continue;
                }
                let bytes = self.retained.swap_remove(at);
                self.bytes -= bytes.len();
                if let Ok(mut memory) = bytes.try_into_mut() {
                    memory.clear();
                    return memory;
                }
                break;
            }
        }
        BytesMut::with_capacity(len)
    }

    /// Retains a message that is delivered, if it is long.
    pub(crate) fn add(&mut self, message: &Bytes) {
        if !(LONG..=MAX_BYTES / 4).contains(&message.len()) {
            return;
        }
        while self.retained.len() >= MAX_RETAINED || self.bytes + message.len() > MAX_BYTES {
            // The oldest is either still in use, or of a length that is no longer received.
            self.bytes -= self.retained.remove(0).len();
        }
        self.bytes += message.len();
        self.retained.push(message.clone());
    }

    /// Drops all retained messages.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reused_when_it_has_no_other_reference() {
        let mut list = FreeList::default();
        let mut first = list.take(LONG);
        first.resize(LONG, 7);
        let address = first.as_ptr();
        let first = first.freeze();
        list.add(&first);
        assert_ne!(list.take(LONG).as_ptr(), address, "the application still has it");
        drop(first);
        let again = list.take(LONG);
        assert_eq!((again.as_ptr(), again.len()), (address, 0));
        assert!(again.capacity() >= LONG);
    }

    #[test]
    fn the_list_is_bounded() {
        let mut list = FreeList::default();
        for _ in 0..100 {
            list.add(&Bytes::from(vec![7; 1 << 20]));
            list.add(&Bytes::from(vec![7; 100]));
            list.add(&Bytes::from(vec![7; MAX_BYTES]));
        }
        assert_eq!(list.bytes, list.retained.iter().map(Bytes::len).sum::<usize>());
        assert!(list.bytes <= MAX_BYTES && list.retained.len() <= MAX_RETAINED, "{list:?}");
        assert!(list.retained.iter().all(|bytes| bytes.len() == 1 << 20));
    }
}
