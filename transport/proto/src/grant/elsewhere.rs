//! The messages that other transports of the host grant (GRANT-17).

use super::candidates::Key;
use smallvec::SmallVec;

/// The bytes that those messages lack, ascending.
#[derive(Debug, Default)]
pub(super) struct Elsewhere(SmallVec<[u32; 8]>);

impl Elsewhere {
    /// Returns whether anything has changed.
    pub(super) fn set(&mut self, active: &[u32]) -> bool {
        let is_news = self.0[..] != *active;
        if is_news {
            self.0.clear();
            self.0.extend_from_slice(active);
        }
        is_news
    }

    /// Returns how many of the `active` messages here are among the first `limit` of the host in
    /// SRPT order, one in any case, and the number of active messages of the host.
    pub(super) fn narrow(&self, active: &[Key], limit: usize) -> (usize, usize) {
        let fits =
            active.iter().enumerate().take_while(|(rank, key)| self.rank(*rank, key) < limit);
        let here = fits.count().max(1).min(active.len());
        (here, (here + self.0.len()).clamp(here, limit.max(1)))
    }

    /// Returns the position on the host, in SRPT order, of the message with this position here.
    /// Ties go to the message here.
    pub(super) fn rank(&self, here: usize, key: &Key) -> usize {
        here + self.0.partition_point(|missing| *missing < key.missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::RpcKey;

    fn keys(missing: &[u32]) -> SmallVec<[Key; 8]> {
        let key = |missing: &u32| Key { missing: *missing, birth: 0, rpc: RpcKey::default() };
        missing.iter().map(key).collect()
    }

    /// GRANT-17.
    #[test]
    fn the_shortest_messages_of_the_host_are_active_and_one_here_in_any_case() {
        let narrowed = |elsewhere: &[u32], here: &[u32], limit| {
            let mut others = Elsewhere::default();
            others.set(elsewhere);
            others.narrow(&keys(here), limit)
        };
        assert_eq!(narrowed(&[], &[10, 20, 30], 8), (3, 3));
        assert_eq!(narrowed(&[5, 15], &[10, 20, 30], 4), (2, 4));
        assert_eq!(narrowed(&[5, 15, 25], &[10, 20, 30], 8), (3, 6));
        assert_eq!(narrowed(&[1, 2, 3, 4], &[10, 20], 4), (1, 4));
        assert_eq!(narrowed(&[1, 2], &[], 4), (0, 2));
        assert_eq!(narrowed(&[], &[], 4), (0, 0));
    }

    #[test]
    fn of_equal_messages_the_one_here_is_first() {
        let mut others = Elsewhere::default();
        assert!(others.set(&[10, 20]) && !others.set(&[10, 20]));
        let keys = keys(&[10, 21]);
        assert_eq!([others.rank(0, &keys[0]), others.rank(1, &keys[1])], [0, 3]);
    }
}
