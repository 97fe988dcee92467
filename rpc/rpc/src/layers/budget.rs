//! A budget for additional calls, so that retries cannot multiply an overload.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Thousandths of an additional call.
const SCALE: i64 = 1_000;

/// A budget of additional calls. Each call of the application adds a fraction of an additional
/// call; each additional call takes one. Clones share the budget.
#[derive(Clone, Debug)]
pub struct Budget {
    tokens: Arc<AtomicI64>,
    earned: i64,
    limit: i64,
}

impl Budget {
    /// Creates a budget of `percent` additional calls per 100 calls. Up to `reserve` of them are
    /// saved, and the reserve is full initially. A client with few calls needs the reserve to retry
    /// at all.
    #[must_use]
    pub fn new(percent: u32, reserve: u32) -> Self {
        let limit = i64::from(reserve.max(1)) * SCALE;
        let earned = i64::from(percent) * SCALE / 100;
        Self { tokens: Arc::new(AtomicI64::new(limit)), earned, limit }
    }

    /// Counts a call of the application.
    pub fn deposit(&self) {
        let added = |tokens: i64| Some((tokens + self.earned).min(self.limit));
        let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added);
    }

    /// Takes an additional call; returns whether there was one.
    #[must_use]
    pub fn withdraw(&self) -> bool {
        let taken = |tokens: i64| (tokens >= SCALE).then(|| tokens - SCALE);
        self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_spent_and_then_a_percentage_of_calls() {
        let budget = Budget::new(10, 5);
        assert_eq!((0..100).filter(|_| budget.withdraw()).count(), 5);
        let mut additional = 0;
        for _ in 0..1_000 {
            budget.deposit();
            additional += u32::from(budget.withdraw());
        }
        assert_eq!(additional, 100);
        (0..10_000).for_each(|_| budget.deposit());
        assert_eq!((0..100).filter(|_| budget.withdraw()).count(), 5, "no more than the reserve");
    }
}
