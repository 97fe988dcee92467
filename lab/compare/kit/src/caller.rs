//! Clients that await all of their servers together.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use apus_bench::contenders::transport::{self, Completions};
use apus_testbed::error::Error as TestbedError;

use crate::calls::note;
use crate::connection::measure_connection;
use crate::connector::Connector;
use crate::executor::Executor;
use crate::message::{MAX_LENGTH, check_echo, number, pattern};
use crate::{Client, Connection, Error, Measured};

/// A client connected to several servers, for a peer that receives from all of them together.
pub trait Caller {
    /// Sends a request, or queues it until [`Caller::receive`] is called. `server` is the index of
    /// the server in connection order; `call` identifies the request.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    fn send(&mut self, server: usize, call: u64, request: &[u8]) -> Result<(), Error>;

    /// Writes the next reply of any server into the empty `reply`, and returns its call. Waits for
    /// up to `wait`; without a limit, the implementation decides how long. Returns `None` on
    /// timeout or spurious wake-up.
    ///
    /// # Errors
    ///
    /// A connection is broken.
    fn receive(
        &mut self,
        wait: Option<Duration>,
        reply: &mut Vec<u8>,
    ) -> Result<Option<u64>, Error>;
}

/// Returns the client of a peer that awaits all servers together: `connect` returns a caller
/// connected to each of them.
pub fn caller<Connect, C>(connect: Connect) -> Box<dyn Connector>
where
    Connect: FnOnce(&[SocketAddr]) -> Result<C, Error> + 'static,
    C: Caller + 'static,
{
    Box::new(Unconnected { connect })
}

struct Unconnected<Connect> {
    connect: Connect,
}

impl<Connect, C> Connector for Unconnected<Connect>
where
    Connect: FnOnce(&[SocketAddr]) -> Result<C, Error> + 'static,
    C: Caller + 'static,
{
    fn measure(self: Box<Self>, client: &Client, _: &Executor) -> Result<Measured, Error> {
        measure_connection(client, &mut Single((self.connect)(&[client.server])?))
    }

    fn connect(
        self: Box<Self>,
        servers: &[SocketAddr],
        _: Executor,
    ) -> Result<Box<dyn transport::Client>, Error> {
        let caller = (self.connect)(servers)?;
        Ok(Box::new(Outstanding { caller, reply: Vec::new(), pattern: pattern(MAX_LENGTH) }))
    }
}

/// A connection to one server.
struct Single<C>(C);

impl<C: Caller> Connection for Single<C> {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        self.0.send(0, number(request).unwrap_or_default(), request)
    }

    fn receive(&mut self, reply: &mut Vec<u8>) -> Result<(), Error> {
        while self.0.receive(None, reply)?.is_none() {}
        Ok(())
    }
}

/// Calls to several servers. A call is identified by the length of its request and its id.
struct Outstanding<C> {
    caller: C,
    reply: Vec<u8>,
    /// Common prefix of all requests.
    pattern: Vec<u8>,
}

impl<C: Caller> transport::Client for Outstanding<C> {
    fn start(&mut self, id: u32, peer: usize, size: u32) -> Result<(), TestbedError> {
        let call = u64::from(size) << 32 | u64::from(id);
        let sent = self.caller.send(peer, call, &self.pattern[..size as usize]);
        sent.map_err(|error| TestbedError::Peer(error.to_string()))
    }

    fn poll(&mut self, wait: Duration, ended: &mut Completions) -> Result<(), TestbedError> {
        let mut time = Duration::ZERO;
        loop {
            self.reply.clear();
            let received = self.caller.receive(Some(time), &mut self.reply);
            match received.map_err(|error| TestbedError::Peer(error.to_string()))? {
                Some(call) => {
                    let request = &self.pattern[..(call >> 32) as usize];
                    note(call as u32, check_echo(&self.reply, request), ended);
                    time = Duration::ZERO;
                }
                None if ended.is_empty() && time < wait => time = wait,
                None => return Ok(()),
            }
        }
    }
}

/// Outstanding calls of a peer whose servers reply in request order.
#[derive(Debug)]
pub struct InOrder {
    of_each: Vec<VecDeque<u64>>,
}

impl InOrder {
    /// Calls to this number of servers.
    #[must_use]
    pub fn new(servers: usize) -> Self {
        Self { of_each: vec![VecDeque::new(); servers] }
    }

    /// Adds a call.
    pub fn add(&mut self, server: usize, call: u64) {
        self.of_each[server].push_back(call);
    }

    /// Removes the call completed by the next reply of a server.
    ///
    /// # Errors
    ///
    /// No call is outstanding.
    pub fn take(&mut self, server: usize) -> Result<u64, Error> {
        let call = self.of_each.get_mut(server).and_then(VecDeque::pop_front);
        call.ok_or_else(|| "a reply to no request".into())
    }
}
