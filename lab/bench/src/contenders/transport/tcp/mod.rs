//! Load over TCP.
//!
//! Three configurations, each as a careful user would choose it:
//!
//! - `tcp`: one connection between client and server, as in most RPC layers. Messages are sent in
//!   sequence, so a short message waits for the long messages before it.
//! - `tcp-pool=N`: N connections to each server; a request uses the one with the fewest outstanding
//!   bytes.
//! - `tcp-per-request`: a pool with a separate connection for every outstanding request, so that no
//!   request waits for another. The connections are established before the load starts, and the
//!   most recently used one is reused first.
//!
//! A suffix `:NAME` selects a congestion control other than `cubic`. No side blocks in a call:
//! epoll reports ready connections, and each of them in turn receives and sends at most
//! [`connection::QUOTA`] bytes, so that a long message does not delay the others. Ready messages
//! leave together in one `sendmsg`, but a reply that took work leaves immediately. Only short
//! messages are copied in user space.

mod client;
mod connection;
mod node;
mod outbox;
mod readiness;
mod server;
mod spec;
#[cfg(test)]
mod tests;

pub use self::server::serve;
pub use self::spec::{Connections, Tcp};

use super::interface::{Node, NodeOptions, Transport};
use apus_testbed::error::Error;

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
        let quota = connection::QUOTA >> 10;
        format!(
            "{connections}, {}, all else as the system has it; non-blocking with epoll, one thread sends \
             requests, messages that are ready leave in one sendmsg, a reply that took work at once, at most {quota} \
             KiB per call and connection",
            self.sockets()
        )
    }

    fn caveat(&self) -> Option<String> {
        self.sockets().caveat()
    }

    fn connections(&self, outstanding: usize) -> usize {
        match self.connections {
            Connections::One => 1,
            Connections::Pool(count) => count,
            Connections::PerRequest => outstanding,
        }
    }

    fn is_bounded_by_connections(&self) -> bool {
        self.connections == Connections::PerRequest
    }

    fn open(&self, opening: &NodeOptions) -> Result<Box<dyn Node>, Error> {
        Ok(Box::new(node::TcpNode::open(self, opening)?))
    }
}
