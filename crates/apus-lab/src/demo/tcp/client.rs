//! How does the client use its connections?

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use super::connection::Connection;
use super::readiness::{Readiness, Ready, Token};
use crate::baseline::tcp::frames::PREFIX;
use crate::baseline::tcp::memory::Memory;
use crate::baseline::tcp::socket::open;
use crate::demo::contender::Client;
use crate::error::{Doing, Error};

/// A client with one or more connections to a server.
pub(super) struct TcpClient {
    server: SocketAddr,
    readiness: Readiness,
    ready: Vec<Ready>,
    lanes: Vec<Lane>,
    /// Connections without a request, the one that was used last at the end. Unused if there is only
    /// one connection for all.
    idle: Vec<usize>,
    /// The payload of every request.
    payload: Rc<[u8]>,
}

/// A connection and the requests on it, in the order in which the replies come.
struct Lane {
    connection: Connection,
    requests: VecDeque<(u32, usize)>,
}

/// Requests that are shorter than this are copied behind their prefix, so that several of them leave
/// as one piece. Ours, not tuned: a page, whose copy costs less than the system call it may spare.
const SHORT: usize = 4 << 10;

impl TcpClient {
    pub(super) fn connect(server: SocketAddr, connections: usize) -> Result<Self, Error> {
        let readiness = Readiness::new().doing(|| "create an epoll descriptor".to_owned())?;
        let memory = Memory::default();
        let lane = |index: usize| {
            let connection = Connection::new(open(server)?, index as Token, &readiness, &memory)
                .doing(|| format!("watch a connection to {server}"))?;
            Ok(Lane { connection, requests: VecDeque::new() })
        };
        let lanes = (0..connections).map(lane).collect::<Result<Vec<_>, Error>>()?;
        let idle = (0..connections).rev().collect();
        let payload = Rc::from([]);
        Ok(Self { server, readiness, ready: Vec::new(), lanes, idle, payload })
    }

    /// The payload of a request, at least `size` bytes long.
    fn payload(&mut self, size: usize) -> &Rc<[u8]> {
        if self.payload.len() < size {
            self.payload = vec![0; size.next_power_of_two()].into();
        }
        &self.payload
    }
}

impl Client for TcpClient {
    fn start(&mut self, id: u32, size: u32) -> Result<(), Error> {
        let length = size as usize;
        let payload = Rc::clone(self.payload(length));
        let index = match self.lanes.len() {
            1 => 0,
            _ => self.idle.pop().expect("as many connections as outstanding requests"),
        };
        let Lane { connection, requests } = &mut self.lanes[index];
        requests.push_back((id, length));
        connection.outbox.push_copy(&size.to_be_bytes());
        if length < SHORT {
            connection.outbox.push_copy(&payload[..length]);
        } else {
            connection.outbox.push_shared(payload, length);
        }
        connection.send(&self.readiness).doing(|| format!("send to {}", self.server))
    }

    fn poll(&mut self, done: &mut Vec<u32>) -> Result<(), Error> {
        let server = self.server;
        let many = self.lanes.len() > 1;
        let ready = self.readiness.poll(false).doing(|| format!("wait for {server}"))?;
        self.ready.extend(ready);
        for ready in self.ready.drain(..) {
            let index = ready.token as usize;
            let Lane { connection, requests } = &mut self.lanes[index];
            if ready.send {
                connection.send(&self.readiness).doing(|| format!("send to {server}"))?;
            }
            if !ready.receive {
                continue;
            }
            if !connection.receive().doing(|| format!("receive from {server}"))? {
                return Err(Error::Peer(format!("{server} closed a connection")));
            }
            let replies = connection.inbox.take();
            if replies.count > 0 && many {
                self.idle.push(index);
            }
            for frame in replies.iter() {
                let reply = frame.len() - PREFIX;
                match requests.pop_front() {
                    Some((id, length)) if length == reply => done.push(id),
                    request => {
                        let request = request.map_or(0, |(_, length)| length);
                        let what = format!("{server} answered {request} bytes with {reply}");
                        return Err(Error::Peer(what));
                    }
                }
            }
            connection.inbox.rest();
        }
        Ok(())
    }
}
