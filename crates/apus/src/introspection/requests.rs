//! The table of requests that a live process responds to. A new request is a new row in
//! [`REQUESTS`].

use super::registry::shards;
use super::response::{Response, json};
use super::{application, topic, trace_status};
use crate::engine::shard::Shard;
use crate::snapshot::{EndpointSnapshot, Snapshot};
use apus_proto::{MessageProgress, Role, RpcInfo, RpcState};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A request that the service knows.
struct Request {
    name: &'static str,
    /// Describes the response, in the text of `help`.
    about: &'static str,
    respond: fn(&[Arc<Shard>]) -> Response,
}

/// All requests.
const REQUESTS: &[Request] = &[
    Request { name: "help", about: "all requests, as text", respond: |_| Ok(help().into_bytes()) },
    Request { name: "metrics", about: "a snapshot of all counters, as JSON", respond: metrics },
    Request { name: "rpcs", about: "the live RPCs, as JSON", respond: rpcs },
    Request {
        name: "trace dump",
        about: "the time trace, as the bytes of a file",
        respond: |_| trace_status::dump(),
    },
    Request {
        name: "trace status",
        about: "what is recorded, and whether it is frozen, as JSON",
        respond: |_| trace_status::status(),
    },
    Request {
        name: "trace freeze",
        about: "stop recording and keep all records; then as `trace status`",
        respond: |_| trace_status::freeze(),
    },
    Request {
        name: "trace resume",
        about: "resume recording; then as `trace status`",
        respond: |_| trace_status::resume(),
    },
];

/// Responds to a request.
///
/// # Errors
///
/// The request is unknown or cannot be carried out.
pub(super) fn respond(name: &str) -> Response {
    let request = REQUESTS.iter().find(|request| request.name == name);
    match request {
        Some(request) => (request.respond)(&shards()),
        None => topic::respond(name)
            .unwrap_or_else(|| Err(format!("there is no request `{name}`; {}", help()))),
    }
}

fn help() -> String {
    let own = REQUESTS.iter().map(|Request { name, about, .. }| (*name, *about));
    let all = own.chain(topic::descriptions());
    let rows: Vec<_> = all.map(|(name, about)| format!("`{name}`: {about}")).collect();
    rows.join("; ")
}

fn metrics(shards: &[Arc<Shard>]) -> Response {
    json(&snapshot(shards))
}

/// Returns the counters of this process's own observable endpoints, as other processes see them.
#[must_use]
pub fn own_snapshot() -> Snapshot {
    snapshot(&shards())
}

fn snapshot(shards: &[Arc<Shard>]) -> Snapshot {
    let endpoint = |shard: &Arc<Shard>| EndpointSnapshot::new(shard.local_addr(), &shard.metrics());
    let nanos = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
    };
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Snapshot {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        program: program(),
        monotonic_nanos: nanos(ClockId::Monotonic),
        unix_millis: since_1970.as_millis() as u64,
        cpu_nanos: nanos(ClockId::ProcessCPUTime),
        endpoints: shards.iter().map(endpoint).collect(),
        application: application::read(),
    }
}

/// Returns the name of the program that this process runs.
fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A live RPC, as the request `rpcs` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpcRow {
    /// Address of the endpoint.
    pub endpoint: SocketAddr,
    /// The even id of the RPC on the wire.
    pub id: u64,
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Role of the endpoint: `client` or `server`.
    pub role: String,
    /// State of the RPC: `outgoing`, `incoming`, `held` or `in_service`.
    pub state: String,
    /// Nanoseconds since the RPC was created.
    pub age_nanos: u64,
    /// Nanoseconds since the last packet from the peer that showed progress.
    pub silent_nanos: u64,
    /// Number of RESENDs or NEED_ACKs sent since then.
    pub asks: u32,
    /// The incoming message, once its first packet has arrived.
    pub incoming: Option<MessageProgress>,
    /// The outgoing message, until it is acknowledged or answered.
    pub outgoing: Option<MessageProgress>,
}

fn rpcs(shards: &[Arc<Shard>]) -> Response {
    let mut rows = Vec::new();
    for shard in shards {
        let all = shard.lock().transport().info();
        rows.extend(all.iter().map(|rpc| row(shard.local_addr(), rpc)));
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.age_nanos));
    json(&rows)
}

fn row(endpoint: SocketAddr, rpc: &RpcInfo) -> RpcRow {
    let role = match rpc.role {
        Role::Client => "client",
        Role::Server => "server",
    };
    let state = match rpc.state {
        RpcState::Outgoing => "outgoing",
        RpcState::Incoming => "incoming",
        RpcState::InService => "in_service",
    };
    RpcRow {
        endpoint,
        id: rpc.id,
        peer: rpc.peer,
        role: role.to_owned(),
        state: state.to_owned(),
        age_nanos: rpc.age.as_nanos() as u64,
        silent_nanos: rpc.silent.as_nanos() as u64,
        asks: rpc.asks,
        incoming: rpc.incoming,
        outgoing: rpc.outgoing,
    }
}
