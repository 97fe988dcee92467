//! Checksums of TCP and UDP: veth forwards packets before any hardware has computed them (RFC 768,
//! RFC 9293, RFC 1071).

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// Protocol numbers of the IPv4 header with the offset of each protocol's checksum.
const PROTOCOLS: [(u8, usize); 2] = [(6, 16), (17, 6)];

/// Computes the checksum of a packet with its Ethernet header, if it carries TCP or UDP over IPv4
/// and is no fragment.
pub(super) fn complete(frame: &mut [u8]) {
    // A packet that cannot be parsed is forwarded unchanged, and the receiver drops it.
    let _ = try_complete(frame);
}

fn try_complete(frame: &mut [u8]) -> Option<()> {
    let ip = frame.get_mut(ETHERNET..)?;
    let (first, protocol) = (*ip.first()?, *ip.get(9)?);
    let header = usize::from(first & 0x0f) * 4;
    let length = usize::from(u16::from_be_bytes([*ip.get(2)?, *ip.get(3)?]));
    let fragment = u16::from_be_bytes([*ip.get(6)?, *ip.get(7)?]) & 0x3fff;
    if first >> 4 != 4 || header < 20 || fragment != 0 {
        return None;
    }
    let (_, at) = PROTOCOLS.into_iter().find(|(number, _)| *number == protocol)?;
    // Ethernet pads short packets: the length of the header counts.
    let packet = ip.get_mut(..length)?;
    let (head, segment) = packet.split_at_mut_checked(header)?;
    segment.get_mut(at..at + 2)?.fill(0);
    let pseudo = sum(&head[12..20]) + u64::from(protocol) + segment.len() as u64;
    let mut total = pseudo + sum(segment);
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    let checksum = match !(total as u16) {
        // In UDP, 0 means "no checksum".
        0 => 0xffff,
        checksum => checksum,
    };
    segment[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

/// Returns the sum of the 16-bit words; an odd byte at the end is the upper half of a word. Eight
/// bytes are added at a time.
fn sum(bytes: &[u8]) -> u64 {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut wide: u128 = 0;
    for chunk in chunks {
        wide += u128::from(u64::from_be_bytes(*chunk));
    }
    // 2^16 is 1 modulo 2^16 - 1, so words may be added in any grouping.
    let mut total = fold(wide);
    for pair in rest.chunks(2) {
        total += u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    }
    total
}

fn fold(mut wide: u128) -> u64 {
    while wide > 0xffff_ffff {
        wide = (wide & 0xffff_ffff) + (wide >> 32);
    }
    (wide as u64 & 0xffff) + (wide as u64 >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a UDP packet from 10.0.0.1 to 10.0.0.2 that carries `payload`.
    fn udp(payload: &[u8]) -> Vec<u8> {
        let length = (28 + payload.len()) as u16;
        let mut frame = vec![0; ETHERNET];
        frame.extend([0x45, 0]);
        frame.extend(length.to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0, 7, 0, 9]);
        frame.extend((length - 20).to_be_bytes());
        frame.extend([0xde, 0xad]);
        frame.extend(payload);
        frame
    }

    /// Whether the sum over a segment and its checksum is 0xffff, as a receiver checks.
    fn is_right(frame: &[u8]) -> bool {
        let ip = &frame[ETHERNET..];
        let length = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        let segment = &ip[20..length];
        let mut total = sum(&ip[12..20]) + u64::from(ip[9]) + segment.len() as u64 + sum(segment);
        while total > 0xffff {
            total = (total & 0xffff) + (total >> 16);
        }
        total == 0xffff
    }

    #[test]
    fn a_receiver_accepts_the_checksum() {
        for payload in [&b""[..], b"x", b"payload", &[0xff; 1_400], &[0x5a; 1_401]] {
            let mut frame = udp(payload);
            assert!(!is_right(&frame));
            complete(&mut frame);
            assert!(is_right(&frame), "{} bytes", payload.len());
        }
    }

    #[test]
    fn padding_does_not_count() {
        let (mut padded, mut bare) = (udp(b"x"), udp(b"x"));
        padded.extend([9; 20]);
        complete(&mut padded);
        complete(&mut bare);
        assert!(padded.starts_with(&bare));
    }

    /// Malformed and foreign packets cause no panic and stay unchanged.
    #[test]
    fn other_packets_stay_as_they_are() {
        let whole = udp(b"payload");
        let mut fragment = whole.clone();
        fragment[ETHERNET + 6] = 0x20;
        let mut other = whole.clone();
        other[ETHERNET + 9] = 1;
        for frame in (0..30).map(|length| whole[..length].to_vec()).chain([fragment, other]) {
            let mut changed = frame.clone();
            complete(&mut changed);
            assert_eq!(changed, frame);
        }
    }
}
