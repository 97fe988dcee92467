//! The byte streams of a handshake: reassembles incoming pieces, and repeats outgoing ones until
//! they are answered.

use std::collections::BTreeMap;

/// Maximum bytes of one level of a handshake. TLS allows certificates of 64 KiB; clusters use a few
/// KiB.
pub(super) const MAX_STREAM: usize = 32 * 1024;

/// Bytes of a handshake in one packet, so that each fits the smallest path (1,280 bytes of IPv6)
/// with its headers.
pub(super) const MAX_PIECE: usize = 1_100;

/// Incoming bytes of one level, delivered in order.
#[derive(Debug, Default)]
pub(super) struct IncomingStream {
    /// Bytes read so far.
    read: usize,
    /// Pieces ahead of them, by offset.
    ahead: BTreeMap<usize, Vec<u8>>,
    ahead_bytes: usize,
}

impl IncomingStream {
    /// Adds a piece. Returns the bytes that are now in order; they count as read. Pieces beyond
    /// [`MAX_STREAM`], and excess pieces, are dropped.
    pub(super) fn take(&mut self, offset: usize, piece: &[u8]) -> Vec<u8> {
        let mut ready = Vec::new();
        if offset > self.read {
            let fits = offset + piece.len() <= MAX_STREAM
                && self.ahead_bytes + piece.len() <= MAX_STREAM
                && self.ahead.len() < 64;
            if fits && !piece.is_empty() && !self.ahead.contains_key(&offset) {
                self.ahead_bytes += piece.len();
                self.ahead.insert(offset, piece.to_vec());
            }
            return ready;
        }
        self.append(offset, piece, &mut ready);
        while let Some(entry) = self.ahead.first_entry() {
            if *entry.key() > self.read {
                break;
            }
            let (offset, piece) = entry.remove_entry();
            self.ahead_bytes -= piece.len();
            self.append(offset, &piece, &mut ready);
        }
        ready
    }

    fn append(&mut self, offset: usize, piece: &[u8], ready: &mut Vec<u8>) {
        let known = self.read - offset;
        if let Some(new) = piece.get(known..)
            && self.read + new.len() <= MAX_STREAM
        {
            self.read += new.len();
            ready.extend_from_slice(new);
        }
    }
}

/// Outgoing bytes of one level, kept for retransmission.
#[derive(Debug, Default)]
pub(super) struct OutgoingStream {
    bytes: Vec<u8>,
}

impl OutgoingStream {
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the pieces with their offsets.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.bytes.chunks(MAX_PIECE).enumerate().map(|(n, piece)| (n * MAX_PIECE, piece))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_in_any_order_and_number_make_the_stream(
            len in 1usize..5000,
            order in prop::collection::vec((0usize..5000, 1usize..900), 1..80),
        ) {
            let stream: Vec<u8> = (0..len).map(|n| n as u8 ^ (n >> 8) as u8).collect();
            let (mut incoming, mut read) = (IncomingStream::default(), Vec::new());
            for (from, count) in order {
                let from = from.min(len);
                let piece = &stream[from..(from + count).min(len)];
                read.extend(incoming.take(from, piece));
                prop_assert_eq!(&read[..], &stream[..read.len()]);
            }
            for (n, piece) in stream.chunks(700).enumerate() {
                read.extend(incoming.take(n * 700, piece));
            }
            prop_assert_eq!(read, stream);
        }
    }

    #[test]
    fn a_stream_is_bounded() {
        let mut incoming = IncomingStream::default();
        for n in 0..1000 {
            incoming.take(100_000 * n + 1, &[0; 1000]);
            incoming.take(1000 * n + 1, &[0; 1000]);
        }
        assert!(incoming.ahead_bytes <= MAX_STREAM);
        assert!(incoming.take(0, &[0; MAX_STREAM + 1]).is_empty());
    }
}
