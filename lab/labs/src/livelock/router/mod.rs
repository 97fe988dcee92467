//! The router: a program that forwards packets, in parts.
//!
//! ```text
//!   interrupt   input (level 30) ─▶ IP queue ─▶ IP (level 20) ─┬─▶ out
//!   polling     one loop: receive ─▶ IP ─▶ output queue ─▶ out │
//!                                           └──────────────────┴─▶ filter's queue ─▶ verdicts ─▶ out
//! ```
//!
//! `verdicts` runs at the priority of programs in every mode: in the paper it is the system call of `screend`
//! that sends what may pass.

mod counters;
mod forward;
mod interrupt;
mod polling;
mod verdicts;

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::{self, Door};
use super::link::link;
use super::mode::Mode;
use super::tap::{Tap, Use};
use apus_testbed::error::{Doing, Error};
use apus_testbed::fabric::RouterPath;
use apus_testbed::process::{Control, NO_ADDRESS, Stop};

pub(super) use counters::Counters;

use forward::Forwarder;
use verdicts::ToFilter;

/// The configuration of a router.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    pub(super) mode: Mode,
    /// The socket of its filter, if it has one.
    pub(super) door: Option<Door>,
}

impl Counters {
    fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.received, other.received),
            (&mut self.sent, other.sent),
            (&mut self.malformed, other.malformed),
            (&mut self.checksum, other.checksum),
            (&mut self.expired, other.expired),
            (&mut self.no_route, other.no_route),
            (&mut self.ip_queue_full, other.ip_queue_full),
            (&mut self.output_queue_full, other.output_queue_full),
            (&mut self.filter_queue_full, other.filter_queue_full),
            (&mut self.refused, other.refused),
            (&mut self.not_sent, other.not_sent),
            (&mut self.quota_exhaustions, other.quota_exhaustions),
            (&mut self.feedback_stops, other.feedback_stops),
            (&mut self.feedback_timeouts, other.feedback_timeouts),
            (&mut self.inhibitions, other.inhibitions),
        ];
        for (sum, more) in pairs {
            *sum += more;
        }
    }

    /// Returns the packets that the router threw away after it had taken them, and why; the filter's decisions are not
    /// among them.
    pub(super) const fn thrown_away(&self) -> [(&'static str, u64); 4] {
        [
            ("the IP queue was full", self.ip_queue_full),
            ("the output queue was full", self.output_queue_full),
            ("the filter's queue was full", self.filter_queue_full),
            ("the system took no more", self.not_sent),
        ]
    }
}

/// A part of the router that runs in a thread of its own.
struct Part {
    thread: JoinHandle<Result<Counters, Error>>,
}

/// The state that every part receives.
#[derive(Clone)]
struct Life {
    stop: Stop,
    /// Receives a message when the part is ready.
    ready: Sender<()>,
}

/// Is the router until it is stopped; gives [`Counters`].
pub(super) fn agent(setup: &Setup, control: &mut Control) -> Result<Value, Error> {
    let (sender, receiver) = mpsc::channel();
    let life = Life { stop: control.stop().clone(), ready: sender };
    let stream = setup.door.as_ref().map(accept).transpose()?;
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
    let mut parts = match setup.mode.policy(filter::QUEUE) {
        None => interrupt::start(input, forwarder, &life)?,
        Some(policy) => vec![polling::start(input, forwarder, policy, &life)?],
    };
    if let (Some(stream), Some(outlet)) = (&stream, outlet) {
        let poller = parts[0].thread.thread().clone();
        let output = Tap::open(RouterPath::OUT, Use::Send)?;
        parts.push(verdicts::start(clone(stream)?, outlet, output, shared, poller, &life)?);
    }
    let ready = parts.iter().all(|_| receiver.recv_timeout(super::PATIENCE).is_ok());
    if ready {
        control.ready(NO_ADDRESS)?;
        control.stop().wait();
    } else {
        control.stop().ask();
    }
    if let Some(stream) = stream {
        // The filter and the threads that wait for it see the end. This fails if the filter has ended already.
        let _ = stream.shutdown(Shutdown::Both);
    }
    let mut counters = Counters::default();
    for part in parts {
        counters.add(&part.thread.join().expect("no part of the router panics")?);
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

impl Part {
    /// Starts it with that priority.
    fn start(
        name: &str,
        priority: super::priority::Priority,
        life: &Life,
        work: impl FnOnce(&Stop) -> Result<Counters, Error> + Send + 'static,
    ) -> Result<Self, Error> {
        let Life { stop, ready } = life.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            priority.take()?;
            // The thread that waits for it may have given up.
            let _ = ready.send(());
            drop(ready);
            work(&stop)
        });
        Ok(Self { thread: thread.doing(|| format!("start {name}"))? })
    }
}
