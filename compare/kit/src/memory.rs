//! Memory of a server for the connections of its clients.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use apus_contenders::transport::{Client, Completions, Node, NodeOptions, PollMode, Transport};
use apus_testbed::error::Error;
use apus_testbed::machine::{anonymous_memory, raise_descriptor_limit};
use apus_testbed::process::{Control, Task};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ThrowAwayKeys;

/// The kind of task that [`memory_agent`] does.
pub const MEMORY_JOB: &str = "compare-memory";

/// Bytes of the call that each client makes.
const SIZE: u32 = 100;

/// Time in which a server comes to rest. Chosen by us: far longer than it works on a call.
const REST: Duration = Duration::from_millis(200);

/// Longest wait for a reply.
const LONGEST: Duration = Duration::from_secs(10);

/// The details of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemorySetup {
    /// Name of the transport.
    pub transport: String,
    /// Keys, if it encrypts.
    pub keys: ThrowAwayKeys,
    /// What the clients need; `None` for the server.
    pub clients: Option<Clients>,
}

/// Clients of one server.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Clients {
    /// Their number, without the one that does not count.
    pub count: usize,
    /// The server's address.
    pub server: SocketAddr,
    /// Number of the server's process.
    pub process: u32,
}

/// Does one side's work over a transport. Result of the clients: bytes of memory that the server has touched for all of them
/// together.
///
/// # Errors
///
/// A call has failed.
pub fn memory_agent(
    transport: &dyn Transport,
    task: &Task,
    control: &mut Control,
) -> Result<Value, Error> {
    let malformed = |error| Error::Peer(format!("a malformed task: {error}"));
    let setup: MemorySetup = serde_json::from_value(task.details.clone()).map_err(malformed)?;
    raise_descriptor_limit();
    match setup.clients {
        None => serve(&*transport.open(&options(&setup, true))?, control).map(|()| json!(null)),
        Some(clients) => Ok(json!(growth(transport, &setup, clients)?)),
    }
}

fn options(setup: &MemorySetup, serve: bool) -> NodeOptions {
    NodeOptions {
        at: IpAddr::V4(Ipv4Addr::LOCALHOST),
        keys: Some(setup.keys.clone()),
        ..NodeOptions::on_loopback(PollMode::Block, serve)
    }
}

fn serve(node: &dyn Node, control: &mut Control) -> Result<(), Error> {
    let stop = control.stop().clone();
    thread::scope(|scope| {
        // It cannot be woken from another thread than this one while it serves here.
        scope.spawn(|| {
            stop.wait();
            node.shutdown();
        });
        let ready = control.ready(node.address());
        let served = ready.and_then(|()| node.serve(0, &stop));
        stop.ask();
        served
    })
}

/// Returns the growth of the server's memory over the first call of each client.
fn growth(transport: &dyn Transport, setup: &MemorySetup, clients: Clients) -> Result<u64, Error> {
    let Clients { count, server, process } = clients;
    let opening = options(setup, false);
    // What a server has once, whatever the number of its clients, does not count.
    let first = transport.open(&opening)?;
    let mut first = first.connect(&[server], 1)?;
    call(&mut *first, 0)?;
    thread::sleep(REST);
    let before = anonymous_memory(Some(process))?;
    let mut crowds = Vec::new();
    if transport.connections(1) == 0 {
        // A peer is an address: each client has one of its own.
        for _ in 0..count {
            let node = transport.open(&opening)?;
            let mut client = node.connect(&[server], 1)?;
            call(&mut *client, 0)?;
            crowds.push((node, client));
        }
    } else {
        let node = transport.open(&opening)?;
        let mut client = node.connect(&vec![server; count], 1)?;
        for connection in 0..count {
            call(&mut *client, connection)?;
        }
        crowds.push((node, client));
    }
    thread::sleep(REST);
    Ok(anonymous_memory(Some(process))?.saturating_sub(before))
}

/// Calls one of the servers, and waits for the reply.
fn call(client: &mut dyn Client, server: usize) -> Result<(), Error> {
    let mut ended = Completions::default();
    client.start(0, server, SIZE)?;
    client.poll(LONGEST, &mut ended)?;
    while ended.is_empty() {
        client.poll(LONGEST, &mut ended)?;
    }
    ended.problem().map_or(Ok(()), |why| Err(Error::Peer(why)))
}
