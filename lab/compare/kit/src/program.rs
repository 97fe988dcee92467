//! The program of a peer: it prints its description, or runs one side of a measurement.

use std::env;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::process::ExitCode;
use std::time::Duration;

use apus_bench::cluster;
use apus_testbed::error::Error as TestbedError;
use apus_testbed::process::{AGENT, Control, Stop, Task, agent_main};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::connector::Connector;
use crate::executor::Executor;
use crate::measured::cpu_nanos;
use crate::memory::{MEMORY_JOB, memory_agent};
use crate::node::PeerTransport;
use crate::{Description, Error, ThrowAwayKeys, Wait, Work};

/// The job of the programs.
pub const JOB: &str = "compare";

/// A peer.
pub trait Peer {
    /// Returns its description.
    fn describe() -> Description;

    /// Serves until it must stop: answers each request with [`answer`](crate::answer).
    ///
    /// # Errors
    ///
    /// The server cannot start, or breaks.
    fn serve(server: &mut Server<'_>) -> Result<(), Error>;

    /// Returns the connector to servers: [`calls`](crate::calls()),
    /// [`connections`](crate::connections()) or [`caller`](crate::caller()).
    ///
    /// # Errors
    ///
    /// The settings are invalid.
    fn client(client: &Client) -> Result<Box<dyn Connector>, Error>;
}

/// The details of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Setup {
    /// How the process waits.
    pub wait: Wait,
    /// Keys, if it encrypts.
    pub keys: ThrowAwayKeys,
    /// Its part.
    pub side: Side,
}

/// A side of a measurement.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Serves. Result: nanoseconds of processor time since it was ready.
    Server,
    /// Calls. Result: a [`Measured`](crate::Measured).
    Client {
        /// The server's address.
        server: SocketAddr,
        /// The work.
        work: Work,
        /// Length of the counting window.
        length: Duration,
    },
}

/// A server, as presented to the peer's code.
pub struct Server<'a> {
    /// How it waits.
    pub wait: Wait,
    /// Its keys, if it encrypts.
    pub keys: &'a ThrowAwayKeys,
    /// Listening address; port 0 lets the system choose a port.
    pub bind: SocketAddr,
    stop: Stop,
    report: &'a mut dyn FnMut(SocketAddr) -> Result<(), Error>,
}

impl<'a> Server<'a> {
    /// When the server is ready, it calls `report` with its address.
    pub(crate) fn new(
        wait: Wait,
        keys: &'a ThrowAwayKeys,
        bind: SocketAddr,
        stop: Stop,
        report: &'a mut dyn FnMut(SocketAddr) -> Result<(), Error>,
    ) -> Self {
        Self { wait, keys, bind, stop, report }
    }

    /// Reports that clients may connect to `address`.
    ///
    /// # Errors
    ///
    /// The measurement has ended.
    pub fn ready(&mut self, address: SocketAddr) -> Result<(), Error> {
        (self.report)(address)
    }

    /// Returns the stop request. A server that sleeps registers a function that wakes it.
    #[must_use]
    pub const fn stop(&self) -> &Stop {
        &self.stop
    }
}

/// A client, as presented to the peer's code.
#[derive(Clone, Debug)]
pub struct Client {
    /// How it waits.
    pub wait: Wait,
    /// Its keys, if it encrypts.
    pub keys: ThrowAwayKeys,
    /// Local address with port 0 that can reach the servers.
    pub bind: SocketAddr,
    /// The server's address.
    pub(crate) server: SocketAddr,
    /// The work.
    pub work: Work,
    /// Length of the counting window.
    pub(crate) length: Duration,
}

impl Client {
    /// Returns a client whose calls are counted elsewhere.
    pub(crate) const fn new(
        wait: Wait,
        keys: ThrowAwayKeys,
        bind: SocketAddr,
        server: SocketAddr,
        work: Work,
    ) -> Self {
        Self { wait, keys, bind, server, work, length: Duration::ZERO }
    }
}

/// Where both sides of a measurement are.
const LOOPBACK: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

/// Is the main function of a peer's program.
#[must_use]
pub fn run<P: Peer + 'static>() -> ExitCode {
    match env::args().nth(1).as_deref() {
        Some(AGENT) => agent_main(agent::<P>),
        Some("describe") => {
            println!("{}", json!(P::describe()));
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("This program is one side of a comparison. `lab/compare/run` starts it.");
            ExitCode::from(2)
        }
    }
}

/// Does the work of a task.
fn agent<P: Peer + 'static>(task: &Task, control: &mut Control) -> Result<Value, TestbedError> {
    match &task.job[..] {
        cluster::JOB => cluster::external_agent(&PeerTransport::<P>::NEW, task, control),
        MEMORY_JOB => memory_agent(&PeerTransport::<P>::NEW, task, control),
        _ => side::<P>(task, control).map_err(|error| TestbedError::Peer(error.to_string())),
    }
}

/// Is a server or a client.
fn side<P: Peer>(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let Setup { wait, keys, side } = serde_json::from_value(task.details.clone())?;
    match side {
        Side::Server => {
            let mut cpu = 0;
            let stop = control.stop().clone();
            let mut report = |address| {
                cpu = cpu_nanos();
                Ok(control.ready(address)?)
            };
            P::serve(&mut Server::new(wait, &keys, LOOPBACK, stop, &mut report))?;
            Ok(json!(cpu_nanos() - cpu))
        }
        Side::Client { server, work, length } => {
            let client = Client { length, ..Client::new(wait, keys, LOOPBACK, server, work) };
            let executor = Executor::new()?;
            let connector = {
                let _inside = executor.enter();
                P::client(&client)?
            };
            Ok(json!(connector.measure(&client, &executor)?))
        }
    }
}
