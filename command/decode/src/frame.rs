//! Link-layer framing: finds the IP packet in a captured frame.

use etherparse::{EtherType, LaxSlicedPacket};

/// Error: the link type is unknown. Contains its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnknownLink(pub i32);

/// IP and transport headers, as far as they were captured; `None` if the frame is not IP or is too
/// short.
pub(crate) type Sliced<'a> = Option<LaxSlicedPacket<'a>>;

/// Numbers of link types, from <https://www.tcpdump.org/linktypes.html>.
mod link {
    /// BSD loopback: four bytes of address family, then IP.
    pub(super) const NULL: i32 = 0;
    /// Ethernet.
    pub(super) const ETHERNET: i32 = 1;
    /// Raw IP, with the numbers that two BSD systems use.
    pub(super) const RAW_BSD: [i32; 2] = [12, 14];
    /// Raw IP. apus records captures of this type.
    pub(super) const RAW: i32 = 101;
    /// OpenBSD loopback: same layout as [`NULL`].
    pub(super) const LOOP: i32 = 108;
    /// Linux "cooked" capture, as `tcpdump -i any` writes it.
    pub(super) const LINUX_SLL: i32 = 113;
    /// Raw IPv4, and raw IPv6.
    pub(super) const RAW_IP: [i32; 2] = [228, 229];
    /// Linux "cooked" capture, version 2.
    pub(super) const LINUX_SLL2: i32 = 276;
}

/// Parses the IP packet behind the link-layer header of type `link`.
pub(crate) fn slice(link: i32, data: &[u8]) -> Result<Sliced<'_>, UnknownLink> {
    Ok(match link {
        link::ETHERNET => LaxSlicedPacket::from_ethernet(data).ok(),
        link::NULL | link::LOOP => data.get(4..).and_then(from_ip),
        link::RAW => from_ip(data),
        link if link::RAW_BSD.contains(&link) || link::RAW_IP.contains(&link) => from_ip(data),
        link::LINUX_SLL => cooked(data, 14, 16),
        link::LINUX_SLL2 => cooked(data, 0, 20),
        other => return Err(UnknownLink(other)),
    })
}

fn from_ip(data: &[u8]) -> Sliced<'_> {
    LaxSlicedPacket::from_ip(data).ok()
}

/// Parses a packet behind a header of `header` bytes, which contains the EtherType at offset
/// `type_at`.
fn cooked(data: &[u8], type_at: usize, header: usize) -> Sliced<'_> {
    let &[high, low] = data.get(type_at..type_at + 2)? else { return None };
    let ether_type = EtherType(u16::from_be_bytes([high, low]));
    Some(LaxSlicedPacket::from_ether_type(ether_type, data.get(header..)?))
}
