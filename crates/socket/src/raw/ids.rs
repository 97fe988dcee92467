//! Which RPC ids does an endpoint use, so that no other one of its host ever uses them?
//!
//! A server of the kernel profile knows a call by the client's *host* and its id (row L-2), so two processes of one host must
//! never use the same id, and no process may use an id again that another one, or it itself, used before: the
//! server would take the call for a duplicate. The kernel module has a counter for the host. Here
//!
//! ```text
//!   63  62 ─── 52  51 ──────────────────── 1   0
//!    1    range         offset + time          0
//! ```
//!
//! - a *range* belongs to one endpoint at a time: it holds the range's name ([`crate::raw::name`]) as long as it is open;
//! - an endpoint begins at the time since the host was started, in units of [`UNIT`], and counts on from there. A call
//!   costs more time than a unit, so who comes later into the same range begins above everything that was used there. That
//!   clock is never set;
//! - the *offset* is drawn anew whenever the host starts (and is another one for each network namespace): after a restart
//!   ids begin somewhere else. Ids of an earlier life of the host are then met by chance only: 10^9 calls before the
//!   restart and 10^9 after it have one in common in two cases of a million;
//! - bit 63 is set: the kernel module on the same host counts from 2 up and does not get there.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::time::{ClockId, clock_gettime};

use crate::raw::name::Name;

/// Endpoints that may be open on a host at the same time.
pub(crate) const RANGES: u64 = 1 << RANGE_BITS;
const RANGE_BITS: u32 = 11;

/// Bits of the id that count, its lowest bit not included.
const COUNT_BITS: u32 = 51;

/// Bits of offset and of time; the sum of both has one more.
const PART_BITS: u32 = COUNT_BITS - 1;

/// Nanoseconds of one step of the clock. Ours: no endpoint makes 7.8 million calls in a second, and 2^50 steps are four and
/// a half years.
const UNIT: u64 = 128;

const _: () = assert!(1 + RANGE_BITS + COUNT_BITS + 1 == 64);

/// A range of ids that no other endpoint of this host has.
#[derive(Debug)]
pub(crate) struct Ids {
    /// The first one; even, as a client's are.
    pub(crate) first: u64,
    _name: Name,
}

impl Ids {
    /// Takes the lowest range that is free; `None` if there is none.
    pub(crate) fn take() -> io::Result<Option<Self>> {
        for range in 0..RANGES {
            if let Some(name) = Name::take(&format!("ids/{range}"))? {
                // Only now: whoever had the range before has stopped counting.
                let first = id(range, offset(), uptime());
                return Ok(Some(Self { first, _name: name }));
            }
        }
        Ok(None)
    }
}

/// The first id of an endpoint that takes `range` when the host has been up for `uptime` nanoseconds.
const fn id(range: u64, offset: u64, uptime: u64) -> u64 {
    let part = (1 << PART_BITS) - 1;
    let count = (offset & part) + ((uptime / UNIT) & part);
    1 << 63 | range << (COUNT_BITS + 1) | count << 1
}

/// Nanoseconds since the host was started, those included in which it slept.
fn uptime() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// The same for all processes of a network namespace until the host is started anew.
fn offset() -> u64 {
    // Where there is no /proc, all read nothing.
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::metadata("/proc/thread-self/ns/net").map_or(0, |namespace| namespace.ino());
    // A random number in hexadecimal digits, 48 bits of which stand behind the last hyphen.
    let boot = boot.trim().rsplit('-').next().and_then(|it| u64::from_str_radix(it, 16).ok());
    // Numbers of namespaces are neighbours: the golden ratio spreads them.
    (boot.unwrap_or(0) << 2) ^ (namespace.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PART_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    const FAR: u64 = (1 << PART_BITS) - 1;

    #[test]
    fn ids_are_even_and_none_of_the_kernels() {
        for (range, offset, uptime) in [(0, 0, 0), (RANGES - 1, u64::MAX, u64::MAX), (5, 7, 900)] {
            let id = id(range, offset, uptime);
            assert_eq!(id & 1, 0);
            assert!(id >= 1 << 63);
        }
    }

    #[test]
    fn ranges_do_not_touch() {
        for range in 0..RANGES - 1 {
            // As high as counting gets in years, below the lowest of the next range.
            assert!(id(range, FAR, FAR * UNIT) < id(range + 1, 0, 0));
        }
    }

    #[test]
    fn who_comes_later_begins_above_what_was_used() {
        let (calls, per_call) = (1_000_000, UNIT + 1);
        let began = id(3, 99, 5_000);
        let last = began + 2 * calls;
        assert!(id(3, 99, 5_000 + calls * per_call) >= last);
    }

    #[test]
    fn nobody_gets_ids_that_somebody_has() {
        let taken: Vec<_> = (0..50).map(|_| Ids::take().unwrap().unwrap()).collect();
        let ranges: BTreeSet<_> = taken.iter().map(|ids| ids.first >> (COUNT_BITS + 1)).collect();
        assert_eq!(ranges.len(), 50);
    }

    #[test]
    fn a_range_that_is_taken_again_goes_on_above() {
        // Other tests may take the range meanwhile: whoever gets it, ids of a range only rise.
        let mut highest = BTreeMap::new();
        for _ in 0..100 {
            let ids = Ids::take().unwrap().unwrap();
            let before = highest.insert(ids.first >> 52, ids.first);
            assert!(before.is_none_or(|before| before < ids.first));
        }
    }
}
