//! The application on the router's core, which measures the time that is left.
//!
//! Two programs play the applications: one computes and takes all the time that it can get, and one
//! watches the network as `tcpdump` does.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::frame::Frame;
use super::priority::Priority;
use super::tap::{Tap, Use};
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::fabric::RouterPath;
use apus_testbed::process::{Control, NO_ADDRESS};

/// The instructions for an application: the nanoseconds that count.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Window {
    pub(super) time: u64,
}

/// Steps of computing between two readings of the clock. Chosen by us: some microseconds.
const STEPS: u64 = 4_000;

/// Computes, and gives the share of the core that it had.
///
/// It takes the time that no other thread wants (`SCHED_IDLE`), so that measuring the time that is left changes nothing
/// about it.
pub(super) fn compute(control: &mut Control) -> Result<Value, Error> {
    Priority::Leftover.take()?;
    control.ready(NO_ADDRESS)?;
    let begin = control.begin::<Window>()?;
    let (begins, ends) = (begin.at, begin.at + begin.details.time);
    let mut state = 1_u64;
    // The last look before the load counts: in a livelock the next one comes when it is over.
    let first = sample();
    // An application that learns of the load after its start had no time of it so far.
    let mut before = (first.0.min(begins), first.1);
    let after = loop {
        for _ in 0..STEPS {
            // A generator of Knuth's. Its value is never read, which the compiler must not notice.
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

/// Returns what time it is, and how much of it this process has used.
fn sample() -> (u64, u64) {
    (clock::now(), clock::cpu_time())
}

/// Watches the packets that come to the router; gives how many it saw.
pub(super) fn monitor(control: &mut Control) -> Result<Value, Error> {
    let tap = Tap::open(RouterPath::IN, Use::Receive)?;
    tap.set_patience(super::CHECK_INTERVAL)?;
    control.ready(NO_ADDRESS)?;
    let mut frame = Frame::empty();
    let mut seen = 0_u64;
    while !control.stop().is_asked() {
        let came = tap.wait_and_take(&mut frame)?;
        seen += u64::from(came && frame.destination().is_ok());
    }
    Ok(json!(seen))
}
