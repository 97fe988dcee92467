//! Format of the records in a ring.
//!
//! A record starts at a multiple of [`SLOT`] and has a head of three words:
//!
//! | word | bits | content |
//! |---|---|---|
//! | 0 | 0..32 | bytes of payload behind the head |
//! | 0 | 32..40 | [`Kind`] |
//! | 0 | 40..64 | [`MARK`] |
//! | 1 | 0..64 | id of the RPC |
//! | 2 | 0..32 | bytes of the whole message; of a refusal, the reason |
//! | 2 | 32..64 | offset of the payload in the message |
//!
//! A record whose first word is 0 does not exist yet. The first word is written last, so that a
//! record is visible as a whole or not at all, whenever its writer dies.

use apus_wire::Refusal;

use crate::error::Violation;
use crate::memory::layout::SLOT;

/// Bytes before the payload.
pub(crate) const HEAD: usize = 24;

/// Constant in the first word of every record, so that stray bytes are noticed sooner.
pub(crate) const MARK: u64 = 0xA9_05_1C;

/// Purpose of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RecordKind {
    /// Padding: the rest of the ring before it wraps around.
    Pad = 1,
    /// A request, or a part of it.
    Request = 2,
    /// A response, or a part of it.
    Response = 3,
    /// The client cancels a call.
    Cancel = 4,
    /// The server will not respond; the record has the reason.
    Refusal = 5,
    /// Asks the peer to freeze its time trace. Belongs to no RPC.
    Freeze = 6,
}

/// The head of a record, read once and checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: RecordKind,
    /// Bytes of payload in this record.
    pub(crate) len: usize,
    pub(crate) id: u64,
    /// Bytes of the whole message, or the reason of a refusal.
    pub(crate) total: u32,
    /// Offset of the payload in the message.
    pub(crate) offset: u32,
}

impl Head {
    /// Returns the head of a record that carries all or part of a message.
    pub(crate) const fn part(
        kind: RecordKind,
        id: u64,
        len: usize,
        total: u32,
        offset: u32,
    ) -> Self {
        Self { kind, len, id, total, offset }
    }

    /// Returns the head of the record that cancels a call.
    pub(crate) const fn cancel(id: u64) -> Self {
        Self { kind: RecordKind::Cancel, len: 0, id, total: 0, offset: 0 }
    }

    /// Returns the head of the record that refuses a request.
    pub(crate) const fn refusal(id: u64, why: Refusal) -> Self {
        Self { kind: RecordKind::Refusal, len: 0, id, total: why as u32, offset: 0 }
    }

    /// Returns the head of the record that requests a freeze of the peer's trace.
    pub(crate) const fn freeze() -> Self {
        Self { kind: RecordKind::Freeze, len: 0, id: 0, total: 0, offset: 0 }
    }

    /// Returns the word that makes the record visible.
    pub(crate) const fn first(&self) -> u64 {
        first(self.kind, self.len as u32)
    }

    /// Returns the third word.
    pub(crate) const fn third(&self) -> u64 {
        self.total as u64 | (self.offset as u64) << 32
    }
}

/// Returns the first word of a record.
pub(crate) const fn first(kind: RecordKind, len: u32) -> u64 {
    len as u64 | (kind as u64) << 32 | MARK << 40
}

/// Returns the kind and the payload length in `word`, the first word of a record, which is not 0.
///
/// # Errors
///
/// [`Violation`] if no correct writer writes this word.
#[inline]
pub(crate) const fn read_first(word: u64) -> Result<(RecordKind, usize), Violation> {
    if word >> 40 != MARK {
        return Err(Violation::Mark);
    }
    let kind = match (word >> 32) as u8 {
        1 => RecordKind::Pad,
        2 => RecordKind::Request,
        3 => RecordKind::Response,
        4 => RecordKind::Cancel,
        5 => RecordKind::Refusal,
        6 => RecordKind::Freeze,
        _ => return Err(Violation::Kind),
    };
    Ok((kind, word as u32 as usize))
}

/// Returns the bytes that a record with `len` bytes of payload takes in its ring.
pub(crate) const fn span(len: usize) -> usize {
    (HEAD + len).next_multiple_of(SLOT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_inverts_writing() {
        let control = [RecordKind::Cancel, RecordKind::Refusal, RecordKind::Freeze];
        for kind in
            [RecordKind::Pad, RecordKind::Request, RecordKind::Response].into_iter().chain(control)
        {
            for len in [0, 1, 100, u32::MAX] {
                assert_eq!(read_first(first(kind, len)), Ok((kind, len as usize)));
            }
        }
    }

    #[test]
    fn any_other_word_is_a_violation() {
        assert_eq!(read_first(1), Err(Violation::Mark));
        assert_eq!(read_first(u64::MAX), Err(Violation::Mark));
        assert_eq!(read_first(MARK << 40), Err(Violation::Kind));
        assert_eq!(read_first(MARK << 40 | 7 << 32), Err(Violation::Kind));
    }

    #[test]
    fn records_take_whole_slots() {
        assert_eq!(span(0), SLOT);
        assert_eq!(span(SLOT - HEAD), SLOT);
        assert_eq!(span(SLOT - HEAD + 1), 2 * SLOT);
        assert_eq!(span(100), 128, "a message of 100 bytes takes two cache lines");
    }
}
