//! How does TCP carry a load?
//!
//! Three ways to use it, each as a careful user would:
//!
//! - `tcp`: one connection between client and server, as most RPC layers do it. Messages follow each
//!   other, so a short one waits for the long ones before it.
//! - `tcp-pool=N`: N connections to each server; a request goes to the one with the fewest bytes under
//!   way.
//! - `tcp-per-request`: a pool in which every outstanding request has a connection of its own, so
//!   that none waits for another one; the connections are there before the load begins, and the one
//!   that was used last is used first.
//!
//! With `:NAME` behind it another congestion control than `cubic` is used. Both sides never wait inside a
//! call: epoll says which connections can go on, and each of them in turn receives and sends at most
//! [`connection::TURN`] bytes, so that a long message does not keep the thread from the others. Messages
//! that are ready leave together in one `sendmsg`, but a reply that took work leaves as soon as it is ready; payload
//! is not copied in user space, but for short messages.

mod client;
mod connection;
mod node;
mod outbox;
mod readiness;
mod server;
#[cfg(test)]
mod tests;

pub use self::server::serve;

use std::fmt;
use std::str::FromStr;

use super::{Node, Opening, Transport};
use crate::baseline::tcp::socket::{Settings, offered_controls};
use apus_testbed::error::{Error, require};

/// Length-prefixed messages over TCP, for any number of requests at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// How many connections there are.
    pub connections: Connections,
    /// The congestion control; `None` for `cubic`, or `reno` where that may not be chosen.
    pub congestion: Option<String>,
    /// Bytes of the send buffer; `None` lets the system tune it.
    pub send_buffer: Option<usize>,
}

/// Connections to each server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// All requests on one.
    One,
    /// So many.
    Pool(usize),
    /// Each outstanding request on its own.
    PerRequest,
}

/// Connections of a pool, if nobody says how many. Ours: what HTTP clients and RPC layers open by default
/// is 2 to 8.
const POOL: usize = 4;

/// Most connections of a pool.
const LARGEST_POOL: usize = 1000;

impl Tcp {
    /// With a congestion control that does not pace, and buffers that the system tunes.
    #[must_use]
    pub const fn new(connections: Connections) -> Self {
        Self { connections, congestion: None, send_buffer: None }
    }

    /// Whether the kernel offers the congestion control.
    pub(super) fn check(&self) -> Result<(), Error> {
        let Some(wanted) = &self.congestion else { return Ok(()) };
        let offered = offered_controls();
        let problem = format!(
            "this kernel does not offer the congestion control `{wanted}`; it has {}",
            offered.join(", ")
        );
        require(offered.contains(wanted), "transports", &problem)
    }

    fn sockets(&self) -> Settings {
        Settings { congestion: self.congestion.clone(), send_buffer: self.send_buffer }
    }
}

impl fmt::Display for Tcp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.connections {
            Connections::One => formatter.write_str("tcp")?,
            Connections::Pool(POOL) => formatter.write_str("tcp-pool")?,
            Connections::Pool(count) => write!(formatter, "tcp-pool={count}")?,
            Connections::PerRequest => formatter.write_str("tcp-per-request")?,
        }
        self.congestion.as_ref().map_or(Ok(()), |control| write!(formatter, ":{control}"))
    }
}

/// It is no way to use TCP.
#[derive(Debug)]
pub struct NotTcp;

impl FromStr for Tcp {
    type Err = NotTcp;

    fn from_str(name: &str) -> Result<Self, NotTcp> {
        let (kind, congestion) = match name.split_once(':') {
            Some((kind, control)) => (kind, Some(control.to_owned())),
            None => (name, None),
        };
        let connections = match kind.split_once('=') {
            Some(("tcp-pool", count)) => {
                let count = count.parse().map_err(|_| NotTcp)?;
                if !(1..=LARGEST_POOL).contains(&count) {
                    return Err(NotTcp);
                }
                Connections::Pool(count)
            }
            Some(_) => return Err(NotTcp),
            None if kind == "tcp" => Connections::One,
            None if kind == "tcp-pool" => Connections::Pool(POOL),
            None if kind == "tcp-per-request" => Connections::PerRequest,
            None => return Err(NotTcp),
        };
        Ok(Self { congestion, ..Self::new(connections) })
    }
}

impl Transport for Tcp {
    fn name(&self) -> String {
        self.to_string()
    }

    fn settings(&self) -> String {
        let connections = match self.connections {
            Connections::One => "one connection to each server".to_owned(),
            Connections::Pool(count) => {
                format!("{count} connections to each server, the least loaded one is used")
            }
            Connections::PerRequest => {
                "a connection for every outstanding request, opened beforehand".to_owned()
            }
        };
        let turn = connection::TURN >> 10;
        format!(
            "{connections}, {}, all else as the system has it; non-blocking with epoll, one thread sends \
             requests, messages that are ready leave in one sendmsg, a reply that took work at once, at most {turn} \
             KiB per call and connection",
            self.sockets()
        )
    }

    fn connections(&self, outstanding: usize) -> usize {
        match self.connections {
            Connections::One => 1,
            Connections::Pool(count) => count,
            Connections::PerRequest => outstanding,
        }
    }

    fn open(&self, opening: &Opening) -> Result<Box<dyn Node>, Error> {
        Ok(Box::new(node::TcpNode::open(self, opening)?))
    }
}
