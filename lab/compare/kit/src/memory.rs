//! Memory of a server for the connections of its clients.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use apus_bench::contenders::transport::{Client, Completions, Node, NodeOptions, PollMode, Transport};
use apus_testbed::error::Error;
use apus_testbed::machine::raise_descriptor_limit;
use apus_testbed::process::{Begin, Control, Task};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ThrowAwayKeys;

/// The job of [`memory_agent`].
pub const MEMORY_JOB: &str = "compare-memory";

/// Size of each client's call in bytes.
const SIZE: u32 = 100;

/// Maximum wait for a reply.
const LONGEST: Duration = Duration::from_secs(10);

/// The details of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemorySetup {
    /// Name of the transport.
    pub transport: String,
    /// Keys, if it encrypts.
    pub keys: ThrowAwayKeys,
    /// Settings of the clients; `None` for the server.
    pub clients: Option<Clients>,
}

/// Clients of one server.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Clients {
    /// Their number.
    pub count: usize,
    /// The server's address.
    pub server: SocketAddr,
}

/// Runs one side over a transport until it must stop.
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
        None => serve(&*transport.open(&options(&setup, true))?, control)?,
        Some(clients) => call_twice(transport, &setup, clients, control)?,
    }
    Ok(json!(null))
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
        // While it serves in this thread, it cannot be woken from another thread.
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

/// Connects each client and makes one call with it. Then reports ready, as a server would. After
/// the start order, each client calls again, which shows that the connections existed all the time.
fn call_twice(
    transport: &dyn Transport,
    setup: &MemorySetup,
    clients: Clients,
    control: &mut Control,
) -> Result<(), Error> {
    let Clients { count, server } = clients;
    let opening = options(setup, false);
    // If the peer is identified by an address, each client needs a separate address.
    let (nodes, of_each) = if transport.connections(1) == 0 { (count, 1) } else { (1, count) };
    let servers = vec![server; of_each];
    let mut all = Vec::new();
    for _ in 0..nodes {
        let node = transport.open(&opening)?;
        let mut client = node.connect(&servers, 1)?;
        (0..of_each).try_for_each(|connection| call(&mut *client, connection))?;
        all.push((node, client));
    }
    control.ready(server)?;
    let Begin { details: (), .. } = control.begin()?;
    for (_, client) in &mut all {
        (0..of_each).try_for_each(|connection| call(&mut **client, connection))?;
    }
    Ok(())
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
