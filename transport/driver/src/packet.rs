//! Packets of a burst, as the pieces that the engine passed.

/// One packet of a [`Burst`](crate::Burst), not copied yet.
#[derive(Clone, Copy, Debug)]
pub struct BurstPacket<'a> {
    /// The packet's header.
    pub header: &'a [u8],
    /// The packet's payload.
    pub payload: PacketPieces<'a>,
}

impl<'a> BurstPacket<'a> {
    /// Returns the bytes of header and payload.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.header.len() + self.payload.len()
    }

    /// Returns whether the packet has neither header nor payload; never for a consistent burst.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the pieces of header and payload in order, none of them empty.
    #[inline]
    pub fn pieces(self) -> impl Iterator<Item = &'a [u8]> {
        std::iter::once(self.header).chain(self.payload)
    }

    /// Copies the packet to the start of `frame`.
    ///
    /// # Panics
    ///
    /// If `frame` is shorter than [`BurstPacket::len`].
    #[inline]
    pub fn copy_to(self, frame: &mut [u8]) {
        let (header, mut rest) = frame.split_at_mut(self.header.len());
        header.copy_from_slice(self.header);
        for piece in self.payload {
            let (here, behind) = rest.split_at_mut(piece.len());
            here.copy_from_slice(piece);
            rest = behind;
        }
    }

    /// Copies the packet into a vector.
    #[must_use]
    pub fn to_vec(self) -> Vec<u8> {
        let mut frame = vec![0; self.len()];
        self.copy_to(&mut frame);
        frame
    }
}

/// A run of bytes that may start in the middle of one slice and end in the middle of another.
///
/// Iterating yields the pieces, none of them empty.
#[derive(Clone, Copy, Debug)]
pub struct PacketPieces<'a> {
    /// Rest of the slice that the run starts in.
    first: &'a [u8],
    /// The slices behind `first`. The run may end before they do.
    others: &'a [&'a [u8]],
    /// Length of the run in bytes, at most the bytes in `first` and `others`.
    len: usize,
}

impl<'a> PacketPieces<'a> {
    /// Returns the run of all bytes of `slices`.
    #[must_use]
    #[inline]
    pub fn new(slices: &'a [&'a [u8]]) -> Self {
        Self { first: &[], others: slices, len: slices.iter().map(|slice| slice.len()).sum() }
    }

    /// Returns the number of bytes left.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no byte is left.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Splits off the first `count` bytes, or all if there are fewer.
    #[inline]
    fn take_front(&mut self, count: usize) -> Self {
        let count = count.min(self.len);
        let taken = Self { len: count, ..*self };
        self.len -= count;
        let mut skip = count;
        while skip > self.first.len() {
            skip -= self.first.len();
            (self.first, self.others) = (self.others[0], &self.others[1..]);
        }
        self.first = &self.first[skip..];
        taken
    }
}

impl<'a> Iterator for PacketPieces<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.len == 0 {
            return None;
        }
        while self.first.is_empty() {
            (self.first, self.others) = (self.others[0], &self.others[1..]);
        }
        let (piece, rest) = self.first.split_at(self.first.len().min(self.len));
        self.first = rest;
        self.len -= piece.len();
        Some(piece)
    }
}

/// The packets of a burst, in order; see [`Burst::each`](crate::Burst::each).
#[derive(Clone, Debug)]
pub struct BurstPackets<'a> {
    headers: &'a [u8],
    header_len: usize,
    payload: PacketPieces<'a>,
    segment: usize,
}

impl<'a> BurstPackets<'a> {
    #[inline]
    pub(crate) fn new(
        headers: &'a [u8],
        header_len: usize,
        payload: &'a [&'a [u8]],
        segment: usize,
    ) -> Self {
        Self { headers, header_len, payload: PacketPieces::new(payload), segment }
    }
}

impl<'a> Iterator for BurstPackets<'a> {
    type Item = BurstPacket<'a>;

    #[inline]
    fn next(&mut self) -> Option<BurstPacket<'a>> {
        if self.headers.is_empty() {
            return None;
        }
        let (header, behind) = self.headers.split_at(self.header_len);
        self.headers = behind;
        Some(BurstPacket { header, payload: self.payload.take_front(self.segment) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.headers.len() / self.header_len.max(1);
        (left, Some(left))
    }
}

impl ExactSizeIterator for BurstPackets<'_> {}

#[cfg(test)]
mod tests {
    use crate::Burst;
    use std::net::SocketAddr;

    fn packets(headers: &[u8], payload: &[&[u8]], segment: usize) -> Vec<String> {
        let to = SocketAddr::from(([127, 0, 0, 1], 1));
        let burst = Burst { headers, header_len: 2, payload, segment, ..Burst::single(to, &[]) };
        burst
            .each()
            .map(|packet| {
                assert_eq!(packet.pieces().collect::<Vec<_>>().concat(), packet.to_vec());
                assert!(packet.pieces().all(|piece| !piece.is_empty()), "no empty pieces");
                String::from_utf8(packet.to_vec()).unwrap()
            })
            .collect()
    }

    #[test]
    fn slices_may_end_anywhere_in_a_packet() {
        assert_eq!(packets(b"AABBCC", &[b"1234", b"", b"5", b"67"], 3), ["AA123", "BB456", "CC7"]);
        assert_eq!(packets(b"AABB", &[b"12", b"34"], 2), ["AA12", "BB34"], "at the same bytes");
        assert_eq!(packets(b"AABBCC", &[b"12345"], 2), ["AA12", "BB34", "CC5"]);
    }

    #[test]
    fn a_single_packet_may_be_only_a_header() {
        assert_eq!(packets(b"AA", &[], 0), ["AA"]);
        assert_eq!(packets(b"AA", &[b"", b""], 0), ["AA"]);
    }
}
