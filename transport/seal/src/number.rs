//! Packet numbers: the counter behind each nonce.

use std::fmt;

/// The largest packet number: 48 bits.
pub const MAX_NUMBER: u64 = (1 << 48) - 1;

/// The numbers of the packets that one end seals in one association (SEAL-3).
///
/// Reusing a number with the same key reveals both packets and the key of the tag. Therefore the
/// counter cannot be cloned or set, and ends instead of wrapping around.
///
/// ```compile_fail
/// let numbers = apus_seal::PacketNumbers::new();
/// let twice = numbers.clone();
/// ```
pub struct PacketNumbers {
    next: u64,
}

impl PacketNumbers {
    /// Creates a counter whose first number is 1; 0 means no packet.
    #[must_use]
    pub const fn new() -> Self {
        Self { next: 1 }
    }

    /// Returns the next number; `None` if all have been used.
    #[inline]
    pub const fn take(&mut self) -> Option<u64> {
        if self.next > MAX_NUMBER {
            return None;
        }
        let number = self.next;
        self.next += 1;
        Some(number)
    }

    /// Returns the last used number, 0 if there is none.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.next - 1
    }
}

impl Default for PacketNumbers {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for PacketNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PacketNumbers").field(&self.next).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_ends_and_does_not_wrap_around() {
        let mut numbers = PacketNumbers { next: MAX_NUMBER };
        assert_eq!(numbers.take(), Some(MAX_NUMBER));
        assert_eq!((numbers.take(), numbers.take()), (None, None));
        assert_eq!(numbers.last(), MAX_NUMBER);
    }
}
