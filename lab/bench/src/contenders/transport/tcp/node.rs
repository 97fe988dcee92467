//! TCP on one host.

use std::net::{SocketAddr, TcpListener};

use apus::PollMode;

use super::client::{Pool, TcpClient};
use super::server;
use super::spec::{Connections, Tcp};
use crate::contenders::baseline::tcp::socket::{Settings, listen_at, listen_too};
use crate::contenders::transport::interface::{Client, Node, NodeOptions};
use crate::contenders::transport::work::Work;
use apus_measure::process::wake;
use apus_testbed::error::Error;
use apus_testbed::process::Stop;

/// One listener for each receiver, all at the same address: the system distributes connections over
/// them.
pub(super) struct TcpNode {
    connections: Connections,
    sockets: Settings,
    address: SocketAddr,
    listeners: Vec<TcpListener>,
    poll: PollMode,
    work: Work,
    /// Whether its clients compare contents of replies.
    compare: bool,
}

impl TcpNode {
    pub(super) fn open(tcp: &Tcp, opening: &NodeOptions) -> Result<Self, Error> {
        let sockets = tcp.sockets();
        let (first, address) = listen_at(opening.at, &sockets)?;
        let mut listeners = vec![first];
        for _ in 1..opening.receivers {
            listeners.push(listen_too(address, &sockets)?);
        }
        let NodeOptions { poll, work, compare, .. } = *opening;
        Ok(Self { connections: tcp.connections, sockets, address, listeners, poll, work, compare })
    }
}

impl Node for TcpNode {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn serve(&self, receiver: usize, stop: &Stop) -> Result<(), Error> {
        server::serve(&self.listeners[receiver], self.poll, self.work, stop)
    }

    fn shutdown(&self) {
        self.listeners.iter().for_each(wake);
    }

    fn connect(&self, peers: &[SocketAddr], outstanding: usize) -> Result<Box<dyn Client>, Error> {
        let pool = match self.connections {
            Connections::One => Pool::Shared(1),
            Connections::Pool(count) => Pool::Shared(count),
            Connections::PerRequest => Pool::Exclusive(outstanding),
        };
        Ok(Box::new(TcpClient::connect(peers, pool, &self.sockets, self.poll, self.compare)?))
    }
}
