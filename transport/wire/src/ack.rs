//! Acks: a client releases the server's state with them.

use crate::bytes::{read_u16, read_u64, write_u16, write_u64};
use crate::error::ParseError;
use crate::kind::Kind;
use crate::lengths::HEADER_LEN;
use crate::profile::Profile;

/// Entries that an ACK packet can hold. Source: docs/reference/homa-module.md, *Packet types*.
pub const MAX_ACKS: usize = 5;

/// Bytes of one entry.
const ENTRY_LEN: usize = 10;
/// Offset of the first entry of an ACK packet.
const ENTRIES_AT: usize = HEADER_LEN + 2;

/// The client's statement that it has the whole response of an RPC: one entry of an ACK packet, or
/// the piggy-backed ack of a DATA packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ack {
    /// The RPC's even id. Never 0: on the wire that means "no ack here".
    pub client_id: u64,
    /// Homa port of the server.
    pub server_port: u16,
}

impl Ack {
    #[inline(always)]
    fn parse(bytes: &[u8], at: usize) -> Self {
        Self { client_id: read_u64(bytes, at), server_port: read_u16(bytes, at + 8) }
    }

    #[inline]
    fn emit(self, out: &mut [u8], at: usize) {
        write_u64(out, at, self.client_id);
        write_u16(out, at + 8, self.server_port);
    }

    /// The entry at `at`; `None` if its id is 0.
    #[inline(always)]
    pub(crate) fn parse_optional(bytes: &[u8], at: usize) -> Option<Self> {
        let ack = Self::parse(bytes, at);
        (ack.client_id != 0).then_some(ack)
    }

    #[inline]
    pub(crate) fn emit_optional(ack: Option<Self>, out: &mut [u8], at: usize) {
        match ack {
            Some(ack) => ack.emit(out, at),
            None => out[at..at + ENTRY_LEN].fill(0),
        }
    }
}

/// An entry with id 0, which means that no ack is attached.
const NONE: Ack = Ack { client_id: 0, server_port: 0 };

/// The body of an ACK packet: up to [`MAX_ACKS`] RPCs in addition to the header's (`WIRE-18`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckList {
    count: u8,
    /// An entry with id 0 is none; beyond `count` all are.
    entries: [Ack; MAX_ACKS],
}

impl Default for AckList {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl AckList {
    /// An empty list: the ACK is about the RPC in the header alone.
    pub const EMPTY: Self = Self { count: 0, entries: [NONE; MAX_ACKS] };

    /// Appends `ack`.
    ///
    /// # Errors
    ///
    /// Gives `ack` back if the list is full.
    pub fn push(&mut self, ack: Ack) -> Result<(), Ack> {
        let Some(slot) = self.entries.get_mut(usize::from(self.count)) else {
            return Err(ack);
        };
        *slot = ack;
        self.count += 1;
        Ok(())
    }

    /// Returns the entries, in the order of the packet.
    pub fn iter(&self) -> impl Iterator<Item = Ack> + '_ {
        self.entries.iter().take(self.len()).filter(|ack| ack.client_id != 0).copied()
    }

    /// Returns the number of entries, 0 to [`MAX_ACKS`].
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Returns whether the list has no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns whether no further entry fits.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len() == MAX_ACKS
    }

    /// Bytes of an ACK packet with this list. The kernel refuses packets shorter than the full 80
    /// bytes (Rules for peers, item 21); the udp profile leaves empty entries out, so that the
    /// answer to a NEED_ACK is hardly longer than the question (`WIRE-24`).
    pub(crate) const fn packet_len(&self, profile: Profile) -> usize {
        match profile {
            Profile::Kernel => ENTRIES_AT + MAX_ACKS * ENTRY_LEN,
            Profile::Udp => ENTRIES_AT + self.count as usize * ENTRY_LEN,
        }
    }

    /// Returns the length of an ACK packet of the udp profile, according to its count of entries;
    /// `None` if the bytes end before the count.
    pub(crate) fn len_by_count(bytes: &[u8]) -> Option<usize> {
        let header: &[u8; ENTRIES_AT] = bytes.first_chunk()?;
        Some(ENTRIES_AT + usize::from(read_u16(header, HEADER_LEN)) * ENTRY_LEN)
    }

    /// Reads the list; `bytes` is the whole packet, at least as long as its profile's shortest ACK.
    ///
    /// Entries beyond the count are ignored, and so is an entry with id 0.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let count = read_u16(bytes, 28);
        if usize::from(count) > MAX_ACKS {
            return Err(ParseError::TooManyAcks(count));
        }
        let (need, have) = (ENTRIES_AT + usize::from(count) * ENTRY_LEN, bytes.len());
        if have < need {
            return Err(ParseError::TooShort { kind: Some(Kind::Ack), need, have });
        }
        let mut list = Self { count: count as u8, ..Self::EMPTY };
        for (i, slot) in list.entries.iter_mut().take(usize::from(count)).enumerate() {
            *slot = Ack::parse_optional(bytes, ENTRIES_AT + i * ENTRY_LEN).unwrap_or(NONE);
        }
        Ok(list)
    }

    pub(crate) fn emit(&self, out: &mut [u8]) {
        write_u16(out, 28, u16::from(self.count));
        for (i, entry) in self.entries.iter().enumerate() {
            entry.emit(out, ENTRIES_AT + i * ENTRY_LEN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_list_gives_the_ack_back() {
        let mut list = AckList::EMPTY;
        for i in 1..=5 {
            list.push(Ack { client_id: i * 2, server_port: 7 }).unwrap();
        }
        let sixth = Ack { client_id: 12, server_port: 7 };
        assert_eq!(list.push(sixth), Err(sixth));
        assert!(list.is_full());
        assert_eq!(list.iter().map(|a| a.client_id).sum::<u64>(), 30);
    }
}
