//! Counters that the application publishes together with its endpoints' counters.

use apus_process::PerProcess;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::snapshot::ApplicationFamily;

type Read = dyn Fn() -> Vec<ApplicationFamily> + Send + Sync;

static PUBLISHED: PerProcess<Mutex<Vec<Arc<Read>>>> = PerProcess::new(Mutex::default);

fn published() -> MutexGuard<'static, Vec<Arc<Read>>> {
    PUBLISHED.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counters that are part of this process's snapshots until this is dropped. They are not part of
/// the snapshots of a child of a fork.
#[must_use = "dropped, the counters are gone from snapshots"]
pub struct PublishedMetrics(Arc<Read>);

/// Adds the result of `read` to the [snapshots](crate::snapshot::Snapshot::application) of this
/// process: `apus metrics` and Prometheus show it next to the counters of endpoints. Values of the
/// same name add up.
///
/// `read` runs in the thread that responds to requests, one at a time, and must not wait for long:
/// its clients wait for 5 s at most.
pub fn publish_metrics(
    read: impl Fn() -> Vec<ApplicationFamily> + Send + Sync + 'static,
) -> PublishedMetrics {
    let read: Arc<Read> = Arc::new(read);
    published().push(read.clone());
    PublishedMetrics(read)
}

impl Drop for PublishedMetrics {
    fn drop(&mut self) {
        published().retain(|read| !Arc::ptr_eq(read, &self.0));
    }
}

impl std::fmt::Debug for PublishedMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PublishedMetrics").finish_non_exhaustive()
    }
}

/// Reads all counters of the application.
pub(crate) fn read() -> Vec<ApplicationFamily> {
    // Called without the lock: the application may publish more.
    let all: Vec<_> = published().clone();
    ApplicationFamily::merged(all.iter().flat_map(|read| read()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{FamilyKind, Snapshot};

    #[test]
    fn published_counters_add_up_until_they_are_dropped() {
        let family = |value| {
            let values = [("a", value), ("b", 1)];
            vec![ApplicationFamily::labelled("test", "kind", FamilyKind::Counter, "x", values)]
        };
        let (first, second) =
            (publish_metrics(move || family(5)), publish_metrics(move || family(2)));
        let now = Snapshot { application: read(), ..Default::default() };
        drop(second);
        let before = Snapshot { application: read(), ..Default::default() };
        let change = &now.since(&before).application[0];
        let named: Vec<_> = change.named().collect();
        assert_eq!(named, [("test.a".to_owned(), 2), ("test.b".to_owned(), 1)]);
        drop(first);
        assert_eq!(read(), []);
    }
}
