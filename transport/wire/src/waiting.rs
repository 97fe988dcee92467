//! The bytes that wait at a sender, as one byte of DATA.

/// Bytes of a message that wait at its sender, in one byte (`WIRE-34`); a limit for a response has
/// the same code (`WIRE-35`).
///
/// Eight steps to each power of two, of at least 64 bytes: the value read is less than an eighth,
/// or 64 bytes, below the value written. 0 means "not stated": versions before this field write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Waiting(u8);

/// Bytes of the shortest step, as a power of two.
const SHORTEST: u32 = 6;
/// Steps to each power of two, as a power of two.
const STEPS: u32 = 3;

impl Waiting {
    /// Not stated.
    pub const UNSAID: Self = Self(0);

    /// Returns the statement that `bytes` bytes wait.
    #[must_use]
    pub const fn of_bytes(bytes: u32) -> Self {
        let units = bytes >> SHORTEST;
        let code = match units.checked_ilog2() {
            Some(power) if power >= STEPS => {
                let shift = power - STEPS;
                (shift << STEPS) + (units >> shift)
            }
            _ => units,
        };
        Self(code as u8 + 1)
    }

    /// Returns the number of bytes, rounded down; `None` if not stated.
    #[must_use]
    pub const fn bytes(self) -> Option<u32> {
        let Some(code) = self.0.checked_sub(1) else { return None };
        let code = code as u32;
        let shift = (code >> STEPS).saturating_sub(1);
        let units = code as u64 - ((shift as u64) << STEPS);
        let bytes = units << (shift + SHORTEST);
        Some(if bytes > u32::MAX as u64 { u32::MAX } else { bytes as u32 })
    }

    /// Returns the statement of this byte.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Self {
        Self(byte)
    }

    /// Returns the byte.
    #[must_use]
    pub const fn byte(self) -> u8 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_at_most_an_eighth_or_64_bytes_below_what_was_written() {
        for power in 0..32 {
            for bytes in
                [1_u32 << power, (1 << power) - 1, (1 << power) + (1 << power) / 3, u32::MAX]
            {
                let read = Waiting::of_bytes(bytes).bytes().unwrap();
                let lost = bytes - read;
                assert!(lost < 64 || lost < bytes / 8, "{bytes}: {read}");
            }
        }
        assert_eq!(Waiting::of_bytes(0).bytes(), Some(0));
    }

    #[test]
    fn every_byte_has_a_meaning_and_0_says_nothing() {
        assert_eq!(Waiting::from_byte(0).bytes(), None);
        assert!((1..=255).map(|byte| Waiting::from_byte(byte).bytes().unwrap()).is_sorted());
        for byte in 1..=192 {
            let bytes = Waiting::from_byte(byte).bytes().unwrap();
            assert_eq!(Waiting::of_bytes(bytes).byte(), byte, "{bytes}");
        }
    }
}
