//! Contention: detects nodes whose exclusive leases change hands continually, and lends these
//! leases (FSSERVE-14, FS-17).
//!
//! The table is bounded: contention beyond it is not detected, which only costs time.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::wire::Ino;

/// Number of changes of the holder from which a node is contended. Chosen by us: two mounts that
/// use a file in turn, as in a `make` after an editor, make one or two changes.
const CONTENDED: u32 = 4;

/// A node is no longer contended when its holder has not changed for this time; changes farther
/// apart do not count.
const QUIET: Duration = Duration::from_secs(1);

/// Time after which the server recalls a lent lease. Chosen by us: more than a round trip between
/// sites, and less than a person notices.
const LENT_FOR: Duration = Duration::from_millis(50);

/// Nodes that are observed.
const MAX_OBSERVED: usize = 1_024;

/// Recent holders of a node's exclusive lease.
#[derive(Debug)]
struct Observed {
    /// The session that had the exclusive lease last.
    holder: u64,
    /// How often that was another one than before.
    changes: u32,
    changed_at: Duration,
}

/// All nodes whose exclusive leases were recalled in the last time.
#[derive(Debug, Default)]
pub(super) struct Contention {
    nodes: BTreeMap<Ino, Observed>,
    /// Nodes whose leases are lent, and until when the server waits for them without a recall.
    lent: BTreeMap<Ino, Duration>,
}

impl Contention {
    /// Records the session with the exclusive lease of a node that another session needs.
    pub(super) fn note_holder(&mut self, ino: Ino, holder: u64, now: Duration) {
        if !self.nodes.contains_key(&ino) {
            if self.nodes.len() >= MAX_OBSERVED {
                self.nodes.retain(|_, node| now.saturating_sub(node.changed_at) <= QUIET);
            }
            if self.nodes.len() < MAX_OBSERVED {
                let node = Observed { holder, changes: 0, changed_at: now };
                self.nodes.insert(ino, node);
            }
            return;
        }
        let Some(node) = self.nodes.get_mut(&ino) else { return };
        if now.saturating_sub(node.changed_at) > QUIET {
            node.changes = 0;
        }
        if node.holder != holder {
            node.changes = node.changes.saturating_add(1);
            (node.holder, node.changed_at) = (holder, now);
        }
    }

    /// Whether exclusive leases of a node are only lent.
    pub(super) fn is_contended(&self, ino: Ino, now: Duration) -> bool {
        self.nodes.get(&ino).is_some_and(|node| {
            node.changes >= CONTENDED && now.saturating_sub(node.changed_at) <= QUIET
        })
    }

    /// Lends the exclusive lease of a node that is contended; returns whether it is.
    pub(super) fn lend(&mut self, ino: Ino, session: u64, now: Duration) -> bool {
        if !self.is_contended(ino, now) {
            return false;
        }
        self.note_holder(ino, session, now);
        // A repeated request does not extend the time.
        self.lent.entry(ino).or_insert(now + LENT_FOR);
        true
    }

    /// Records that a lease was returned.
    pub(super) fn returned(&mut self, ino: Ino) {
        self.lent.remove(&ino);
    }

    /// Returns whether a lease is expected back without a recall.
    pub(super) fn is_lent(&self, ino: Ino, now: Duration) -> bool {
        self.lent.get(&ino).is_some_and(|until| now < *until)
    }

    /// Removes and returns the nodes whose leases were not returned in time.
    pub(super) fn take_late(&mut self, now: Duration) -> Vec<Ino> {
        let late = self.lent.iter().filter(|(_, until)| now >= **until);
        let late: Vec<Ino> = late.map(|(ino, _)| *ino).collect();
        for ino in &late {
            self.lent.remove(ino);
        }
        late
    }

    /// Returns when [`take_late`](Self::take_late) is needed.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.lent.values().min().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Ino = Ino(5);

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn contended() -> Contention {
        let mut contention = Contention::default();
        for turn in 0..=u64::from(CONTENDED) {
            assert!(!contention.is_contended(NODE, at(turn)));
            contention.note_holder(NODE, turn % 2, at(turn));
        }
        contention
    }

    /// FSSERVE-14.
    #[test]
    fn a_node_whose_holder_changes_often_is_lent_until_it_is_quiet() {
        let mut contention = contended();
        let last = at(u64::from(CONTENDED));
        assert!(contention.lend(NODE, 1, last));
        assert!(contention.is_lent(NODE, last) && !contention.is_lent(NODE, last + LENT_FOR));
        assert_eq!(contention.deadline(), Some(last + LENT_FOR));
        contention.returned(NODE);
        assert_eq!(contention.deadline(), None);
        // The same holder again does not prolong it.
        assert!(contention.lend(NODE, 1, last + QUIET));
        assert!(!contention.lend(NODE, 1, last + QUIET + at(1)));
        assert_eq!(contention.take_late(last + QUIET + LENT_FOR), [NODE]);
    }

    #[test]
    fn changes_far_apart_do_not_count() {
        let mut contention = Contention::default();
        for turn in 0..20 {
            contention.note_holder(NODE, turn % 2, at(turn * 1_001));
        }
        assert!(!contention.is_contended(NODE, at(20 * 1_001)));
    }

    /// FSSERVE-12.
    #[test]
    fn the_table_is_bounded() {
        let mut contention = Contention::default();
        for ino in 0..2 * MAX_OBSERVED as u64 {
            contention.note_holder(Ino(ino), 1, at(0));
        }
        assert_eq!(contention.nodes.len(), MAX_OBSERVED);
        contention.note_holder(NODE, 1, at(0));
        contention.note_holder(Ino(1 << 40), 1, at(1_001));
        assert_eq!(contention.nodes.len(), 1);
    }
}
