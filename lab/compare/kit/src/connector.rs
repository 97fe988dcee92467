//! The client of a peer, before it connects to servers.

use std::net::SocketAddr;

use apus_bench::contenders::transport;

use crate::executor::Executor;
use crate::{Client, Error, Measured};

/// The client of a peer, before it connects: [`calls`](crate::calls()),
/// [`connections`](crate::connections()) and [`caller`](crate::caller()) return connectors.
pub trait Connector {
    /// Connects to the server, and measures the work.
    ///
    /// # Errors
    ///
    /// A call has failed, or its reply is wrong.
    fn measure(self: Box<Self>, client: &Client, executor: &Executor) -> Result<Measured, Error>;

    /// Connects to each of the servers, for echoes of any size.
    ///
    /// # Errors
    ///
    /// A connection fails, or the peer has no way to wait for several of them.
    fn connect(
        self: Box<Self>,
        servers: &[SocketAddr],
        executor: Executor,
    ) -> Result<Box<dyn transport::Client>, Error>;
}
