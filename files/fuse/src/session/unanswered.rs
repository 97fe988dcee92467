//! Requests that were read and are not answered.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::codec::RequestHeader;

/// Requests that were read and are not answered, by their numbers, with their operations. At most
/// `limit` (FUSE_SESSION-4).
#[derive(Debug)]
pub(crate) struct Unanswered {
    requests: Mutex<HashMap<u64, u32>>,
    limit: usize,
}

impl Unanswered {
    pub(crate) fn new(limit: usize) -> Self {
        Self { requests: Mutex::default(), limit }
    }

    /// Adds a request; false if there are too many. A resent request replaces the earlier one.
    pub(crate) fn add(&self, header: &RequestHeader) -> bool {
        let mut requests = self.lock();
        if header.is_resent() {
            requests.remove(&header.first_unique());
        }
        if requests.len() >= self.limit {
            return false;
        }
        requests.insert(header.unique, header.opcode);
        true
    }

    /// Removes a request and returns its operation, unless it was answered (FUSE_SESSION-1).
    pub(crate) fn take(&self, unique: u64) -> Option<u32> {
        self.lock().remove(&unique)
    }

    pub(crate) fn contains(&self, unique: u64) -> bool {
        self.lock().contains_key(&unique)
    }

    /// Returns the numbers, in ascending order.
    pub(crate) fn list(&self) -> Vec<u64> {
        let mut list: Vec<u64> = self.lock().keys().copied().collect();
        list.sort_unstable();
        list
    }

    /// Every state of the map between two calls is valid, so the state after a panic is valid, too.
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, u32>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(unique: u64) -> RequestHeader {
        RequestHeader { opcode: 3, unique, node: 1, uid: 0, gid: 0, pid: 0 }
    }

    #[test]
    fn requests_end_once_and_are_bounded() {
        let unanswered = Unanswered::new(2);
        assert!(unanswered.add(&header(2)) && unanswered.add(&header(4)));
        assert!(!unanswered.add(&header(6)), "FUSE_SESSION-4");
        assert_eq!(unanswered.take(2), Some(3));
        assert_eq!(unanswered.take(2), None, "FUSE_SESSION-1");
        assert_eq!(unanswered.list(), [4]);
    }

    #[test]
    fn a_request_that_is_sent_once_more_is_one_request() {
        let unanswered = Unanswered::new(1);
        assert!(unanswered.add(&header(2)));
        let again = header(2 | 1 << 63);
        assert!(unanswered.add(&again));
        assert_eq!(unanswered.take(2), None);
        assert_eq!(unanswered.take(again.unique), Some(3));
    }
}
