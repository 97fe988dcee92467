//! Configurations of TCP, and their names.

use std::fmt;
use std::str::FromStr;

use crate::contenders::baseline::tcp::socket::{Settings, offered_controls};
use apus_testbed::error::{Error, require};

/// Length-prefixed messages over TCP, for any number of concurrent requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Number of connections.
    pub connections: Connections,
    /// Congestion control; `None` for `cubic`, or `reno` where `cubic` is not allowed.
    pub congestion: Option<String>,
    /// Send buffer in bytes; `None` leaves the tuning to the system.
    pub send_buffer: Option<usize>,
}

/// Connections to each server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// One connection for all requests.
    One,
    /// A pool of this size.
    Pool(usize),
    /// One connection for each outstanding request.
    PerRequest,
}

/// Default size of a pool. Chosen by us: HTTP clients and RPC layers open 2 to 8 connections by
/// default.
const POOL: usize = 4;

/// Largest size of a pool.
const LARGEST_POOL: usize = 1000;

impl Tcp {
    /// Returns a configuration with a congestion control without pacing, and system-tuned buffers.
    #[must_use]
    pub const fn new(connections: Connections) -> Self {
        Self { connections, congestion: None, send_buffer: None }
    }

    /// Checks that the kernel offers the congestion control.
    pub(in crate::contenders::transport) fn check(&self) -> Result<(), Error> {
        let Some(wanted) = &self.congestion else { return Ok(()) };
        let offered = offered_controls();
        let problem = format!(
            "this kernel does not offer the congestion control `{wanted}`; it has {}",
            offered.join(", ")
        );
        require(offered.contains(wanted), "transports", &problem)
    }

    /// Returns the socket options.
    pub(super) fn sockets(&self) -> Settings {
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

/// The text does not name a configuration of TCP.
#[derive(Debug)]
pub struct TcpNameError;

impl FromStr for Tcp {
    type Err = TcpNameError;

    fn from_str(name: &str) -> Result<Self, TcpNameError> {
        let (kind, congestion) = match name.split_once(':') {
            Some((kind, control)) => (kind, Some(control.to_owned())),
            None => (name, None),
        };
        let connections = match kind.split_once('=') {
            Some(("tcp-pool", count)) => {
                let count = count.parse().map_err(|_| TcpNameError)?;
                if !(1..=LARGEST_POOL).contains(&count) {
                    return Err(TcpNameError);
                }
                Connections::Pool(count)
            }
            Some(_) => return Err(TcpNameError),
            None if kind == "tcp" => Connections::One,
            None if kind == "tcp-pool" => Connections::Pool(POOL),
            None if kind == "tcp-per-request" => Connections::PerRequest,
            None => return Err(TcpNameError),
        };
        Ok(Self { congestion, ..Self::new(connections) })
    }
}
