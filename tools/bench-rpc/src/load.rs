//! Load: calls one at a time, and many outstanding.

use crate::Error;
use apus_report::stats::Latencies;
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;

/// Makes calls one after another for `period`. Returns their latencies in nanoseconds, without those of the warm-up.
pub(crate) async fn one_at_a_time<F>(call: &F, period: Duration) -> Result<Latencies, Error>
where
    F: AsyncFn() -> Result<(), Error>,
{
    let began = Instant::now();
    let (warm, end) = (began + period / 10, began + period / 10 + period);
    let mut latencies = Latencies::new();
    let mut now = began;
    while now < end {
        call().await?;
        let after = Instant::now();
        if now >= warm {
            latencies.record(u64::try_from((after - now).as_nanos())?);
        }
        now = after;
    }
    Ok(latencies)
}

/// Keeps `outstanding` calls outstanding for `period`. Returns the calls a second, without the warm-up.
pub(crate) async fn many<F>(call: F, outstanding: usize, period: Duration) -> Result<f64, Error>
where
    F: AsyncFn() -> Result<(), Error> + 'static,
{
    let began = Instant::now();
    let (warm, end) = (began + period / 10, began + period / 10 + period);
    let (call, count) = (Rc::new(call), Rc::new(Cell::new(0_u64)));
    let tasks = LocalSet::new();
    let callers: Vec<_> = (0..outstanding)
        .map(|_| {
            let (call, count) = (call.clone(), count.clone());
            tasks.spawn_local(async move {
                loop {
                    call().await?;
                    let now = Instant::now();
                    if now >= end {
                        return Ok::<(), Error>(());
                    }
                    if now >= warm {
                        count.set(count.get() + 1);
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
    Ok(count.get() as f64 / period.as_secs_f64())
}
