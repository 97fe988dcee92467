//! How does the client keep requests under way?

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::Sends;
use super::frames::{Inbox, frame};
use crate::baseline::wait::Waiter;
use crate::contender::{Plan, Side};
use crate::meter::Meter;
use apus_testbed::clock;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::Stop;

/// Keeps as many requests under way on a connection to `server` as the plan says, for as long as it says.
pub(crate) fn drive(
    stream: OwnedFd,
    mut inbox: Inbox,
    sends: Sends,
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
            // More is to be sent than the connection takes: go on with whatever is possible first.
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

/// Requests under way.
struct Requests {
    stream: OwnedFd,
    /// As many frames as one `send` carries at most, one behind the other.
    frames: Vec<u8>,
    /// Bytes of one frame.
    frame: usize,
    /// Part of `frames` that the current `send` has left.
    unsent: Range<usize>,
    /// When each request without a reply was sent, oldest first: replies come in order.
    sent: VecDeque<u64>,
    /// How many there may be.
    limit: usize,
}

impl Requests {
    fn new(plan: &Plan, sends: Sends, stream: OwnedFd) -> Self {
        let one = frame(&vec![0; plan.size]);
        let per_send = match sends {
            Sends::One => 1,
            Sends::Ready => plan.outstanding,
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

    /// Sends until as many are under way as may be, or the connection takes no more.
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

    /// Prepares the next `send`, if another request may be under way.
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

    /// When the oldest request was sent, which now has its reply.
    fn answered(&mut self) -> u64 {
        self.sent.pop_front().expect("a server answers each request once")
    }
}
