//! The router: a program that forwards packets, in stages.
//!
//! ```text
//!   interrupt   input (level 30) ─▶ IP queue ─▶ IP (level 20) ─┬─▶ out
//!   polling     one loop: receive ─▶ IP ─▶ output queue ─▶ out │
//!                                           └──────────────────┴─▶ filter's queue ─▶ verdicts ─▶ out
//! ```
//!
//! `verdicts` runs at the priority of programs in every mode: in the paper, a system call of
//! `screend` sends accepted packets.

mod counters;
mod forward;
mod interrupt;
mod polling;
mod stage;
mod verdicts;

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::{self, Door};
use super::link::link;
use super::mode::Mode;
use super::tap::{Tap, Use};
use apus_testbed::error::{Doing, Error};
use apus_testbed::fabric::RouterPath;
use apus_testbed::process::{Control, NO_ADDRESS};

pub(super) use counters::Counters;

use forward::Forwarder;
use stage::Signals;
use verdicts::ToFilter;

/// Longest time until a stage is ready. Chosen by us: a hundred times the usual time.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// The configuration of a router.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RouterTask {
    pub(super) mode: Mode,
    /// The socket of its filter, if it has one.
    pub(super) door: Option<Door>,
}

/// Runs the router until it is stopped; reports its [`Counters`].
pub(super) fn agent(task: &RouterTask, control: &mut Control) -> Result<Value, Error> {
    let (sender, receiver) = mpsc::channel();
    let signals = Signals { stop: control.stop().clone(), ready: sender };
    let stream = task.door.as_ref().map(accept).transpose()?;
    let shared = Arc::new(verdicts::Backlog::default());
    let (filter, outlet) = match &stream {
        Some(stream) => {
            let (inlet, outlet) = link(filter::QUEUE);
            let to = clone(stream)?;
            (Some(ToFilter { inlet, stream: to, backlog: Arc::clone(&shared) }), Some(outlet))
        }
        None => (None, None),
    };
    let forwarder = Forwarder::new(filter, Tap::open(RouterPath::OUT, Use::Send)?);
    let input = Tap::open(RouterPath::IN, Use::Receive)?;
    let mut stages = match task.mode.policy(filter::QUEUE) {
        None => interrupt::start(input, forwarder, &signals)?,
        Some(policy) => vec![polling::start(input, forwarder, policy, &signals)?],
    };
    if let (Some(stream), Some(outlet)) = (&stream, outlet) {
        let poller = stages[0].thread.thread().clone();
        let output = Tap::open(RouterPath::OUT, Use::Send)?;
        stages.push(verdicts::start(clone(stream)?, outlet, output, shared, poller, &signals)?);
    }
    let ready = stages.iter().all(|_| receiver.recv_timeout(START_TIMEOUT).is_ok());
    if ready {
        control.ready(NO_ADDRESS)?;
        control.stop().wait();
    } else {
        control.stop().ask();
    }
    if let Some(stream) = stream {
        // Ends the filter and the threads that read from it. This fails if the filter has already
        // ended.
        let _ = stream.shutdown(Shutdown::Both);
    }
    let mut counters = Counters::default();
    for stage in stages {
        counters.add(&stage.thread.join().expect("no stage of the router panics")?);
    }
    if ready { Ok(json!(counters)) } else { Err(Error::Peer("the router is not ready".to_owned())) }
}

fn accept(door: &Door) -> Result<UnixStream, Error> {
    let (stream, _) = door.open()?.accept().doing(|| "wait for the filter".to_owned())?;
    Ok(stream)
}

fn clone(stream: &UnixStream) -> Result<UnixStream, Error> {
    stream.try_clone().doing(|| "share a socket".to_owned())
}
