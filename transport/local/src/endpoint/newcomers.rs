//! Newcomers: clients that have connected and not sent their hello.
//!
//! # Invariants
//!
//! - **NEWCOMER-1** There are at most [`MAX_NEWCOMERS`]. A further one displaces the oldest of the
//!   user that has most, so that no user keeps the clients of another one out.

/// Maximum number of newcomers. Chosen by us: honest clients send their hello at once.
const MAX_NEWCOMERS: usize = 64;

/// The newcomers of an endpoint, the oldest first.
#[derive(Debug)]
pub(super) struct Newcomers<T> {
    waiting: Vec<Newcomer<T>>,
}

#[derive(Debug)]
struct Newcomer<T> {
    key: u64,
    uid: u32,
    handshake: T,
}

impl<T> Newcomers<T> {
    pub(super) const fn new() -> Self {
        Self { waiting: Vec::new() }
    }

    /// Adds a client of user `uid`. Returns the client that it displaces, if there are too many.
    pub(super) fn push(&mut self, key: u64, uid: u32, handshake: T) -> Option<T> {
        self.waiting.push(Newcomer { key, uid, handshake });
        if self.waiting.len() <= MAX_NEWCOMERS {
            return None;
        }
        let of = |uid: u32| self.waiting.iter().filter(|other| other.uid == uid).count();
        // The last maximum is the oldest one from behind.
        let oldest = (0..self.waiting.len()).rev().max_by_key(|at| of(self.waiting[*at].uid))?;
        Some(self.waiting.remove(oldest).handshake)
    }

    /// Removes and returns the client with this key.
    pub(super) fn take(&mut self, key: u64) -> Option<T> {
        let at = self.waiting.iter().position(|newcomer| newcomer.key == key)?;
        Some(self.waiting.remove(at).handshake)
    }

    pub(super) const fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_with_many_newcomers_displaces_its_own() {
        let mut newcomers = Newcomers::new();
        assert_eq!(newcomers.push(0, 1, "honest"), None);
        let displaced: Vec<_> =
            (1..1000).filter_map(|key| newcomers.push(key, 2, "flood")).collect();
        assert_eq!((newcomers.len(), displaced.len()), (64, 936), "NEWCOMER-1");
        assert!(displaced.iter().all(|kind| *kind == "flood"), "NEWCOMER-1");
        assert_eq!(newcomers.take(0), Some("honest"));
        assert_eq!(newcomers.take(0), None);
    }

    #[test]
    fn the_oldest_goes_first() {
        let mut newcomers = Newcomers::new();
        for key in 0..64 {
            assert_eq!(newcomers.push(key, 1, key), None);
        }
        assert_eq!(newcomers.push(64, 1, 64), Some(0));
        assert_eq!(newcomers.push(65, 1, 65), Some(1));
    }
}
