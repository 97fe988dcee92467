//! Clients that send and receive.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::task::Poll;
use std::time::{Duration, Instant};

use apus_bench::contenders::transport::{self, Completions};
use apus_testbed::error::{Doing, Error as TestbedError};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::calls::note;
use crate::connector::Connector;
use crate::executor::{Executor, Timer};
use crate::measured::{Window, cpu_nanos};
use crate::message::{MAX_LENGTH, Messages, check_echo, pattern};
use crate::{Client, Error, Measured};

/// A client's connection to its server.
pub trait Connection {
    /// Sends a request, or keeps it until [`Connection::receive`] is called.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    fn send(&mut self, request: &[u8]) -> Result<(), Error>;

    /// Waits for the next reply, to any of the requests, and writes it into the empty `reply`.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    fn receive(&mut self, reply: &mut Vec<u8>) -> Result<(), Error>;

    /// Writes the next reply into the empty `reply` if it has arrived; returns whether it has.
    /// Replies arrive in the order of their requests.
    ///
    /// # Errors
    ///
    /// The connection is broken, or its peer does not support awaiting several connections.
    fn try_receive(&mut self, reply: &mut Vec<u8>) -> Result<bool, Error> {
        let _ = reply;
        Err("a connection that is not awaited".into())
    }

    /// Returns the descriptor to poll after [`Connection::try_receive`] has returned `false`: it
    /// becomes readable when a new attempt may succeed. `None` without such a descriptor.
    fn descriptor(&self) -> Option<RawFd> {
        None
    }
}

impl<C: Connection + ?Sized> Connection for Box<C> {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        (**self).send(request)
    }

    fn receive(&mut self, reply: &mut Vec<u8>) -> Result<(), Error> {
        (**self).receive(reply)
    }
}

/// Returns the client of a peer that sends and receives: `connect` returns a new connection to a
/// server.
pub fn connections<Connect, C>(connect: Connect) -> Box<dyn Connector>
where
    Connect: FnMut(SocketAddr) -> Result<C, Error> + 'static,
    C: Connection + 'static,
{
    Box::new(Connections { connect })
}

struct Connections<Connect> {
    connect: Connect,
}

impl<Connect, C> Connector for Connections<Connect>
where
    Connect: FnMut(SocketAddr) -> Result<C, Error> + 'static,
    C: Connection + 'static,
{
    fn measure(mut self: Box<Self>, client: &Client, _: &Executor) -> Result<Measured, Error> {
        measure_connection(client, &mut (self.connect)(client.server)?)
    }

    fn connect(
        mut self: Box<Self>,
        servers: &[SocketAddr],
        executor: Executor,
    ) -> Result<Box<dyn transport::Client>, Error> {
        let inside = executor.enter();
        let mut all = Vec::with_capacity(servers.len());
        for &server in servers {
            let connection = (self.connect)(server)?;
            let descriptor = connection.descriptor().ok_or("connections that cannot be awaited")?;
            #[expect(
                deprecated,
                reason = "its successor is unsafe code, and `Awaited` ends it before the connection"
            )]
            let readiness = AsyncFd::with_interest(descriptor, Interest::READABLE)?;
            all.push(Awaited { readiness, connection, requests: VecDeque::new() });
        }
        let timer = Timer::new()?;
        drop(inside);
        let (waiting, reply, pattern) = (Vec::new(), Vec::new(), pattern(MAX_LENGTH));
        Ok(Box::new(Outstanding { all, waiting, timer, reply, pattern, executor }))
    }
}

/// A connection awaited together with others.
struct Awaited<C> {
    // Dropped before the descriptor.
    readiness: AsyncFd<RawFd>,
    connection: C,
    /// Calls without a reply, in the order of the replies: id and length.
    requests: VecDeque<(u32, usize)>,
}

/// Connections to several servers.
struct Outstanding<C> {
    all: Vec<Awaited<C>>,
    /// Indices of the connections that have calls without a reply.
    waiting: Vec<usize>,
    timer: Timer,
    reply: Vec<u8>,
    /// Common prefix of all requests.
    pattern: Vec<u8>,
    executor: Executor,
}

impl<C: Connection> Outstanding<C> {
    /// Receives all replies that have arrived.
    fn receive(&mut self, ended: &mut Completions) -> Result<(), Error> {
        let Self { all, waiting, reply, pattern, .. } = self;
        for &index in &*waiting {
            let Awaited { connection, requests, .. } = &mut all[index];
            while let Some(&(id, length)) = requests.front() {
                reply.clear();
                if !connection.try_receive(reply)? {
                    break;
                }
                requests.pop_front();
                note(id, check_echo(reply, &pattern[..length]), ended);
            }
        }
        waiting.retain(|&index| !all[index].requests.is_empty());
        Ok(())
    }

    /// Waits until a connection may have a reply, for up to `wait`.
    fn wait(&self, wait: Duration) -> io::Result<()> {
        let any = poll_fn(|context| {
            for &index in &self.waiting {
                if let Poll::Ready(ready) = self.all[index].readiness.poll_read_ready(context) {
                    return Poll::Ready(ready.map(|mut ready| ready.clear_ready()));
                }
            }
            Poll::Pending
        });
        self.executor.run(async {
            tokio::select! {
                ready = any => ready,
                slept = self.timer.sleep(wait) => slept,
            }
        })
    }
}

impl<C: Connection> transport::Client for Outstanding<C> {
    fn start(&mut self, id: u32, peer: usize, size: u32) -> Result<(), TestbedError> {
        let length = size as usize;
        let Awaited { connection, requests, .. } = &mut self.all[peer];
        if requests.is_empty() {
            self.waiting.push(peer);
        }
        requests.push_back((id, length));
        connection
            .send(&self.pattern[..length])
            .map_err(|error| TestbedError::Peer(error.to_string()))
    }

    fn poll(&mut self, wait: Duration, ended: &mut Completions) -> Result<(), TestbedError> {
        let broken = |error: Error| TestbedError::Peer(error.to_string());
        self.receive(ended).map_err(broken)?;
        if ended.is_empty() && !wait.is_zero() {
            self.wait(wait).doing(|| "wait for replies".to_owned())?;
            self.receive(ended).map_err(broken)?;
        }
        Ok(())
    }
}

/// Measures the work of a client over a connection.
pub(crate) fn measure_connection(
    client: &Client,
    connection: &mut impl Connection,
) -> Result<Measured, Error> {
    let mut messages = Messages::of(client.work);
    let mut window = Window::after_warm_up(client.length);
    let mut began: HashMap<u64, Instant> = HashMap::new();
    let mut next = 0;
    let mut reply = Vec::new();
    loop {
        while began.len() < client.work.outstanding() {
            began.insert(next, Instant::now());
            connection.send(messages.request(next))?;
            next += 1;
        }
        reply.clear();
        connection.receive(&mut reply)?;
        let call = messages.call_of(&reply)?;
        let began = began.remove(&call).ok_or("a reply to no request")?;
        if !window.count(began, Instant::now()) {
            return Ok(window.close(cpu_nanos()));
        }
    }
}
