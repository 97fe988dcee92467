//! Reception of a message by the module.
//!
//! The module keeps a list of gaps below the highest received byte. A packet starts directly behind
//! it, opens a gap, or fits into a gap; any other packet is dropped as a whole (HM
//! `homa_incoming.c` `homa_add_packet`).

use std::ops::Range;

use super::objection::Objection;

/// An incoming message.
#[derive(Debug)]
pub(super) struct Incoming {
    content: Vec<u8>,
    /// Offset after the highest received byte.
    end: u32,
    /// Missing ranges below `end`, in order.
    gaps: Vec<Range<u32>>,
    received: u32,
    /// Offset that the sender may transmit up to.
    pub(super) granted: u32,
}

impl Incoming {
    pub(super) fn new(length: u32, incoming: u32) -> Self {
        let content = vec![0; length as usize];
        Self { content, end: 0, gaps: Vec::new(), received: 0, granted: incoming.min(length) }
    }

    pub(super) const fn length(&self) -> u32 {
        self.content.len() as u32
    }

    pub(super) const fn missing(&self) -> u32 {
        self.length() - self.received
    }

    pub(super) const fn received(&self) -> u32 {
        self.received
    }

    /// Returns the bytes that are granted and not received.
    pub(super) const fn outstanding(&self) -> u32 {
        self.granted.saturating_sub(self.received)
    }

    pub(super) const fn is_complete(&self) -> bool {
        self.received == self.length()
    }

    /// Stores the bytes of a packet that is within the message.
    pub(super) fn add(&mut self, offset: u32, data: &[u8]) -> Result<(), Objection> {
        let end = offset + data.len() as u32;
        if offset >= self.end {
            if offset > self.end {
                self.gaps.push(self.end..offset);
            }
            self.end = end;
        } else {
            self.fill_gap(offset, end)?;
        }
        self.content[offset as usize..end as usize].copy_from_slice(data);
        self.received += data.len() as u32;
        Ok(())
    }

    /// Removes the range of a packet below the highest byte from the gap that contains it.
    fn fill_gap(&mut self, offset: u32, end: u32) -> Result<(), Objection> {
        let touches = |gap: &Range<u32>| gap.start < end && offset < gap.end;
        let Some(index) = self.gaps.iter().position(touches) else {
            let new = end > self.end;
            return Err(if new { Objection::Straddles } else { Objection::Duplicate });
        };
        let gap = self.gaps[index].clone();
        if offset < gap.start || end > gap.end {
            return Err(Objection::Straddles);
        }
        let rest = [gap.start..offset, end..gap.end].into_iter().filter(|rest| !rest.is_empty());
        self.gaps.splice(index..=index, rest);
        Ok(())
    }

    /// Returns the missing ranges of the bytes that may have been sent: each gap, and the tail.
    pub(super) fn wanted(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        let tail = (self.end < self.granted).then_some(self.end..self.granted);
        self.gaps.iter().cloned().chain(tail)
    }

    pub(super) fn into_content(self) -> Vec<u8> {
        self.content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source: HM `homa_incoming.c` `homa_add_packet`.
    #[test]
    fn a_packet_continues_opens_a_gap_or_fits_into_one() {
        let mut message = Incoming::new(100, 100);
        assert_eq!(message.add(0, &[1; 10]), Ok(()));
        assert_eq!(message.add(30, &[4; 10]), Ok(()));
        assert_eq!(message.add(60, &[7; 10]), Ok(()));
        assert_eq!(message.wanted().collect::<Vec<_>>(), [10..30, 40..60, 70..100]);
        assert_eq!(message.add(30, &[4; 10]), Err(Objection::Duplicate));
        for (offset, bytes) in [(5, 10), (25, 10), (20, 30), (65, 10), (0, 100)] {
            assert_eq!(message.add(offset, &vec![0; bytes]), Err(Objection::Straddles), "{offset}");
        }
        assert_eq!(message.add(15, &[2; 10]), Ok(()));
        assert_eq!(message.wanted().collect::<Vec<_>>(), [10..15, 25..30, 40..60, 70..100]);
        for gap in message.wanted().collect::<Vec<_>>() {
            assert_eq!(message.add(gap.start, &vec![9; gap.len()]), Ok(()));
        }
        assert!(message.is_complete());
    }
}
