//! Exchange loop of the latency experiments: one request at a time.

use crate::clock;
use crate::error::Error;
use crate::meter::Meter;
use crate::plan::{Plan, Side};

/// Calls `exchange` with 0, 1, … for the time in the plan. `exchange` sends a request and returns
/// when the reply has arrived, or returns `false` on a stop request.
pub fn ping_pong(
    plan: &Plan,
    mut exchange: impl FnMut(u64) -> Result<bool, Error>,
) -> Result<Side, Error> {
    let mut meter = Meter::start(plan);
    let mut sent = clock::now();
    for number in 0.. {
        if !exchange(number)? {
            break;
        }
        let now = clock::now();
        if meter.is_over(now) {
            break;
        }
        meter.latency(now - sent);
        meter.count(now, 1, plan.size as u64);
        sent = clock::now();
    }
    Ok(meter.finish())
}
