//! CUTOFFS: the priorities that a host requests for unscheduled packets.

use crate::PRIORITIES;
use crate::bytes::{read_u16, read_u32, write_u16, write_u32};

/// The body of a CUTOFFS packet (HM `homa_incoming.c` `homa_cutoffs_pkt`, `WIRE-15`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cutoffs {
    /// For each level, the length of the longest message whose unscheduled packets use it. Index 7
    /// is the highest level and holds the smallest length; index 0 counts as unlimited.
    pub unscheduled: [u32; PRIORITIES],
    /// Version of the table; senders repeat it in their DATA packets. Never 0 in a table of this
    /// implementation.
    pub version: u16,
}

impl Cutoffs {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let mut unscheduled = [0; PRIORITIES];
        for (level, length) in unscheduled.iter_mut().enumerate() {
            *length = read_u32(bytes, 28 + 4 * level);
        }
        Self { unscheduled, version: read_u16(bytes, 60) }
    }

    pub(crate) fn emit(&self, out: &mut [u8]) {
        for (level, length) in self.unscheduled.iter().enumerate() {
            write_u32(out, 28 + 4 * level, *length);
        }
        write_u16(out, 60, self.version);
    }

    /// Returns the table for the kernel profile, where lengths are signed: a level without limit
    /// would have a negative one.
    #[must_use]
    pub fn with_signed_lengths(self) -> Self {
        const SIGNED_MAX: u32 = i32::MAX as u32;
        Self { unscheduled: self.unscheduled.map(|length| length.min(SIGNED_MAX)), ..self }
    }
}
