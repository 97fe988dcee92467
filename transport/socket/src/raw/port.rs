//! Homa ports of a host.
//!
//! Raw sockets have no ports, so this module ensures that no two endpoints of a host use the same
//! port.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;

use crate::address::Family;

use crate::raw::abstract_name::AbstractName;

/// The first port for drivers that accept any. HM `homa.h` `HOMA_MIN_DEFAULT_PORT`: the kernel
/// module's client ports start there.
const FIRST_FREE: u16 = 0x8000;

/// A port reserved for one driver of this host, for one of the two protocols.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) number: u16,
    _name: AbstractName,
}

impl Port {
    /// Reserves the port `number`; `None` if it is in use.
    pub(crate) fn reserve(number: u16, family: Family) -> io::Result<Option<Self>> {
        let name = AbstractName::bind(&name(number, family))?;
        Ok(name.map(|name| Self { number, _name: name }))
    }

    /// Returns whether an endpoint of this host has the port `number`; `true` if that is unknown.
    pub(crate) fn is_reserved(number: u16, family: Family) -> bool {
        AbstractName::is_reserved(&name(number, family)).unwrap_or(true)
    }

    /// Reserves any free port; `None` if there is none.
    pub(crate) fn reserve_any(family: Family) -> io::Result<Option<Self>> {
        // Starts at a random port, so that callers of a closed port do not reach another process
        // immediately.
        let begin = RandomState::new().build_hasher().finish().to_le_bytes();
        let begin = u16::from_le_bytes([begin[0], begin[1]]);
        for step in 0..FIRST_FREE {
            let number = begin.wrapping_add(step) | FIRST_FREE;
            if let Some(port) = Self::reserve(number, family)? {
                return Ok(Some(port));
            }
        }
        Ok(None)
    }
}

/// Returns the name of a port.
fn name(number: u16, family: Family) -> String {
    format!("{}/port/{number}", protocol(family))
}

/// Returns the prefix of names of one of the two protocols.
pub(crate) const fn protocol(family: Family) -> &'static str {
    match family {
        Family::V4 => "ipv4",
        Family::V6 => "ipv6",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_port_is_in_the_clients_range_and_exclusive() {
        let first = Port::reserve_any(Family::V4).unwrap().unwrap();
        assert!(first.number >= FIRST_FREE);
        assert!(Port::reserve(first.number, Family::V4).unwrap().is_none());
        let number = first.number;
        assert!(Port::is_reserved(number, Family::V4));
        drop(first);
        assert!(!Port::is_reserved(number, Family::V4));
        assert_eq!(Port::reserve(number, Family::V4).unwrap().unwrap().number, number);
    }
}
