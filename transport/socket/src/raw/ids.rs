//! RPC ids of endpoints, unique on a host.
//!
//! A server of the kernel profile identifies a call by the client's *host* and its id
//! (HM `homa_rpc.c` `homa_rpc_find_server`). Two processes of one host must therefore never use the
//! same id, and no process may reuse an id of an earlier process, or its own: the server would take
//! the call for a duplicate. The kernel module has one counter per host. Here an id consists of
//!
//! ```text
//!   63  62 ─── 52  51 ──────────────────── 1   0
//!    1    range         offset + time          0
//! ```
//!
//! - A *range* belongs to one endpoint at a time, which holds the range's name
//!   ([`crate::raw::abstract_name`]) while it is open.
//! - An endpoint starts at the time since the host was started, in units of [`UNIT`], and counts up
//!   from there. A call takes longer than a unit, so a later endpoint with the same range starts
//!   above all used ids of the range. That clock is never set.
//! - The *offset* is random for each start of the host and each network namespace: after a restart
//!   ids start elsewhere. An id from before the restart is then reused only by chance: with 10^9
//!   calls before it and 10^9 after it, the probability is two in a million.
//! - Bit 63 is set: the kernel module on the same host counts up from 2 and never reaches it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::time::{ClockId, clock_gettime};

use crate::raw::abstract_name::AbstractName;

/// Maximum number of endpoints open on a host at the same time.
pub(crate) const RANGES: u64 = 1 << RANGE_BITS;
const RANGE_BITS: u32 = 11;

/// Bits of the id that form the counter, without the lowest bit.
const COUNT_BITS: u32 = 51;

/// Bits of the offset and of the time; their sum has one more.
const PART_BITS: u32 = COUNT_BITS - 1;

/// Nanoseconds of one step of the clock. Chosen by us: no endpoint makes 7.8 million calls in a
/// second, and 2^50 steps are four and a half years.
const UNIT: u64 = 128;

const _: () = assert!(1 + RANGE_BITS + COUNT_BITS + 1 == 64);

/// A range of ids reserved for one endpoint of this host.
#[derive(Debug)]
pub(crate) struct IdRange {
    /// The first id; even, as all ids of clients.
    pub(crate) first: u64,
    _name: AbstractName,
}

impl IdRange {
    /// Reserves the lowest free range; `None` if there is none.
    pub(crate) fn reserve() -> io::Result<Option<Self>> {
        for range in 0..RANGES {
            if let Some(name) = AbstractName::bind(&format!("ids/{range}"))? {
                // The clock is read only now, when the previous owner of the range has stopped
                // counting.
                let first = id(range, offset(), uptime());
                return Ok(Some(Self { first, _name: name }));
            }
        }
        Ok(None)
    }
}

/// Returns the first id of an endpoint that reserves `range` when the host has been up for `uptime`
/// nanoseconds.
const fn id(range: u64, offset: u64, uptime: u64) -> u64 {
    let part = (1 << PART_BITS) - 1;
    let count = (offset & part) + ((uptime / UNIT) & part);
    1 << 63 | range << (COUNT_BITS + 1) | count << 1
}

/// Returns the nanoseconds since the host was started, including suspended time.
fn uptime() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Returns a number that is equal for all processes of a network namespace until the host is
/// restarted.
fn offset() -> u64 {
    // Without /proc, all processes read an empty string.
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::metadata("/proc/thread-self/ns/net").map_or(0, |namespace| namespace.ino());
    // A random number in hexadecimal digits; the last hyphen is followed by 48 bits.
    let boot = boot.trim().rsplit('-').next().and_then(|it| u64::from_str_radix(it, 16).ok());
    // Adjacent namespaces have adjacent numbers: the golden ratio spreads them.
    (boot.unwrap_or(0) << 2) ^ (namespace.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PART_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    const FAR: u64 = (1 << PART_BITS) - 1;

    #[test]
    fn ids_are_even_and_differ_from_the_kernel_modules() {
        for (range, offset, uptime) in [(0, 0, 0), (RANGES - 1, u64::MAX, u64::MAX), (5, 7, 900)] {
            let id = id(range, offset, uptime);
            assert_eq!(id & 1, 0);
            assert!(id >= 1 << 63);
        }
    }

    #[test]
    fn ranges_do_not_overlap() {
        for range in 0..RANGES - 1 {
            // The highest count after years is below the lowest of the next range.
            assert!(id(range, FAR, FAR * UNIT) < id(range + 1, 0, 0));
        }
    }

    #[test]
    fn a_later_endpoint_begins_above_all_used_ids() {
        let (calls, per_call) = (1_000_000, UNIT + 1);
        let began = id(3, 99, 5_000);
        let last = began + 2 * calls;
        assert!(id(3, 99, 5_000 + calls * per_call) >= last);
    }

    #[test]
    fn endpoints_have_different_ranges() {
        let taken: Vec<_> = (0..50).map(|_| IdRange::reserve().unwrap().unwrap()).collect();
        let ranges: BTreeSet<_> = taken.iter().map(|ids| ids.first >> (COUNT_BITS + 1)).collect();
        assert_eq!(ranges.len(), 50);
    }

    #[test]
    fn a_range_that_is_reserved_again_begins_above() {
        // Other tests may reserve the range at the same time; ids of a range still only rise.
        let mut highest = BTreeMap::new();
        for _ in 0..100 {
            let ids = IdRange::reserve().unwrap().unwrap();
            let before = highest.insert(ids.first >> 52, ids.first);
            assert!(before.is_none_or(|before| before < ids.first));
        }
    }
}
