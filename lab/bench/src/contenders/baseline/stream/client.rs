//! Client on a stream: keeps requests outstanding.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::frames::{Inbox, frame};
use super::send_mode::SendMode;
use crate::contenders::baseline::waiter::Waiter;
use apus_measure::meter::Meter;
use apus_measure::plan::{Plan, Side};
use apus_testbed::clock;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::Stop;

/// Keeps the plan's number of requests outstanding on a connection to `server`, for the plan's
/// duration.
pub(crate) fn drive(
    stream: OwnedFd,
    mut inbox: Inbox,
    sends: SendMode,
    plan: &Plan,
    server: SocketAddr,
    stop: &Stop,
) -> Result<Side, Error> {
    let waiter = Waiter::new(plan.poll, stop);
    let mut requests = Requests::new(plan, sends, stream);
    let mut meter = Meter::start(plan);
    loop {
        requests.send().doing(|| format!("send requests to {server}"))?;
        let received = if requests.unsent.is_empty() {
            waiter.receive(|flags| Ok(recv(&requests.stream, inbox.room(), flags)?.0))
        } else {
            // The connection does not accept all requests: continue with whichever direction is
            // possible first.
            match recv(&requests.stream, inbox.room(), RecvFlags::DONTWAIT) {
                Err(Errno::AGAIN) if waiter.either(&requests.stream) => continue,
                Err(Errno::AGAIN) => Ok(None),
                received => received.map(|(count, _)| Some(count)),
            }
        };
        match received.doing(|| format!("receive replies from {server}"))? {
            None => break,
            Some(0) => return Err(Error::Peer(format!("{server} closed the connection"))),
            Some(count) => inbox.received(count),
        }
        let replies = inbox.take();
        let now = clock::now();
        for _ in 0..replies.count {
            meter.latency(now - requests.answered());
        }
        if replies.count > 0 {
            meter.count(now, replies.count as u64, (replies.count * plan.size) as u64);
        }
        if meter.is_over(now) {
            break;
        }
    }
    Ok(meter.finish())
}

/// Outstanding requests.
struct Requests {
    stream: OwnedFd,
    /// Frames for one `send`, one after another.
    frames: Vec<u8>,
    /// Length of one frame in bytes.
    frame: usize,
    /// Part of `frames` that the current `send` has not sent.
    unsent: Range<usize>,
    /// Send times of requests without a reply, oldest first: replies arrive in order.
    sent: VecDeque<u64>,
    /// Maximum outstanding requests.
    limit: usize,
}

impl Requests {
    fn new(plan: &Plan, sends: SendMode, stream: OwnedFd) -> Self {
        let one = frame(&vec![0; plan.size]);
        let per_send = match sends {
            SendMode::One => 1,
            SendMode::Ready => plan.outstanding,
        };
        Self {
            stream,
            frames: one.repeat(per_send),
            frame: one.len(),
            unsent: 0..0,
            sent: VecDeque::with_capacity(plan.outstanding),
            limit: plan.outstanding,
        }
    }

    /// Sends until the limit of outstanding requests is reached or the connection is full.
    fn send(&mut self) -> Result<(), Errno> {
        loop {
            if self.unsent.is_empty() && !self.next() {
                return Ok(());
            }
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match send(&self.stream, &self.frames[self.unsent.clone()], flags) {
                Ok(count) => self.unsent.start += count,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Prepares the next `send`, if another request may start.
    fn next(&mut self) -> bool {
        let room = self.limit - self.sent.len();
        let count = room.min(self.frames.len() / self.frame);
        if count == 0 {
            return false;
        }
        self.unsent = 0..count * self.frame;
        let now = clock::now();
        self.sent.extend(std::iter::repeat_n(now, count));
        true
    }

    /// Removes the oldest request and returns its send time.
    fn answered(&mut self) -> u64 {
        self.sent.pop_front().expect("a server answers each request once")
    }
}
