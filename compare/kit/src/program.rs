//! The program of a peer: it describes itself, or is one side of a measurement.

use std::env;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use apus_testbed::error::Error as TestbedError;
use apus_testbed::process::{AGENT, Control, Stop, Task, agent_main};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::measured::cpu_nanos;
use crate::{Description, Error, Measured, ThrowAwayKeys, Wait, Work};

/// The kind of task that the programs do.
pub const JOB: &str = "compare";

/// A peer.
pub trait Peer {
    /// Returns what it says about itself.
    fn describe() -> Description;

    /// Serves until it must stop: answers each request as [`answer`](crate::answer) says.
    ///
    /// # Errors
    ///
    /// It cannot begin, or breaks.
    fn serve(server: &mut Server<'_>) -> Result<(), Error>;

    /// Connects to a server, and measures.
    ///
    /// # Errors
    ///
    /// A call has failed, or its reply is wrong.
    fn measure(client: &Client) -> Result<Measured, Error>;
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
    /// Calls. Result: a [`Measured`].
    Client {
        /// The server's address.
        server: SocketAddr,
        /// The work.
        work: Work,
        /// Time in which calls count.
        length: Duration,
    },
}

/// A server's process, seen by the peer's code.
pub struct Server<'a> {
    /// How it waits.
    pub wait: Wait,
    /// Its keys, if it encrypts.
    pub keys: &'a ThrowAwayKeys,
    control: &'a mut Control,
    /// Processor time when it was ready.
    cpu: u64,
}

impl Server<'_> {
    /// Reports that clients may connect to `address`.
    ///
    /// # Errors
    ///
    /// The measurement has ended.
    pub fn ready(&mut self, address: SocketAddr) -> Result<(), Error> {
        self.cpu = cpu_nanos();
        Ok(self.control.ready(address)?)
    }

    /// Returns the request to stop. A server that sleeps registers what wakes it.
    #[must_use]
    pub const fn stop(&self) -> &Stop {
        self.control.stop()
    }
}

/// A client's process, seen by the peer's code.
#[derive(Clone, Debug)]
pub struct Client {
    /// How it waits.
    pub wait: Wait,
    /// Its keys, if it encrypts.
    pub keys: ThrowAwayKeys,
    /// The server's address.
    pub server: SocketAddr,
    /// The work.
    pub work: Work,
    /// Time in which calls count.
    pub(crate) length: Duration,
}

/// Is the main function of a peer's program.
#[must_use]
pub fn run<P: Peer>() -> ExitCode {
    match env::args().nth(1).as_deref() {
        Some(AGENT) => agent_main(agent::<P>),
        Some("describe") => {
            println!("{}", json!(P::describe()));
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("This program is one side of a comparison. `compare/run` starts it.");
            ExitCode::from(2)
        }
    }
}

/// Is a server or a client.
fn agent<P: Peer>(task: &Task, control: &mut Control) -> Result<Value, TestbedError> {
    let failed = |error: Error| TestbedError::Peer(error.to_string());
    let setup = serde_json::from_value(task.details.clone()).map_err(|error| failed(error.into()));
    let Setup { wait, keys, side } = setup?;
    match side {
        Side::Server => {
            let mut server = Server { wait, keys: &keys, control, cpu: 0 };
            P::serve(&mut server).map_err(failed)?;
            Ok(json!(cpu_nanos() - server.cpu))
        }
        Side::Client { server, work, length } => {
            let client = Client { wait, keys, server, work, length };
            P::measure(&client).map(|measured| json!(measured)).map_err(failed)
        }
    }
}
