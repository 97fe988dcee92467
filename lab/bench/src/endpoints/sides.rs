//! The two sides of the endpoints experiment: one server, and a process with many clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use apus::{Bytes, Endpoint, PollMode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::callers::Callers;
use super::threads::background_threads;
use apus_measure::exchange::{Path, builder, open, serve_at, server};
use apus_report::stats::{Latencies, Percentiles};
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::machine::{anonymous_memory, raise_descriptor_limit};
use apus_testbed::process::{Control, Task};

/// The job of [`agent`].
pub(crate) const JOB: &str = "endpoints";

/// The details of an agent's task.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Details {
    pub(super) count: usize,
    /// Number of shards of each client endpoint.
    pub(super) shards: usize,
    pub(super) size: usize,
    pub(super) pause: Duration,
    pub(super) poll: PollMode,
    /// Address of the server; only for the clients.
    pub(super) server: Option<SocketAddr>,
}

/// The observations of the clients.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Clients {
    /// Nanoseconds to open an endpoint, to its first reply, and to the reply after the pause.
    pub(super) create: Percentiles,
    pub(super) first_call: Percentiles,
    pub(super) later_call: Percentiles,
    /// Bytes touched by the endpoints before any call; `at_rest`: after one call of each.
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

/// Runs one side.
pub(super) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let details: Details = serde_json::from_value(task.details.clone())
        .map_err(|error| Error::Peer(format!("a malformed task: {error}")))?;
    match details.server {
        None => Ok(json!(serve(&details, control)?)),
        Some(server) => Ok(json!(drive(&details, server)?)),
    }
}

/// Echoes until the side must stop.
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
    let call = |endpoint: &Endpoint| {
        let reply = endpoint.call(server, request.clone());
        reply.map_err(|error| Error::endpoint(format!("call {server}"), error)).map(drop)
    };
    let calls = |endpoints: &[Endpoint]| {
        let mut times = Latencies::new();
        endpoints.iter().try_for_each(|endpoint| timed(&mut times, || call(endpoint)))?;
        Ok(times)
    };
    thread::scope(|scope| {
        let callers = Callers::start(scope, details.shards, &calls);
        let uncounted = Arc::new(vec![create(details)?]);
        callers.call(&uncounted)?;

        let mut endpoints = Vec::with_capacity(details.count);
        let mut creates = Latencies::new();
        let before = anonymous_memory(None)?;
        for _ in 0..details.count {
            endpoints.push(timed(&mut creates, || create(details))?);
        }
        let endpoints = Arc::new(endpoints);
        let created = anonymous_memory(None)?;
        let first_call = callers.call(&endpoints)?.percentiles();
        let at_rest = anonymous_memory(None)?;
        let background_threads = background_threads()?;
        let began = (clock::now(), clock::cpu_time());
        thread::sleep(details.pause);
        let ended = (clock::now(), clock::cpu_time());
        Ok(Clients {
            create: creates.percentiles(),
            first_call,
            later_call: callers.call(&endpoints)?.percentiles(),
            created: created.saturating_sub(before),
            at_rest: at_rest.saturating_sub(before),
            background_threads,
            pause: ended.0 - began.0,
            pause_cpu: ended.1 - began.1,
        })
    })
}

/// Opens a client.
fn create(details: &Details) -> Result<Endpoint, Error> {
    let settings = builder(Path::Udp).poll_mode(details.poll);
    if details.shards == 1 {
        return open(settings.serve(false));
    }
    let client = settings.shards(details.shards).client();
    client.map_err(|error| Error::endpoint("open a client".to_owned(), error))
}

fn timed<T>(times: &mut Latencies, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let began = clock::now();
    let result = work();
    times.record(clock::now() - began);
    result
}
