//! How does the client use its connections?

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use apus::PollMode;

use super::connection::Connection;
use super::readiness::{Readiness, Ready, Token};
use crate::baseline::stream::frames::PREFIX;
use crate::baseline::stream::memory::Memory;
use crate::baseline::tcp::socket::{Settings, open};
use crate::transport::{Client, Ended};
use apus_testbed::clock;
use apus_testbed::error::{Doing, Error};

/// A client with one or more connections to each server.
pub(super) struct TcpClient {
    readiness: Readiness,
    ready: Vec<Ready>,
    servers: Vec<Server>,
    /// The connections of all servers, by their tokens.
    lanes: Vec<Lane>,
    /// Whether a connection carries one request at a time.
    exclusive: bool,
    /// The payload of every request.
    payload: Rc<[u8]>,
    /// Nanoseconds to spin before sleeping; `None` stands for ever.
    spin: Option<u64>,
}

/// Connections to each server.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pool {
    /// So many, which requests share.
    Shared(usize),
    /// So many, each for one request at a time.
    Exclusive(usize),
}

struct Server {
    address: SocketAddr,
    /// Its connections, as indices; of exclusive ones those without a request, the one that was used last at
    /// the end.
    lanes: Vec<usize>,
}

/// A connection and the requests on it, in the order in which the replies come.
struct Lane {
    connection: Connection,
    server: usize,
    requests: VecDeque<(u32, usize)>,
    /// Bytes of these requests.
    bytes: usize,
}

/// Requests that are shorter than this are copied behind their prefix, so that several of them leave
/// as one piece. Ours, not tuned: a page, whose copy costs less than the system call it may spare.
const SHORT: usize = 4 << 10;

impl TcpClient {
    pub(super) fn connect(
        servers: &[SocketAddr],
        pool: Pool,
        sockets: &Settings,
        poll: PollMode,
    ) -> Result<Self, Error> {
        let readiness = Readiness::new().doing(|| "create an epoll descriptor".to_owned())?;
        let memory = Memory::default();
        let (count, exclusive) = match pool {
            Pool::Shared(count) => (count, false),
            Pool::Exclusive(count) => (count, true),
        };
        let mut client = Self {
            readiness,
            ready: Vec::new(),
            servers: Vec::new(),
            lanes: Vec::new(),
            exclusive,
            payload: Rc::from([]),
            spin: poll.spin_for().map(clock::as_nanoseconds),
        };
        for (server, &address) in servers.iter().enumerate() {
            let first = client.lanes.len();
            for index in first..first + count {
                let stream = open(address, sockets)?;
                let connection =
                    Connection::new(stream, index as Token, &client.readiness, &memory)
                        .doing(|| format!("watch a connection to {address}"))?;
                client.lanes.push(Lane { connection, server, requests: VecDeque::new(), bytes: 0 });
            }
            client.servers.push(Server { address, lanes: (first..first + count).rev().collect() });
        }
        Ok(client)
    }

    /// The payload of a request, at least `size` bytes long.
    fn payload(&mut self, size: usize) -> Rc<[u8]> {
        if self.payload.len() < size {
            self.payload = vec![0; size.next_power_of_two()].into();
        }
        Rc::clone(&self.payload)
    }

    /// The connection that the next request to this server goes on.
    fn choose(&mut self, server: usize) -> usize {
        let lanes = &mut self.servers[server].lanes;
        if self.exclusive {
            return lanes.pop().expect("as many connections as outstanding requests");
        }
        let load = |&index: &usize| self.lanes[index].bytes;
        lanes.iter().copied().min_by_key(load).expect("there is a connection")
    }

    /// Receives what is ready on a connection, and takes note of the replies.
    fn receive(&mut self, index: usize, ended: &mut Ended) -> Result<(), Error> {
        let Lane { connection, server, requests, bytes } = &mut self.lanes[index];
        let Server { address, lanes } = &mut self.servers[*server];
        if !connection.receive().doing(|| format!("receive from {address}"))? {
            return Err(Error::Peer(format!("{address} closed a connection")));
        }
        let replies = connection.inbox.take();
        if replies.count > 0 && self.exclusive {
            lanes.push(index);
        }
        for frame in replies.iter() {
            let reply = frame.len() - PREFIX;
            match requests.pop_front() {
                Some((id, length)) if length == reply => {
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
        connection.inbox.rest();
        Ok(())
    }

    /// Does what can be done now, or once something can be done, at the latest after `wait`. Whether
    /// anything could be done.
    fn turn(&mut self, wait: Duration, ended: &mut Ended) -> Result<bool, Error> {
        let ready = self.readiness.poll(Some(wait)).doing(|| "wait for connections".to_owned())?;
        let mut turn = std::mem::take(&mut self.ready);
        turn.extend(ready);
        let worked = !turn.is_empty();
        for Ready { token, receive, send } in turn.drain(..) {
            let index = token as usize;
            if send {
                let Lane { connection, server, .. } = &mut self.lanes[index];
                let address = self.servers[*server].address;
                connection.send(&self.readiness).doing(|| format!("send to {address}"))?;
            }
            if receive {
                self.receive(index, ended)?;
            }
        }
        self.ready = turn;
        Ok(worked)
    }
}

impl Client for TcpClient {
    fn start(&mut self, id: u32, peer: usize, size: u32) -> Result<(), Error> {
        let length = size as usize;
        let payload = self.payload(length);
        let index = self.choose(peer);
        let Lane { connection, requests, bytes, .. } = &mut self.lanes[index];
        requests.push_back((id, length));
        *bytes += length;
        connection.outbox.push_copy(&size.to_be_bytes());
        if length < SHORT {
            connection.outbox.push_copy(&payload[..length]);
        } else {
            connection.outbox.push_shared(payload, length);
        }
        let address = self.servers[peer].address;
        connection.send(&self.readiness).doing(|| format!("send to {address}"))
    }

    fn poll(&mut self, wait: Duration, ended: &mut Ended) -> Result<(), Error> {
        if self.turn(Duration::ZERO, ended)? || wait.is_zero() {
            return Ok(());
        }
        let began = clock::now();
        let wait = clock::as_nanoseconds(wait);
        let spin = self.spin.unwrap_or(wait).min(wait);
        loop {
            let waited = clock::now() - began;
            if waited >= spin {
                let left = Duration::from_nanos(wait.saturating_sub(waited));
                return self.turn(left, ended).map(drop);
            }
            if self.turn(Duration::ZERO, ended)? {
                return Ok(());
            }
        }
    }
}
