//! Which Homa port does a driver have?
//!
//! Raw sockets know no ports, so nobody but us sees to it that two endpoints of a host do not take the same one.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;

use crate::address::Family;

use crate::raw::name::Name;

/// The first port that is given to whoever wants any. Row L-4: the kernel module takes its clients' from there on.
const FIRST_FREE: u16 = 0x8000;

/// A port that no other driver of this host has, for one of the two protocols.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) number: u16,
    _name: Name,
}

impl Port {
    /// Takes the port `number`; `None` if it is in use.
    pub(crate) fn take(number: u16, family: Family) -> io::Result<Option<Self>> {
        let version = match family {
            Family::V4 => 4,
            Family::V6 => 6,
        };
        let name = Name::take(&format!("ipv{version}/port/{number}"))?;
        Ok(name.map(|name| Self { number, _name: name }))
    }

    /// Takes any free port; `None` if there is none.
    pub(crate) fn any(family: Family) -> io::Result<Option<Self>> {
        // Anywhere: who was called at a port that is gone shall not find a stranger there at once.
        let begin = RandomState::new().build_hasher().finish().to_le_bytes();
        let begin = u16::from_le_bytes([begin[0], begin[1]]);
        for step in 0..FIRST_FREE {
            let number = begin.wrapping_add(step) | FIRST_FREE;
            if let Some(port) = Self::take(number, family)? {
                return Ok(Some(port));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_port_is_a_clients_and_nobody_elses() {
        let first = Port::any(Family::V4).unwrap().unwrap();
        assert!(first.number >= FIRST_FREE);
        assert!(Port::take(first.number, Family::V4).unwrap().is_none());
        let number = first.number;
        drop(first);
        assert_eq!(Port::take(number, Family::V4).unwrap().unwrap().number, number);
    }
}
