//! Answers for ended raw-IP endpoints of this host (RPC-19), whose servers request acks forever.
//!
//! Each raw-IP endpoint has a thread for that, which sleeps: one thread of the host answers, and
//! the others try once per [`PERIOD`] to take its place (see `ended_ports`). The thread is
//! separate, so that a flood of such requests takes no time from live endpoints.

use super::ended_ports::EndedPorts;
use apus_process::{Descriptor, Owner};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

/// Time between two attempts to take the place of the answering endpoint. Chosen by us: in that
/// time a server requests each ack a thousand times, a negligible load for a network.
const PERIOD: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Returns the answer to a packet for an endpoint that has ended; `None` if there is none.
pub type AnswerForEnded<A> = fn(&[u8]) -> Option<A>;

/// The thread, which ends with this value.
#[derive(Debug)]
pub struct EndedNeighbours {
    stop: Option<Descriptor<UnixStream>>,
    thread: Option<JoinHandle<()>>,
    owner: Owner,
}

impl EndedNeighbours {
    /// Starts the thread of an endpoint at `address`, in the network namespace of the caller.
    ///
    /// # Errors
    ///
    /// The system grants no thread or descriptor.
    pub fn watch<A: AsRef<[u8]> + 'static>(
        address: SocketAddr,
        answer: AnswerForEnded<A>,
    ) -> io::Result<Self> {
        let (stop, stopped) = UnixStream::pair()?;
        let (stop, stopped) = (Descriptor::new(stop), Descriptor::new(stopped));
        let thread = std::thread::Builder::new().name("apus-ended".into());
        let thread = thread.spawn(move || run(address, answer, &stopped))?;
        Ok(Self { stop: Some(stop), thread: Some(thread), owner: Owner::current() })
    }
}

impl Drop for EndedNeighbours {
    fn drop(&mut self) {
        if !self.owner.is_current() {
            // A child of a fork has no such thread, and must not detach it either.
            std::mem::forget(self.thread.take());
            return;
        }
        drop(self.stop.take());
        // The thread does not panic by design, and a panic here would hide the first one.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The event that ended a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WakeReason {
    Stopped,
    Readable,
    TimeUp,
}

/// Waits for its turn, and answers, until the other end of `stopped` is closed.
fn run<A: AsRef<[u8]>>(address: SocketAddr, answer: AnswerForEnded<A>, stopped: &UnixStream) {
    loop {
        // If the socket cannot be opened or fails, it is opened again after a while.
        if let Ok(Some(ports)) = EndedPorts::open(address)
            && answer_all(ports, answer, stopped) == WakeReason::Stopped
        {
            return;
        }
        if sleep(None, stopped, Some(&PERIOD)) == WakeReason::Stopped {
            return;
        }
    }
}

/// Answers until it is stopped, or the socket breaks.
fn answer_all<A: AsRef<[u8]>>(
    mut ports: EndedPorts,
    answer: AnswerForEnded<A>,
    stopped: &UnixStream,
) -> WakeReason {
    loop {
        let woken = sleep(Some(ports.as_fd()), stopped, None);
        if woken == WakeReason::Stopped || ports.answer(answer).is_err() {
            return woken;
        }
    }
}

/// Sleeps until `socket` is readable, the other end of `stopped` is closed, or `period` has passed.
fn sleep(
    socket: Option<BorrowedFd<'_>>,
    stopped: &UnixStream,
    period: Option<&Timespec>,
) -> WakeReason {
    let mut fds = vec![PollFd::new(stopped, PollFlags::IN)];
    fds.extend(socket.map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN)));
    match poll(&mut fds, period) {
        Ok(0) => WakeReason::TimeUp,
        Ok(_) if !fds[0].revents().is_empty() => WakeReason::Stopped,
        Ok(_) | Err(Errno::INTR) => WakeReason::Readable,
        // poll(2) fails only for invalid arguments or lack of memory.
        Err(_) => WakeReason::Stopped,
    }
}
