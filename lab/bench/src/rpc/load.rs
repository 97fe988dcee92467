//! Load: calls one at a time, and many outstanding.
//!
//! A load continues until a call has been measured, even if the machine was busy with other work: a
//! period without a call has no figure.

use crate::error::Error;
use apus_report::stats::Latencies;
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;

/// Makes calls one after another for `period`. Returns their latencies in nanoseconds, excluding
/// the warm-up.
pub(crate) async fn one_at_a_time<F>(call: &F, period: Duration) -> Result<Latencies, Error>
where
    F: AsyncFn() -> Result<(), Error>,
{
    let began = Instant::now();
    let (warm, end) = (began + period / 10, began + period / 10 + period);
    let mut latencies = Latencies::new();
    let mut now = began;
    while now < end || latencies.is_empty() {
        call().await?;
        let after = Instant::now();
        if now >= warm {
            latencies.record(u64::try_from((after - now).as_nanos())?);
        }
        now = after;
    }
    Ok(latencies)
}

/// Keeps `outstanding` calls outstanding for `period`. Returns the calls a second, without the
/// warm-up.
pub(crate) async fn many<F>(call: F, outstanding: usize, period: Duration) -> Result<f64, Error>
where
    F: AsyncFn() -> Result<(), Error> + 'static,
{
    let began = Instant::now();
    let (warm, end) = (began + period / 10, began + period / 10 + period);
    let (call, count) = (Rc::new(call), Rc::new(Cell::new(0_u64)));
    let counted_until = Rc::new(Cell::new(end));
    let tasks = LocalSet::new();
    let callers: Vec<_> = (0..outstanding)
        .map(|_| {
            let (call, count) = (call.clone(), count.clone());
            let counted_until = counted_until.clone();
            tasks.spawn_local(async move {
                loop {
                    call().await?;
                    let now = Instant::now();
                    if now >= end && count.get() > 0 {
                        return Ok::<(), Error>(());
                    }
                    if now >= warm {
                        count.set(count.get() + 1);
                        counted_until.set(now.max(end));
                    }
                }
            })
        })
        .collect();
    tasks
        .run_until(async {
            for caller in callers {
                caller.await??;
            }
            Ok::<(), Error>(())
        })
        .await?;
    Ok(count.get() as f64 / (counted_until.get() - warm).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_load_goes_on_until_a_call_was_measured() {
        let period = Duration::from_nanos(100);
        let call = async move || -> Result<(), Error> {
            let began = Instant::now();
            // The window starts during the warm-up and ends after the period.
            while began.elapsed() <= 2 * period {
                tokio::task::yield_now().await;
            }
            Ok(())
        };
        assert!(!one_at_a_time(&call, period).await.unwrap().is_empty());
        assert!(many(call, 4, period).await.unwrap() > 0.0);
    }
}
