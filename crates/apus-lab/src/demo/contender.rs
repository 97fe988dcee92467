//! What carries the demo's load?

use std::net::SocketAddr;

use apus::Poll;

use crate::error::Error;
use crate::process::Control;

/// One way to carry requests and replies of any size, many at the same time.
///
/// The server echoes each request once it is complete. [`Contender::serve`] runs in one process,
/// [`Contender::connect`] and the load generator in another one, each pinned to its core.
pub trait Contender: Sync {
    /// Its name in results, like `tcp`.
    fn name(&self) -> &'static str;

    /// How it is set up, for people who ask whether the comparison is fair.
    fn settings(&self) -> String;

    /// Opens, calls [`Control::ready`], and echoes requests until [`Control::stop`] is asked.
    ///
    /// # Errors
    ///
    /// The system refuses something.
    fn serve(&self, poll: Poll, control: &mut Control) -> Result<(), Error>;

    /// A client of `server` that never has more than `outstanding` requests under way. Connections,
    /// if there are any, are there when this returns.
    ///
    /// # Errors
    ///
    /// The system refuses something, or the server does not answer.
    fn connect(&self, server: SocketAddr, outstanding: usize) -> Result<Box<dyn Client>, Error>;
}

/// The client as the load generator drives it, from one thread and without ever waiting.
pub trait Client {
    /// Begins a request with a payload of `size` bytes. `id` names it until its reply is complete;
    /// ids are smaller than the number of requests that may be outstanding.
    ///
    /// # Errors
    ///
    /// The system refuses something, or the server is gone.
    fn start(&mut self, id: u32, size: u32) -> Result<(), Error>;

    /// Does what can be done now: sends, receives, adds the ids of completed requests to `done`.
    ///
    /// # Errors
    ///
    /// The system refuses something, the server is gone, or a reply is not as long as its request.
    fn poll(&mut self, done: &mut Vec<u32>) -> Result<(), Error>;
}
