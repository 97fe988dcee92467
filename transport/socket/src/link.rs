//! Rate of the link.

use std::fs;
use std::net::IpAddr;

use crate::address;

/// Linux's description of its interfaces: sysfs(5), `Documentation/ABI/testing/sysfs-class-net`.
const INTERFACES: &str = "/sys/class/net";

/// Rate assumed for a loopback device, which has no rate of its own. Chosen by us: more than a core
/// can copy, so that no packet is paced and windows suit the speed of memory.
const LOOPBACK_MBPS: u32 = 100_000;

/// Returns the rate in Mbit/s of the interface that owns `address`. For a wildcard address: the
/// rate of the host's network cards, if all that have a link agree. `None` if it is unknown, as for
/// virtual devices that report no rate.
#[must_use]
pub(crate) fn mbps(address: IpAddr) -> Option<u32> {
    let address = address.to_canonical();
    if address.is_loopback() {
        return Some(LOOPBACK_MBPS);
    }
    if address::is_wildcard(address) {
        let mut rates = cards().filter_map(|interface| rate(&interface));
        let first = rates.next()?;
        return rates.all(|rate| rate == first).then_some(first);
    }
    let interfaces = if_addrs::get_if_addrs().ok()?;
    let owner = interfaces.into_iter().find(|interface| interface.ip() == address)?;
    rate(&owner.name)
}

/// Returns the names of the interfaces that have a device.
fn cards() -> impl Iterator<Item = String> {
    let interfaces = fs::read_dir(INTERFACES).into_iter().flatten().flatten();
    interfaces
        .filter(|interface| interface.path().join("device").exists())
        .filter_map(|interface| interface.file_name().into_string().ok())
}

/// Returns the rate that an interface reports. Without a link it reports no rate, or -1.
fn rate(interface: &str) -> Option<u32> {
    let text = fs::read_to_string(format!("{INTERFACES}/{interface}/speed")).ok()?;
    text.trim().parse().ok().filter(|rate| *rate > 0 && *rate != u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loopback_device_is_as_fast_as_memory() {
        for address in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(mbps(address.parse().unwrap()), Some(LOOPBACK_MBPS));
        }
        assert_eq!(mbps("192.0.2.1".parse().unwrap()), None, "not an address of this host");
    }
}
