//! Networks: a prefix of addresses, such as `10.0.0.0/8`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// All addresses that start with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// A text that names no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseNetworkError {
    /// The text is not an address.
    #[error("`{0}` is no IP address")]
    Address(String),
    /// The number of bits is not a number, or too large.
    #[error("`{text}` is no number of bits from 0 to {most}")]
    Bits {
        /// The rejected text.
        text: String,
        /// Bits of the address.
        most: u8,
    },
    /// Bits after the prefix are set: the text means a host, or the prefix is wrong.
    #[error("{address} has bits behind the first {bits}")]
    Host {
        /// The address.
        address: IpAddr,
        /// Length of the prefix.
        bits: u8,
    },
}

impl Network {
    /// Returns whether an address belongs to the network. An IPv4 address that is mapped to IPv6
    /// counts as IPv4.
    #[must_use]
    pub fn contains(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.address.is_ipv4() == ip.is_ipv4()
            && prefix(self.address, self.bits) == prefix(ip, self.bits)
    }
}

/// Number of bits of an address.
const fn width(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

/// The first bits of an address; the others are zero.
fn prefix(ip: IpAddr, bits: u8) -> u128 {
    let value = match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()) << 96,
        IpAddr::V6(ip) => ip.to_bits(),
    };
    // A shift by all bits is not defined.
    let mask = if bits == 0 { 0 } else { u128::MAX << (128 - u32::from(bits)) };
    value & mask
}

impl FromStr for Network {
    type Err = ParseNetworkError;

    /// Parses `10.0.0.0/8`, `fd00::/8`, or an address alone.
    fn from_str(text: &str) -> Result<Self, ParseNetworkError> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let no_address = |_| ParseNetworkError::Address(address.to_owned());
        let address = address.parse::<IpAddr>().map_err(no_address)?.to_canonical();
        let most = width(address);
        let bits = match bits {
            None => most,
            Some(bits) => {
                let number = bits.parse().ok().filter(|number| *number <= most);
                number.ok_or_else(|| ParseNetworkError::Bits { text: bits.to_owned(), most })?
            }
        };
        if prefix(address, bits) == prefix(address, most) {
            Ok(Self { address, bits })
        } else {
            Err(ParseNetworkError::Host { address, bits })
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(network: &str, ip: &str) -> bool {
        network.parse::<Network>().unwrap().contains(ip.parse().unwrap())
    }

    #[test]
    fn a_network_contains_what_begins_like_it() {
        assert!(contains("10.0.0.0/8", "10.255.0.1") && !contains("10.0.0.0/8", "11.0.0.0"));
        assert!(contains("10.1.2.3", "10.1.2.3") && !contains("10.1.2.3", "10.1.2.2"));
        assert!(contains("0.0.0.0/0", "8.8.8.8") && !contains("0.0.0.0/0", "::1"));
        assert!(contains("::/0", "2001:db8::1") && !contains("::/0", "::ffff:8.8.8.8"));
        assert!(contains("fd00::/8", "fdff::1") && !contains("fd00::/8", "fe80::1"));
        assert!(contains("10.0.0.0/8", "::ffff:10.1.1.1"));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in
            ["", "/8", "10.0.0/8", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.1/8", "a/8"]
        {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
        assert_eq!("10.0.0.0/8".parse::<Network>().unwrap().to_string(), "10.0.0.0/8");
    }
}
