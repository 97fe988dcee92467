//! Where in a record is the IP packet?

use etherparse::{EtherType, LaxSlicedPacket};

/// Nothing that is understood: the number of the link type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnknownLink(pub i32);

/// Headers of IP and what is above, as far as they are there; `None` if it is not IP, or too short to tell.
pub(crate) type Sliced<'a> = Option<LaxSlicedPacket<'a>>;

/// Link types, as <https://www.tcpdump.org/linktypes.html> numbers them.
mod link {
    /// BSD loopback: four bytes of address family, then IP.
    pub(super) const NULL: i32 = 0;
    /// Ethernet.
    pub(super) const ETHERNET: i32 = 1;
    /// Raw IP, as two BSDs number it.
    pub(super) const RAW_BSD: [i32; 2] = [12, 14];
    /// Raw IP: what apus itself records.
    pub(super) const RAW: i32 = 101;
    /// OpenBSD loopback: as [`NULL`].
    pub(super) const LOOP: i32 = 108;
    /// Linux "cooked", as from `tcpdump -i any`.
    pub(super) const LINUX_SLL: i32 = 113;
    /// Raw IPv4, and raw IPv6.
    pub(super) const RAW_IP: [i32; 2] = [228, 229];
    /// Linux "cooked", version 2.
    pub(super) const LINUX_SLL2: i32 = 276;
}

/// Looks for the IP packet behind the header of that link type.
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

/// A packet behind a header of so many bytes, which holds its Ethernet type at an offset.
fn cooked(data: &[u8], type_at: usize, header: usize) -> Sliced<'_> {
    let &[high, low] = data.get(type_at..type_at + 2)? else { return None };
    let ether_type = EtherType(u16::from_be_bytes([high, low]));
    Some(LaxSlicedPacket::from_ether_type(ether_type, data.get(header..)?))
}
