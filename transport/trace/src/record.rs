//! Records: events with time, RPC and numbers.

use crate::event::{Event, Field};
use crate::peers::PeerIndex;
use std::num::NonZeroU64;

/// Bytes of a record.
pub const RECORD_LEN: usize = 32;

/// Side of an RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// Sends the request.
    Client,
    /// Sends the response.
    Server,
}

impl Side {
    /// Returns the other side.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// An RPC as records name it. Ids are unique only between one client and one server, so the name
/// includes the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rpc {
    /// The client's id, which is even, with this process's side in the low bit: 0 client, 1 server.
    word: NonZeroU64,
    /// A [`PeerIndex`] with the width of a word: messages carry this struct, and structs of whole
    /// words are copied by words.
    peer: u64,
}

impl Rpc {
    /// Returns the RPC with the client's `id` and this peer. Clients never use id 0; it is mapped
    /// to the last id.
    #[must_use]
    pub const fn new(id: u64, side: Side, peer: PeerIndex) -> Self {
        let bit = match side {
            Side::Client => 0,
            Side::Server => 1,
        };
        let word = match NonZeroU64::new(id & !1 | bit) {
            Some(word) => word,
            None => NonZeroU64::MAX,
        };
        Self { word, peer: peer.0 as u64 }
    }

    /// Returns the client's id: even, and equal on both sides.
    #[must_use]
    pub const fn id(self) -> u64 {
        self.word.get() & !1
    }

    /// Returns this process's side of the RPC.
    #[must_use]
    pub const fn side(self) -> Side {
        if self.word.get() & 1 == 0 { Side::Client } else { Side::Server }
    }

    /// Returns the peer; [`crate::Head::peer`] returns its address.
    #[must_use]
    pub const fn peer(self) -> PeerIndex {
        PeerIndex(self.peer as u16)
    }
}

/// A recorded event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Time in ticks of [`crate::Head::clock`].
    pub ticks: u64,
    /// The RPC with this process's side, as in [`Rpc`]; 0 if the event belongs to none.
    rpc: u64,
    /// Number of the [`Event`].
    pub kind: u16,
    /// The peer; [`PeerIndex::NONE`] if the event belongs to none.
    pub peer: PeerIndex,
    /// First number; [`Event::fields`] describes it.
    pub a: u32,
    /// Second number; [`Event::fields`] describes it.
    pub b: u64,
}

impl Record {
    /// Returns the record of an RPC's event.
    #[must_use]
    #[inline]
    pub const fn of_rpc(ticks: u64, rpc: Rpc, event: Event, a: u32, b: u64) -> Self {
        Self { ticks, rpc: rpc.word.get(), kind: event as u16, peer: rpc.peer(), a, b }
    }

    /// Returns the record of an event of a thread, or of many RPCs.
    #[must_use]
    #[inline]
    pub const fn of_thread(ticks: u64, event: Event, a: u32, b: u64) -> Self {
        Self { ticks, rpc: 0, kind: event as u16, peer: PeerIndex::NONE, a, b }
    }

    /// Returns the record of a peer's event that belongs to no RPC.
    #[must_use]
    #[inline]
    pub const fn of_peer(ticks: u64, peer: PeerIndex, event: Event, a: u32, b: u64) -> Self {
        Self { ticks, rpc: 0, kind: event as u16, peer, a, b }
    }

    /// Returns the event; `None` for an event of a later version, whose name [`crate::Trace::name`]
    /// returns.
    #[must_use]
    pub const fn event(&self) -> Option<Event> {
        Event::from_number(self.kind)
    }

    /// Returns the RPC of the event, if it has one.
    #[must_use]
    pub const fn rpc(&self) -> Option<Rpc> {
        match NonZeroU64::new(self.rpc) {
            Some(word) => Some(Rpc { word, peer: self.peer.0 as u64 }),
            None => None,
        }
    }

    /// Returns the event's fields with their values.
    pub fn fields(&self) -> impl Iterator<Item = (&'static Field, u64)> + use<> {
        let (a, b) = (self.a, self.b);
        let fields = self.event().map_or(&[][..], Event::fields);
        fields.iter().map(move |field| (field, field.value(a, b)))
    }

    /// Returns the four words in a ring.
    #[inline]
    pub(crate) const fn to_words(self) -> [u64; 4] {
        let what = self.kind as u64 | (self.peer.0 as u64) << 16 | (self.a as u64) << 32;
        [self.ticks, self.rpc, what, self.b]
    }

    pub(crate) const fn from_words([ticks, rpc, what, b]: [u64; 4]) -> Self {
        let (kind, peer) = (what as u16, PeerIndex((what >> 16) as u16));
        Self { ticks, rpc, kind, peer, a: (what >> 32) as u32, b }
    }

    pub(crate) fn to_bytes(self) -> [u8; RECORD_LEN] {
        let mut bytes = [0; RECORD_LEN];
        for (place, word) in bytes.chunks_exact_mut(8).zip(self.to_words()) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; RECORD_LEN]) -> Self {
        let mut words = [0; 4];
        for (word, place) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            let mut eight = [0; 8];
            eight.copy_from_slice(place);
            *word = u64::from_le_bytes(eight);
        }
        Self::from_words(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_unchanged_as_words_and_as_bytes() {
        let rpc = Rpc::new(u64::MAX, Side::Server, PeerIndex(0xfedc));
        let record = Record::of_rpc(u64::MAX - 1, rpc, Event::GrantSent, u32::MAX, 1 << 63);
        assert_eq!(Record::from_words(record.to_words()), record);
        assert_eq!(Record::from_bytes(&record.to_bytes()), record);
        assert_eq!(size_of::<Record>(), RECORD_LEN);
    }

    #[test]
    fn an_rpc_has_the_same_id_on_both_sides() {
        let [client, server] =
            [Side::Client, Side::Server].map(|side| Rpc::new(13, side, PeerIndex::NONE));
        assert_eq!([client.id(), server.id()], [12, 12]);
        assert_eq!([client.side(), server.side()], [Side::Client, Side::Server]);
        assert_ne!(client, server);
        assert_eq!(size_of::<Option<Rpc>>(), 16, "every message carries it");
    }

    #[test]
    fn a_threads_event_has_neither_rpc_nor_peer() {
        let record = Record::of_thread(1, Event::Look, 2, 3);
        assert_eq!((record.rpc(), record.peer), (None, PeerIndex::NONE));
        let values: Vec<_> = record.fields().map(|(field, value)| (field.name, value)).collect();
        assert_eq!(values, [("packets", 2), ("took", 3)]);
    }
}
