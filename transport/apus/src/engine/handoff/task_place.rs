//! Where a task of an async runtime runs.

use super::token::ThreadToken;
use tokio::runtime::{Handle, Id};

/// A thread of a runtime that runs a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskPlace {
    thread: ThreadToken,
    runtime: Id,
}

impl TaskPlace {
    /// Returns where the current task runs. `None` outside of a task: the main future of a runtime
    /// may be its last one, and other code does not drive a runtime at all.
    pub(crate) fn current() -> Option<Self> {
        tokio::task::try_id()?;
        let runtime = Handle::try_current().ok()?.id();
        Some(Self { thread: ThreadToken::current(), runtime })
    }

    /// Returns whether the current task runs there, too.
    pub(crate) fn is_current(&self) -> bool {
        // Cheapest and most selective check first.
        self.thread == ThreadToken::current() && Self::current().as_ref() == Some(self)
    }
}

#[cfg(test)]
#[cfg(not(apus_loom))]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_one_thread_and_one_runtime_are_at_one_place() {
        let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        let task = |runtime: &tokio::runtime::Runtime| {
            runtime.block_on(async { tokio::spawn(async { TaskPlace::current() }).await.unwrap() })
        };
        let (one, other) = (runtime(), runtime());
        let place = task(&one).unwrap();
        assert_eq!(task(&one), Some(place));
        assert_ne!(task(&other), Some(place), "another runtime on this thread");
        assert!(!place.is_current(), "outside of a runtime");
        assert_eq!(one.block_on(async { TaskPlace::current() }), None, "the main future");
        let there = std::thread::scope(|scope| scope.spawn(|| task(&one)).join().unwrap());
        assert!(there.is_some() && there != Some(place), "another thread");
    }
}
