//! TCP client with one or more connections to each server.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use apus::PollMode;

use super::connection::Connection;
use super::readiness::{Readiness, Ready, Token};
use crate::contenders::baseline::stream::buffer_pool::BufferPool;
use crate::contenders::baseline::stream::frames::PREFIX;
use crate::contenders::baseline::tcp::socket::{Settings, open};
use crate::contenders::transport::interface::{Client, Completions, Start, differs, payload};
use apus_testbed::clock;
use apus_testbed::error::{Doing, Error};

/// A client with one or more connections to each server.
pub(super) struct TcpClient {
    readiness: Readiness,
    ready: Vec<Ready>,
    servers: Vec<ServerConnections>,
    /// Connections of all servers, by token.
    connections: Vec<PooledConnection>,
    /// Whether a connection carries one request at a time.
    exclusive: bool,
    /// Buffer that all payloads are slices of.
    payload: Rc<[u8]>,
    /// Nanoseconds to spin before sleeping; `None` spins forever.
    spin: Option<u64>,
    /// Whether contents of replies are compared.
    compare: bool,
}

/// Connections to each server.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pool {
    /// This number of connections, shared by requests.
    Shared(usize),
    /// This number of connections, each for one request at a time.
    Exclusive(usize),
}

struct ServerConnections {
    address: SocketAddr,
    /// Indices of its connections. With exclusive connections, only idle ones, the most recently
    /// used at the end.
    connections: Vec<usize>,
}

/// A connection and its requests, in the order of their replies.
struct PooledConnection {
    connection: Connection,
    server: usize,
    requests: VecDeque<(u32, usize)>,
    /// Bytes of these requests.
    bytes: usize,
}

/// Requests shorter than this are copied behind their prefix, so that several of them leave as one
/// piece. Chosen by us and not tuned: copying a page costs less than the system call that it may
/// save.
const SHORT: usize = 4 << 10;

impl TcpClient {
    pub(super) fn connect(
        servers: &[SocketAddr],
        pool: Pool,
        sockets: &Settings,
        poll: PollMode,
        compare: bool,
    ) -> Result<Self, Error> {
        let readiness = Readiness::new().doing(|| "create an epoll descriptor".to_owned())?;
        let buffers = BufferPool::default();
        let (count, exclusive) = match pool {
            Pool::Shared(count) => (count, false),
            Pool::Exclusive(count) => (count, true),
        };
        let mut client = Self {
            readiness,
            ready: Vec::new(),
            servers: Vec::new(),
            connections: Vec::new(),
            exclusive,
            payload: Rc::from([]),
            spin: poll.spin_for().map(clock::as_nanoseconds),
            compare,
        };
        for (server, &address) in servers.iter().enumerate() {
            let first = client.connections.len();
            for index in first..first + count {
                let stream = open(address, sockets)?;
                let connection =
                    Connection::new(stream, index as Token, &client.readiness, &buffers)
                        .doing(|| format!("watch a connection to {address}"))?;
                client.connections.push(PooledConnection {
                    connection,
                    server,
                    requests: VecDeque::new(),
                    bytes: 0,
                });
            }
            client.servers.push(ServerConnections {
                address,
                connections: (first..first + count).rev().collect(),
            });
        }
        Ok(client)
    }

    /// Returns a payload of at least `size` bytes.
    fn payload(&mut self, size: usize) -> Rc<[u8]> {
        if self.payload.len() < size {
            self.payload = payload(size.next_power_of_two()).into();
        }
        Rc::clone(&self.payload)
    }

    /// Selects the connection for the next request to this server.
    fn choose(&mut self, server: usize) -> usize {
        let connections = &mut self.servers[server].connections;
        if self.exclusive {
            return connections.pop().expect("as many connections as outstanding requests");
        }
        let load = |&index: &usize| self.connections[index].bytes;
        connections.iter().copied().min_by_key(load).expect("there is a connection")
    }

    /// Receives what is available on a connection, and records the replies.
    fn receive(&mut self, index: usize, ended: &mut Completions) -> Result<(), Error> {
        let PooledConnection { connection, server, requests, bytes } = &mut self.connections[index];
        let ServerConnections { address, connections } = &mut self.servers[*server];
        if !connection.receive().doing(|| format!("receive from {address}"))? {
            return Err(Error::Peer(format!("{address} closed a connection")));
        }
        let replies = connection.inbox.take();
        if replies.count > 0 && self.exclusive {
            connections.push(index);
        }
        for frame in replies.iter() {
            let reply = frame.len() - PREFIX;
            match requests.pop_front() {
                Some((id, length)) if length == reply => {
                    let expected = self.compare.then(|| &self.payload[..length]);
                    let wrong = expected.and_then(|it| differs(*address, &frame[PREFIX..], it));
                    if let Some(wrong) = wrong {
                        return Err(wrong);
                    }
                    *bytes -= length;
                    ended.completed.push(id);
                }
                request => {
                    let request = request.map_or(0, |(_, length)| length);
                    let what = format!("{address} answered {request} bytes with {reply}");
                    return Err(Error::Peer(what));
                }
            }
        }
        connection.inbox.release();
        Ok(())
    }

    /// Puts a request into the outbox of a connection. Returns the connection's index.
    fn put(&mut self, Start { id, peer, size }: Start) -> usize {
        let length = size as usize;
        let payload = self.payload(length);
        let index = self.choose(peer);
        let PooledConnection { connection, requests, bytes, .. } = &mut self.connections[index];
        requests.push_back((id, length));
        *bytes += length;
        connection.outbox.push_copy(&size.to_be_bytes());
        if length < SHORT {
            connection.outbox.push_copy(&payload[..length]);
        } else {
            connection.outbox.push_shared(payload, length);
        }
        index
    }

    /// Sends as much as a connection accepts.
    fn send(&mut self, index: usize) -> Result<(), Error> {
        let PooledConnection { connection, server, .. } = &mut self.connections[index];
        let address = self.servers[*server].address;
        connection.send(&self.readiness).doing(|| format!("send to {address}"))
    }

    /// Waits for up to `wait`, then sends and receives as much as possible. Returns whether it made
    /// progress.
    fn poll_once(&mut self, wait: Duration, ended: &mut Completions) -> Result<bool, Error> {
        let ready = self.readiness.poll(Some(wait)).doing(|| "wait for connections".to_owned())?;
        let mut batch = std::mem::take(&mut self.ready);
        batch.extend(ready);
        let worked = !batch.is_empty();
        for Ready { token, receive, send } in batch.drain(..) {
            let index = token as usize;
            if send {
                self.send(index)?;
            }
            if receive {
                self.receive(index, ended)?;
            }
        }
        self.ready = batch;
        Ok(worked)
    }
}

impl Client for TcpClient {
    fn start(&mut self, id: u32, peer: usize, size: u32) -> Result<(), Error> {
        self.start_all(&[Start { id, peer, size }]).map(drop)
    }

    fn start_all(&mut self, starts: &[Start]) -> Result<usize, Error> {
        let mut filled = Vec::new();
        for &start in starts {
            let index = self.put(start);
            if filled.last() != Some(&index) {
                filled.push(index);
            }
        }
        filled.sort_unstable();
        filled.dedup();
        filled.into_iter().try_for_each(|index| self.send(index))?;
        Ok(starts.len())
    }

    fn poll(&mut self, wait: Duration, ended: &mut Completions) -> Result<(), Error> {
        if self.poll_once(Duration::ZERO, ended)? || wait.is_zero() {
            return Ok(());
        }
        let began = clock::now();
        let wait = clock::as_nanoseconds(wait);
        let spin = self.spin.unwrap_or(wait).min(wait);
        loop {
            let waited = clock::now() - began;
            if waited >= spin {
                let left = Duration::from_nanos(wait.saturating_sub(waited));
                return self.poll_once(left, ended).map(drop);
            }
            if self.poll_once(Duration::ZERO, ended)? {
                return Ok(());
            }
        }
    }
}
