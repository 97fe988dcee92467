//! Bursts: the packets that the engine passes to a driver in one call.

use std::net::{IpAddr, SocketAddr};

use crate::packet::BurstPackets;

/// One or more packets of one message for one destination.
///
/// Packet `i` is the `i`-th piece of `headers` followed by the `i`-th piece of the payload. The
/// payload is a list of slices whose concatenation is the payload of all packets; a packet's piece
/// may start in one slice and end in another.
///
/// ```text
///   headers   |h0|h1|h2|                       header_len bytes each
///   payload   |----slice 0----|--slice 1--|    segment bytes per packet, the last one shorter
///   packets   h0 ------  h1 -----+  h2 --
/// ```
///
/// A burst is consistent if `headers` is a non-empty multiple of `header_len`, and the payload
/// fills all packets but the last, which gets at least one byte. A burst of one packet may have no
/// payload. With an inconsistent burst, [`crate::TransmitHalf::send`] panics in debug builds.
#[derive(Clone, Copy, Debug)]
pub struct Burst<'a> {
    /// Destination.
    pub to: SocketAddr,
    /// Local address to send from; `None` lets the system choose.
    pub from: Option<IpAddr>,
    /// Byte for IPv4's TOS or IPv6's traffic class field. The two ECN bits are 0, or 0b10 if
    /// switches may mark the packets (ECT(0) of RFC 3168).
    pub traffic_class: u8,
    /// Concatenated headers of the packets.
    pub headers: &'a [u8],
    /// Bytes of one header.
    pub header_len: usize,
    /// Concatenated payloads of the packets.
    pub payload: &'a [&'a [u8]],
    /// Payload bytes of every packet but the last, which may have fewer.
    pub segment: usize,
    /// Maximum length of a datagram that a packet may share with others for this destination: each
    /// packet states its length, and the destination reads all of them. 0 if each packet needs its
    /// own datagram. A driver need not merge.
    pub coalesce: usize,
}

impl<'a> Burst<'a> {
    /// Returns a burst of one contiguous packet, with traffic class 0 and no address to send from.
    #[must_use]
    pub const fn single(to: SocketAddr, packet: &'a [u8]) -> Self {
        Self {
            to,
            from: None,
            traffic_class: 0,
            headers: packet,
            header_len: packet.len(),
            payload: &[],
            segment: 0,
            coalesce: 0,
        }
    }

    /// Returns the packets in order. Meaningful only if the burst is consistent.
    #[must_use]
    #[inline]
    pub fn each(&self) -> BurstPackets<'a> {
        BurstPackets::new(self.headers, self.header_len, self.payload, self.segment)
    }

    /// Returns the number of packets.
    #[must_use]
    #[inline]
    pub fn packets(&self) -> usize {
        self.headers.len() / self.header_len
    }

    /// Returns the payload bytes of all packets together.
    #[must_use]
    #[inline]
    pub fn payload_len(&self) -> usize {
        match self.payload {
            [slice] => slice.len(), // The usual case. The vectorised sum costs more.
            slices => slices.iter().map(|slice| slice.len()).sum(),
        }
    }

    /// Returns the length in bytes of the first packet, which no other packet exceeds.
    #[must_use]
    #[inline]
    pub fn longest_packet(&self) -> usize {
        self.header_len + self.segment.min(self.payload_len())
    }

    /// Returns whether the fields agree with each other, as documented for the type.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        if self.header_len == 0 || self.headers.is_empty() {
            return false;
        }
        let packets = self.packets();
        let full = (packets - 1) * self.segment;
        let payload = self.payload_len();
        self.headers.len().is_multiple_of(self.header_len)
            && payload <= packets * self.segment.max(payload.min(1))
            && (packets == 1 || payload > full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst<'a>(headers: &'a [u8], payload: &'a [&'a [u8]], segment: usize) -> Burst<'a> {
        let to = SocketAddr::from(([127, 0, 0, 1], 1));
        Burst { headers, header_len: 2, payload, segment, ..Burst::single(to, &[]) }
    }

    #[test]
    fn inconsistent_bursts_are_detected() {
        assert!(burst(b"aa", &[], 0).is_consistent(), "a control packet");
        assert!(Burst::single(SocketAddr::from(([127, 0, 0, 1], 1)), b"a").is_consistent());
        assert!(burst(b"aa", &[b"12"], 2).is_consistent());
        assert!(burst(b"aabb", &[b"12", b"3"], 2).is_consistent(), "the last one is shorter");
        assert!(burst(b"aabb", &[b"1234"], 2).is_consistent());
        assert!(!burst(b"aabb", &[b"12"], 2).is_consistent(), "no payload for the second packet");
        assert!(!burst(b"aabb", &[b"12345"], 2).is_consistent(), "a byte too many");
        assert!(!burst(b"aab", &[b"1"], 2).is_consistent(), "half a header");
        assert!(!burst(b"", &[], 0).is_consistent());
    }
}
