//! Sums of bytes in flight by host.
//!
//! A client has as many ports, and messages, as it likes, but only one host. A host is *doubtful* if
//! it has held granted bytes without sending them. Its bytes count only up to a limit when room for
//! another host is computed: they keep no other host waiting (GRANT-21).
//!
//! # Invariants
//!
//! - **BYHOST-1** `all` is the sum of `sums`; a host without bytes is not stored.
//! - **BYHOST-2** `counted` is the sum of `sums`, each at most `most` if its host is doubtful.

use crate::allowed::Allowed;
use crate::peer::HostId;
use slotmap::SecondaryMap;

/// The bytes of each host.
#[derive(Debug)]
pub(super) struct ByHost {
    sums: SecondaryMap<HostId, u64>,
    doubtful: SecondaryMap<HostId, ()>,
    all: u64,
    counted: u64,
    /// Most bytes of a doubtful host that count for other hosts.
    most: u64,
}

/// A doubtful host's bytes count for others up to one part in this number of the limit of all.
/// Chosen by us: half, as all limits of a host.
const SHARE: u64 = 2;

impl ByHost {
    /// All hosts together may have `limit` bytes.
    pub(super) fn new(limit: u64) -> Self {
        let (sums, doubtful) = (SecondaryMap::new(), SecondaryMap::new());
        Self { sums, doubtful, all: 0, counted: 0, most: limit / SHARE }
    }

    /// Changes the number of bytes that all hosts together may have.
    pub(super) fn set_limit(&mut self, limit: u64) {
        self.most = limit / SHARE;
        self.count();
    }

    /// Makes `host` doubtful, or trusts it again.
    pub(super) fn doubt(&mut self, host: HostId, is_doubtful: bool) {
        let before = self.counts(host, self.of(host));
        if is_doubtful {
            self.doubtful.insert(host, ());
        } else {
            self.doubtful.remove(host);
        }
        self.counted = self.counted - before + self.counts(host, self.of(host));
    }

    fn count(&mut self) {
        self.counted = self.sums.iter().map(|(host, sum)| self.counts(host, *sum)).sum();
    }

    /// A message of `host` that counted with `old` bytes counts with `new` from now on.
    pub(super) fn change(&mut self, host: HostId, old: Allowed, new: Allowed) {
        if old == new {
            return;
        }
        let before = self.of(host);
        debug_assert!(before >= old.term(), "BYHOST-1");
        let after = before - old.term() + new.term();
        if after == 0 {
            self.sums.remove(host);
        } else {
            self.sums.insert(host, after);
        }
        self.all = self.all - before + after;
        self.counted = self.counted - self.counts(host, before) + self.counts(host, after);
    }

    /// Bytes of all hosts.
    pub(super) const fn all(&self) -> u64 {
        self.all
    }

    /// Bytes of all hosts, those of each up to the limit.
    pub(super) const fn counted(&self) -> u64 {
        self.counted
    }

    /// Bytes of `host`.
    pub(super) fn of(&self, host: HostId) -> u64 {
        self.sums.get(host).copied().unwrap_or(0)
    }

    /// Bytes that count for `host`: its own, and those of other hosts, of doubtful ones up to the
    /// limit.
    pub(super) fn for_host(&self, host: HostId) -> u64 {
        let own = self.of(host);
        self.counted - self.counts(host, own) + own
    }

    /// The part of `sum` bytes of `host` that counts for others.
    pub(super) fn counts(&self, host: HostId, sum: u64) -> u64 {
        if self.doubtful.contains_key(host) { sum.min(self.most) } else { sum }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use slotmap::SlotMap;

    /// Names of hosts.
    pub(in super::super) fn hosts<const N: usize>() -> [HostId; N] {
        let mut slots = SlotMap::with_key();
        [(); N].map(|()| slots.insert(()))
    }

    pub(in super::super) fn bytes(bytes: u32) -> Allowed {
        Allowed::at_most(bytes, bytes)
    }

    /// GRANT-21.
    #[test]
    fn a_doubtful_host_counts_for_others_with_half_of_the_limit_at_most() {
        let [one, other] = hosts();
        let mut sums = ByHost::new(100);
        sums.change(one, Allowed::NONE, bytes(90));
        assert_eq!((sums.all(), sums.for_host(one), sums.for_host(other)), (90, 90, 90));
        sums.doubt(one, true);
        assert_eq!((sums.all(), sums.for_host(one), sums.for_host(other)), (90, 90, 50));
        sums.change(other, Allowed::NONE, bytes(20));
        assert_eq!((sums.for_host(one), sums.for_host(other)), (110, 70));
        sums.set_limit(300);
        assert_eq!((sums.for_host(one), sums.for_host(other)), (110, 110));
        sums.set_limit(100);
        sums.doubt(one, false);
        assert_eq!((sums.counted(), sums.for_host(other)), (110, 110));
        sums.change(one, bytes(90), bytes(10));
        sums.change(one, bytes(10), Allowed::NONE);
        assert_eq!((sums.all(), sums.for_host(one), sums.sums.len()), (20, 20, 1));
    }
}
