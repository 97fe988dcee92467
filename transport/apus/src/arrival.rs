//! Messages of both kinds in one call, for the thread that owns an endpoint's loop.

use crate::call::Completion;
use crate::endpoint::Endpoint;
use crate::engine::poll::{AnyArrival, Arrived};
use crate::engine::waiting::PollMode;
use crate::error::Closed;
use crate::request::Request;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// A message for the application.
#[derive(Debug)]
#[must_use = "a request that is dropped fails at its client"]
pub enum Arrival {
    /// A request, to be answered.
    Request(Request),
    /// The outcome of a call that was sent with [`Endpoint::send`].
    Completion(Completion),
}

impl Endpoint {
    /// Waits up to `timeout` for a request or for the end of any call started with `send`, and
    /// returns early if one of `companions` is readable. Returns `None` if there is no message.
    ///
    /// For a thread that serves one endpoint and other descriptors: it sleeps on all of them in one
    /// system call, and receives its messages without a wake-up of another thread. It never spins;
    /// a thread that wants to spin repeats the call with [`Duration::ZERO`], which polls the
    /// network once and leaves `companions` alone.
    ///
    /// The endpoint must have [`Engine::Waiters`](crate::Engine::Waiters), and no other thread may
    /// wait for its messages: while another thread polls, this one sees neither messages nor
    /// `companions` before `timeout`. With several [shards](crate::EndpointBuilder::shards) the
    /// messages of all but one are handed over by the background poller.
    ///
    /// ```
    /// use apus::{Arrival, Endpoint};
    /// use std::io::Read;
    /// use std::os::fd::AsFd;
    /// use std::os::unix::net::UnixStream;
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let endpoint = Endpoint::bind("127.0.0.1:0")?;
    /// let (mut commands, other_thread) = UnixStream::pair()?;
    /// std::thread::spawn(move || drop(other_thread));
    /// loop {
    ///     match endpoint.recv_arrival(&[commands.as_fd()], Duration::MAX)? {
    ///         Some(Arrival::Request(request)) => request.reply("hello")?,
    ///         Some(Arrival::Completion(completion)) => println!("{:?}", completion.result),
    ///         // The other thread has closed its end.
    ///         None if commands.read(&mut [0])? == 0 => break,
    ///         None => {}
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed and all completions have been received.
    pub fn recv_arrival(
        &self,
        companions: &[BorrowedFd<'_>],
        timeout: Duration,
    ) -> Result<Option<Arrival>, Closed> {
        // With a deadline that has passed, one idle round of a spinning loop ends the wait, without
        // the preparations for a sleep.
        let mode = if timeout.is_zero() { PollMode::Spin } else { PollMode::Block };
        let deadline = Instant::now().checked_add(timeout);
        let target = AnyArrival::new(companions);
        let home = self.shards.home()?;
        let (shard, core, arrived) = self.shards.receive(home, &target, Some(mode), deadline);
        match arrived {
            Some(Arrived::Completion(ended)) => {
                drop(core);
                Ok(Some(Arrival::Completion(ended.into())))
            }
            Some(Arrived::Request(request)) => {
                drop(core);
                Ok(Some(Arrival::Request(Request::new(shard.clone(), request))))
            }
            None if core.is_closed() => Err(core.closed_error()),
            Some(Arrived::Companion) | None => Ok(None),
        }
    }
}
