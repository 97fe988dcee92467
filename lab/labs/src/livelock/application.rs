//! Applications on the router's core, which measure the time that the router leaves.
//!
//! There are two: one computes and takes all available time, and one watches the network as
//! `tcpdump` does.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::frame::Frame;
use super::priority::Priority;
use super::tap::{CHECK_INTERVAL, Tap, Use};
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::fabric::RouterPath;
use apus_testbed::process::{Control, NO_ADDRESS};

/// The instructions for an application: the measured nanoseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Window {
    pub(super) time: u64,
}

/// Steps of computing between two readings of the clock. Chosen by us: some microseconds.
const STEPS: u64 = 4_000;

/// Computes, and reports the share of the core that it had.
///
/// It runs at `SCHED_IDLE`, in time that no other thread uses, so the measurement does not change
/// what is left.
pub(super) fn compute(control: &mut Control) -> Result<Value, Error> {
    Priority::Leftover.take()?;
    control.ready(NO_ADDRESS)?;
    let begin = control.begin::<Window>()?;
    let (begins, ends) = (begin.at, begin.at + begin.details.time);
    let mut state = 1_u64;
    // The last sample before the load counts: in a livelock the next sample is taken after the
    // load.
    let first = sample();
    // An application that is notified after the start of the load has had none of its time yet.
    let mut before = (first.0.min(begins), first.1);
    let after = loop {
        for _ in 0..STEPS {
            // Knuth's generator. Its value is never read; black_box hides that from the compiler.
            state =
                std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
        let now = sample();
        if now.0 >= ends {
            break now;
        }
        if now.0 < begins {
            before = now;
        }
    };
    let share = (after.1 - before.1) as f64 / (after.0 - before.0).max(1) as f64;
    control.report(json!(share.min(1.0)))?;
    control.stop().wait();
    Ok(Value::Null)
}

/// Returns the current time, and the processor time of this process.
fn sample() -> (u64, u64) {
    (clock::now(), clock::cpu_time())
}

/// Watches the packets that arrive at the router; reports their number.
pub(super) fn monitor(control: &mut Control) -> Result<Value, Error> {
    let tap = Tap::open(RouterPath::IN, Use::Receive)?;
    tap.set_timeout(CHECK_INTERVAL)?;
    control.ready(NO_ADDRESS)?;
    let mut frame = Frame::empty();
    let mut seen = 0_u64;
    while !control.stop().is_asked() {
        let received = tap.wait_and_take(&mut frame)?;
        seen += u64::from(received && frame.destination().is_ok());
    }
    Ok(json!(seen))
}
