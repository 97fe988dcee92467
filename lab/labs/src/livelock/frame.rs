//! Frames: the checks and changes that a router makes in a packet.
//!
//! RFC 1812, sections 5.2 and 5.3, requires every router to check the header, decrement the time to
//! live, correct the checksum (RFC 1624), and address the packet to the next hop.

/// The longest packet with its Ethernet header, without the checksum that the hardware appends.
pub(super) const MAX: usize = 1514;

/// The shortest packet; shorter ones are padded.
pub(super) const MIN: usize = 60;

/// Length of an Ethernet header.
pub(super) const ETHERNET: usize = 14;

/// Length of an IPv4 header without options.
const IPV4: usize = 20;

/// Ethernet's number for IPv4.
const ETHERTYPE: [u8; 2] = [0x08, 0x00];

/// A buffer with a packet. Moving it does not copy the packet.
#[derive(Debug)]
pub(super) struct Frame {
    bytes: Box<[u8; MAX]>,
    len: usize,
}

/// Why a packet is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It is not an IPv4 packet, or its header is inconsistent.
    Malformed,
    /// Its header's checksum is wrong.
    Checksum,
    /// Its time to live has expired.
    Expired,
}

impl Frame {
    /// Returns an empty buffer.
    pub(super) fn empty() -> Self {
        Self { bytes: Box::new([0; MAX]), len: 0 }
    }

    /// Returns the whole buffer, to be filled.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[..]
    }

    /// Sets the number of received bytes. A packet longer than the buffer was truncated and counts
    /// as empty.
    pub(super) const fn filled(&mut self, len: usize) {
        self.len = if len > MAX { 0 } else { len };
    }

    /// Returns the packet.
    pub(super) fn packet(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Returns the destination of the packet, if it may be forwarded. Only the header is read.
    pub(super) fn destination(&self) -> Result<[u8; 4], Unfit> {
        let header = ipv4(self.packet()).ok_or(Unfit::Malformed)?;
        if sum(header) != 0xffff {
            return Err(Unfit::Checksum);
        }
        // A packet whose time is 1 would arrive with 0.
        if header[8] <= 1 {
            return Err(Unfit::Expired);
        }
        Ok([header[16], header[17], header[18], header[19]])
    }

    /// Prepares the packet for the next hop. The packet must have a [`Frame::destination`].
    pub(super) fn pass_on(&mut self, from: [u8; 6], to: [u8; 6]) {
        self.bytes[..6].copy_from_slice(&to);
        self.bytes[6..12].copy_from_slice(&from);
        let header = &mut self.bytes[ETHERNET..ETHERNET + IPV4];
        let old = u16::from_be_bytes([header[8], header[9]]);
        header[8] -= 1;
        let new = u16::from_be_bytes([header[8], header[9]]);
        let checksum = u16::from_be_bytes([header[10], header[11]]);
        header[10..12].copy_from_slice(&corrected(checksum, old, new).to_be_bytes());
    }
}

/// Returns the IPv4 header of a packet with its options, if it is one.
pub(super) fn ipv4(packet: &[u8]) -> Option<&[u8]> {
    let (ethernet, rest) = packet.split_at_checked(ETHERNET)?;
    let first = *rest.first()?;
    let len = usize::from(first & 0x0f) * 4;
    let header = rest.get(..len)?;
    let fits = first >> 4 == 4 && len >= IPV4 && ethernet[12..] == ETHERTYPE;
    let total = fits.then(|| usize::from(u16::from_be_bytes([header[2], header[3]])))?;
    (total >= len && total <= rest.len()).then_some(header)
}

/// Returns the one's complement sum of 16-bit words, padded with a zero byte: RFC 1071. A header
/// with its checksum sums up to 0xffff.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|word| {
        let low = word.get(1).copied().unwrap_or(0);
        u32::from(u16::from_be_bytes([word[0], low]))
    });
    fold(words.sum())
}

/// Returns the checksum after one of the words that it covers has changed: RFC 1624, equation 3.
fn corrected(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(u32::from(!checksum) + u32::from(!old) + u32::from(new))
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Returns a UDP datagram with 4 bytes of payload in a packet of minimum size, as the paper's
/// generator sent.
pub(super) fn shortest(to: [u8; 6], source: [u8; 4], destination: [u8; 4]) -> [u8; MIN] {
    const UDP: usize = 8;
    const PAYLOAD: usize = 4;
    /// Discard, RFC 863.
    const PORT: u16 = 9;
    let mut frame = [0; MIN];
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&[0x02, 0, 0x0a, 0x4e, 0, 0]);
    frame[12..14].copy_from_slice(&ETHERTYPE);
    let ip = &mut frame[ETHERNET..];
    let total = (IPV4 + UDP + PAYLOAD) as u16;
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&total.to_be_bytes());
    // Time to live as RFC 1700 suggests; protocol UDP.
    (ip[8], ip[9]) = (64, 17);
    ip[12..16].copy_from_slice(&source);
    ip[16..20].copy_from_slice(&destination);
    let checksum = !sum(&ip[..IPV4]);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    // Source and destination port, length; no checksum, which IPv4 allows.
    ip[20..22].copy_from_slice(&4000_u16.to_be_bytes());
    ip[22..24].copy_from_slice(&PORT.to_be_bytes());
    ip[24..26].copy_from_slice(&((UDP + PAYLOAD) as u16).to_be_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(packet: &[u8]) -> Frame {
        let mut frame = Frame::empty();
        frame.room()[..packet.len()].copy_from_slice(packet);
        frame.filled(packet.len());
        frame
    }

    fn packet() -> [u8; MIN] {
        shortest([2; 6], [10, 1, 0, 1], [10, 2, 3, 4])
    }

    /// Returns a changed packet with a corrected checksum.
    fn changed(change: impl FnOnce(&mut [u8; MIN])) -> Frame {
        let mut packet = packet();
        change(&mut packet);
        packet[24..26].fill(0);
        let checksum = !sum(&packet[14..34]);
        packet[24..26].copy_from_slice(&checksum.to_be_bytes());
        frame(&packet)
    }

    #[test]
    fn the_sum_agrees_with_the_rfc() {
        // RFC 1071, section 3.
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
        assert_eq!(sum(&[0x12]), 0x1200, "padded");
        // RFC 1624, section 4: 0x0000 and not 0xffff.
        assert_eq!(corrected(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn a_packet_that_is_passed_on_has_one_hop_less_and_a_right_checksum() {
        for time in 2..=255 {
            let mut frame = changed(|packet| packet[22] = time);
            assert_eq!(frame.destination(), Ok([10, 2, 3, 4]));
            frame.pass_on([7; 6], [9; 6]);
            assert_eq!(sum(&frame.packet()[14..34]), 0xffff, "time to live {time}");
            assert_eq!(frame.packet()[22], time - 1);
            assert_eq!((&frame.packet()[..6], &frame.packet()[6..12]), (&[9; 6][..], &[7; 6][..]));
            assert_eq!(frame.packet()[34..], packet()[34..], "the rest is unchanged");
        }
    }

    #[test]
    fn an_expired_packet_is_not_forwarded() {
        for time in [0, 1] {
            let frame = changed(|packet| packet[22] = time);
            assert_eq!(frame.destination(), Err(Unfit::Expired));
        }
    }

    #[test]
    fn malformed_packets_are_refused() {
        for at in 14..34 {
            let mut damaged = packet();
            damaged[at] ^= 0x10;
            assert!(frame(&damaged).destination().is_err(), "byte {at}");
        }
        assert_eq!(frame(&packet()[..33]).destination(), Err(Unfit::Malformed), "truncated");
        let arp = changed(|packet| packet[13] = 6);
        assert_eq!(arp.destination(), Err(Unfit::Malformed));
        let longer_than_it_is = changed(|packet| packet[16..18].fill(1));
        assert_eq!(longer_than_it_is.destination(), Err(Unfit::Malformed));
        let mut cut = Frame::empty();
        cut.filled(MAX + 1);
        assert_eq!(cut.destination(), Err(Unfit::Malformed));
    }
}
