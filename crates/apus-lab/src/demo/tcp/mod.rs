//! How does TCP carry the demo's load?
//!
//! Two ways to use it, both as a careful user would:
//!
//! - `tcp`: one connection between client and server, as most RPC layers do it. Messages follow each
//!   other, so a short one waits for the long ones before it.
//! - `tcp-per-request`: a pool in which every outstanding request has a connection of its own, so
//!   that none waits for another one; the connections are there before the load begins, and the one
//!   that was used last is used first.
//!
//! Both sides are one thread that never waits inside a call: epoll says which connections can go on,
//! and each of them in turn receives and sends at most [`connection::TURN`] bytes, so that a long
//! message does not keep the thread from the others. Messages that are ready leave together in one
//! `sendmsg`; payload is not copied in user space, but for short messages.

mod client;
mod connection;
mod outbox;
mod readiness;
mod server;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;

use apus::Poll;

use super::contender::{Client, Contender};
use crate::baseline::tcp::socket;
use crate::error::Error;
use crate::process::Control;

/// Length-prefixed messages over TCP, for any number of requests at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tcp {
    /// All requests on one connection.
    OneConnection,
    /// Each outstanding request on its own connection.
    PerRequest,
}

impl Contender for Tcp {
    fn name(&self) -> &'static str {
        match self {
            Self::OneConnection => "tcp",
            Self::PerRequest => "tcp-per-request",
        }
    }

    fn settings(&self) -> String {
        let connections = match self {
            Self::OneConnection => "one connection",
            Self::PerRequest => "a connection for every outstanding request, opened beforehand",
        };
        let turn = connection::TURN >> 10;
        format!(
            "{connections}, {}; non-blocking with epoll, one thread on each side, messages \
             that are ready leave in one sendmsg, at most {turn} KiB per call and connection",
            socket::settings()
        )
    }

    fn serve(&self, poll: Poll, control: &mut Control) -> Result<(), Error> {
        server::serve(poll, control)
    }

    fn connect(&self, server: SocketAddr, outstanding: usize) -> Result<Box<dyn Client>, Error> {
        let connections = match self {
            Self::OneConnection => 1,
            Self::PerRequest => outstanding,
        };
        Ok(Box::new(client::TcpClient::connect(server, connections)?))
    }
}
