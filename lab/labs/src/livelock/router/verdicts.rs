//! Verdicts: the exchange of packets with the filter.
//!
//! The filter receives the headers of packets and answers with a byte for each, in order. Until
//! then the packets wait in the filter's queue.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;

use ::apus::overload::Feedback;

use super::counters::{Counters, send};
use super::stage::{Signals, Stage};
use crate::livelock::filter::{PASS, QUEUE, RECORD};
use crate::livelock::frame::Frame;
use crate::livelock::link::{Inlet, Outlet};
use crate::livelock::priority::Priority;
use crate::livelock::tap::Tap;
use apus_testbed::error::{Doing, Error};

/// The state that both ends of the filter's queue share.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// Reception has stopped until the queue is short.
    stopped: AtomicBool,
}

/// The way to the filter.
pub(super) struct ToFilter {
    pub(super) inlet: Inlet,
    pub(super) stream: UnixStream,
    pub(super) backlog: Arc<Backlog>,
}

impl ToFilter {
    /// Passes a packet to the filter; `false` if the queue is full.
    pub(super) fn ask(&mut self, frame: &mut Frame) -> Result<bool, Error> {
        let record: [u8; RECORD] =
            *frame.packet().first_chunk().expect("a packet with a destination is that long");
        if !self.inlet.push(frame) {
            return Ok(false);
        }
        // The buffer of a socket is far larger than the records of the queue, so this does not
        // block.
        match self.stream.write_all(&record) {
            Ok(()) => Ok(true),
            // The end of the experiment.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(true),
            Err(error) => Err(error).doing(|| "ask the filter".to_owned()),
        }
    }

    /// Requests a wake-up of the calling thread when the queue is short; `false` if it is short
    /// already.
    pub(super) fn request_wakeup(&self) -> bool {
        // Sequentially consistent here and in `wake_if_short`: either this side sees the short
        // queue, or the other side sees the flag.
        self.backlog.stopped.store(true, Ordering::SeqCst);
        std::sync::atomic::fence(Ordering::SeqCst);
        self.inlet.len() > SHORT
    }
}

/// Number of packets in the queue at which reception resumes.
const SHORT: usize = QUEUE * Feedback::RESUME_PERCENT / 100;

/// Starts the stage that executes the filter's verdicts. `poller` is the thread that stops while
/// the queue is long.
pub(super) fn start(
    stream: UnixStream,
    outlet: Outlet,
    output: Tap,
    backlog: Arc<Backlog>,
    poller: Thread,
    signals: &Signals,
) -> Result<Stage, Error> {
    let verdicts = Verdicts { outlet, output, backlog, poller, counters: Counters::default() };
    Stage::start("verdicts", Priority::Ordinary, signals, move |_| verdicts.run(stream))
}

struct Verdicts {
    outlet: Outlet,
    output: Tap,
    backlog: Arc<Backlog>,
    poller: Thread,
    counters: Counters,
}

impl Verdicts {
    /// Runs until the filter has ended.
    fn run(mut self, mut stream: UnixStream) -> Result<Counters, Error> {
        let mut verdicts = [0; QUEUE];
        let mut frame = Frame::empty();
        loop {
            let count = match stream.read(&mut verdicts) {
                Ok(0) => return Ok(self.counters),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return Ok(self.counters);
                }
                Err(error) => return Err(error).doing(|| "read the filter's verdicts".to_owned()),
            };
            for verdict in &verdicts[..count] {
                if !self.outlet.pop(&mut frame) {
                    return Err(Error::Peer("a verdict of the filter without a packet".to_owned()));
                }
                if *verdict == PASS {
                    send(&self.output, &frame, &mut self.counters)?;
                } else {
                    self.counters.refused += 1;
                }
                self.wake_if_short();
            }
        }
    }

    /// Wakes the stopped receiver if the queue is short.
    fn wake_if_short(&self) {
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.outlet.len() <= SHORT
            && self.backlog.stopped.load(Ordering::Relaxed)
            && self.backlog.stopped.swap(false, Ordering::SeqCst)
        {
            self.poller.unpark();
        }
    }
}
