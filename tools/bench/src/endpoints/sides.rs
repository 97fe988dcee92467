//! The two sides of the endpoints experiment: one server, and a process with many clients.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use apus::{Bytes, Endpoint, PollMode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::threads::background_threads;
use apus_contenders::apus::{Path, builder, open, serve_at, server};
use apus_report::stats::{Latencies, Percentiles};
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::machine::{anonymous_memory, raise_descriptor_limit};
use apus_testbed::process::{Control, Task};

/// The details of an agent's task.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Details {
    pub(super) count: usize,
    pub(super) size: usize,
    pub(super) pause: Duration,
    pub(super) poll: PollMode,
    /// For the clients.
    pub(super) server: Option<SocketAddr>,
}

/// The observations of the clients.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Clients {
    /// Nanoseconds to open an endpoint, to its first reply, and to the reply after the pause.
    pub(super) create: Percentiles,
    pub(super) first_call: Percentiles,
    pub(super) later_call: Percentiles,
    /// Bytes that the endpoints have touched: before any call, and after one call of each.
    pub(super) created: u64,
    pub(super) at_rest: u64,
    pub(super) background_threads: u64,
    /// Nanoseconds of the pause, and of processor time in it.
    pub(super) pause: u64,
    pub(super) pause_cpu: u64,
}

/// The observations of the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Served {
    /// Bytes that it has touched for all clients.
    pub(super) bytes: u64,
}

/// Does one side's work.
pub(super) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let details: Details = serde_json::from_value(task.details.clone())
        .map_err(|error| Error::Peer(format!("a malformed task: {error}")))?;
    match details.server {
        None => Ok(json!(serve(&details, control)?)),
        Some(server) => Ok(json!(drive(&details, server)?)),
    }
}

/// Echoes until the side is asked to stop.
fn serve(details: &Details, control: &mut Control) -> Result<Served, Error> {
    let endpoint = serve_at(builder(Path::Udp).poll_mode(details.poll), control)?;
    let before = anonymous_memory(None)?;
    server::echo(&endpoint)?;
    Ok(Served { bytes: anonymous_memory(None)?.saturating_sub(before) })
}

/// Opens the clients and calls with each, before a pause and after it.
fn drive(details: &Details, server: SocketAddr) -> Result<Clients, Error> {
    raise_descriptor_limit();
    let request = Bytes::from(vec![0; details.size]);
    let create = || open(builder(Path::Udp).poll_mode(details.poll).serve(false));
    let call = |endpoint: &Endpoint| {
        let reply = endpoint.call(server, request.clone());
        reply.map_err(|error| Error::endpoint(format!("call {server}"), error)).map(drop)
    };
    let uncounted = create()?;
    call(&uncounted)?;

    let mut endpoints = Vec::with_capacity(details.count);
    let (mut creates, mut firsts, mut laters) =
        (Latencies::new(), Latencies::new(), Latencies::new());
    let before = anonymous_memory(None)?;
    for _ in 0..details.count {
        endpoints.push(timed(&mut creates, create)?);
    }
    let created = anonymous_memory(None)?;
    for endpoint in &endpoints {
        timed(&mut firsts, || call(endpoint))?;
    }
    let at_rest = anonymous_memory(None)?;
    let background_threads = background_threads()?;
    let began = (clock::now(), clock::cpu_time());
    thread::sleep(details.pause);
    let ended = (clock::now(), clock::cpu_time());
    for endpoint in &endpoints {
        timed(&mut laters, || call(endpoint))?;
    }
    Ok(Clients {
        create: creates.percentiles(),
        first_call: firsts.percentiles(),
        later_call: laters.percentiles(),
        created: created.saturating_sub(before),
        at_rest: at_rest.saturating_sub(before),
        background_threads,
        pause: ended.0 - began.0,
        pause_cpu: ended.1 - began.1,
    })
}

fn timed<T>(times: &mut Latencies, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let began = clock::now();
    let result = work();
    times.record(clock::now() - began);
    result
}
