//! Where does the memory of long messages come from?
//!
//! The same memory again, as in the core (docs/adr/0013): a reference to long messages that were handed out is
//! kept, and when it is the only one left, the memory is used for the next. The allocator would give it back
//! to the system, and each page would cost a fault once more.

use bytes::{Bytes, BytesMut};

/// Messages from here on are long. Ours: below, the allocator keeps its memory.
const LONG: usize = 64 << 10;
/// Messages that are kept at most, and their bytes.
const MAX_KEPT: usize = 16;
const MAX_BYTES: usize = 8 << 20;

/// Messages that were handed out.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    kept: Vec<Bytes>,
    bytes: usize,
}

impl Spare {
    /// Memory for `len` bytes, empty.
    pub(crate) fn take(&mut self, len: usize) -> BytesMut {
        if len >= LONG {
            for at in 0..self.kept.len() {
                let fits = (len..=2 * len).contains(&self.kept[at].len());
                if !fits || !self.kept[at].is_unique() {
                    continue;
                }
                let bytes = self.kept.swap_remove(at);
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

    /// A message that is handed out.
    pub(crate) fn keep(&mut self, message: &Bytes) {
        if !(LONG..=MAX_BYTES / 4).contains(&message.len()) {
            return;
        }
        while self.kept.len() >= MAX_KEPT || self.bytes + message.len() > MAX_BYTES {
            // The oldest is the one whose reader takes its time, or of a length that does not come any more.
            self.bytes -= self.kept.remove(0).len();
        }
        self.bytes += message.len();
        self.kept.push(message.clone());
    }

    /// Lets all go.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_when_nobody_else_has_it() {
        let mut spare = Spare::default();
        let mut first = spare.take(LONG);
        first.resize(LONG, 7);
        let address = first.as_ptr();
        let first = first.freeze();
        spare.keep(&first);
        assert_ne!(spare.take(LONG).as_ptr(), address, "somebody still has it");
        drop(first);
        let again = spare.take(LONG);
        assert_eq!((again.as_ptr(), again.len()), (address, 0));
        assert!(again.capacity() >= LONG);
    }

    #[test]
    fn no_more_is_kept_than_the_limits_say() {
        let mut spare = Spare::default();
        for _ in 0..100 {
            spare.keep(&Bytes::from(vec![7; 1 << 20]));
            spare.keep(&Bytes::from(vec![7; 100]));
            spare.keep(&Bytes::from(vec![7; MAX_BYTES]));
        }
        assert_eq!(spare.bytes, spare.kept.iter().map(Bytes::len).sum::<usize>());
        assert!(spare.bytes <= MAX_BYTES && spare.kept.len() <= MAX_KEPT, "{spare:?}");
        assert!(spare.kept.iter().all(|bytes| bytes.len() == 1 << 20));
    }
}
