//! What can a live process be asked?
//!
//! A new request is a new row in [`REQUESTS`].

use super::presence::shards;
use super::tracing;
use crate::engine::shard::Shard;
use crate::snapshot::{EndpointSnapshot, Snapshot};
use apus_proto::{Role, RpcInfo, RpcState};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// An answer, or why there is none.
pub(super) type Answer = Result<Vec<u8>, String>;

/// Something that can be asked.
struct Request {
    name: &'static str,
    /// What the answer is.
    about: &'static str,
    answer: fn(&[Arc<Shard>]) -> Answer,
}

/// Everything that can be asked.
const REQUESTS: &[Request] = &[
    Request {
        name: "help",
        about: "what can be asked, as text",
        answer: |_| Ok(help().into_bytes()),
    },
    Request { name: "metrics", about: "a snapshot of all counters, as JSON", answer: metrics },
    Request { name: "rpcs", about: "the RPCs that live, as JSON", answer: rpcs },
    Request {
        name: "trace dump",
        about: "the time trace, as the bytes of a file",
        answer: |_| tracing::dump(),
    },
    Request {
        name: "trace status",
        about: "what is recorded, and whether it is frozen, as JSON",
        answer: |_| tracing::status(),
    },
    Request {
        name: "trace freeze",
        about: "stop recording and keep what is there; then as `trace status`",
        answer: |_| tracing::freeze(),
    },
    Request {
        name: "trace resume",
        about: "go on recording; then as `trace status`",
        answer: |_| tracing::resume(),
    },
];

/// The answer to a request.
///
/// # Errors
///
/// There is no such request, or it cannot be answered.
pub(super) fn answer(name: &str) -> Answer {
    let request = REQUESTS.iter().find(|request| request.name == name);
    let request = request.ok_or_else(|| format!("there is no request `{name}`; {}", help()))?;
    (request.answer)(&shards())
}

fn help() -> String {
    let row = |Request { name, about, .. }: &Request| format!("`{name}`: {about}");
    let rows: Vec<_> = REQUESTS.iter().map(row).collect();
    rows.join("; ")
}

fn metrics(shards: &[Arc<Shard>]) -> Answer {
    written(&snapshot(shards))
}

/// All counters of this process's own endpoints, as others see them.
#[must_use]
pub fn own() -> Snapshot {
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
    }
}

/// Name of the program that this process runs.
fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// An RPC that lives, as the request `rpcs` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpcRow {
    /// The endpoint that it lives in.
    pub endpoint: SocketAddr,
    /// Its even id on the wire.
    pub id: u64,
    /// The other end.
    pub peer: SocketAddr,
    /// `client` or `server`.
    pub role: String,
    /// `outgoing`, `incoming`, `held` or `in_service`.
    pub state: String,
    /// Nanoseconds since it was created.
    pub age_nanos: u64,
    /// Nanoseconds since the peer showed that it works on it.
    pub silent_nanos: u64,
    /// RESENDs or NEED_ACKs sent since then.
    pub asks: u32,
    /// The message to the endpoint: length, received and granted bytes.
    pub incoming: Option<(u32, u32, u32)>,
    /// The message from it: length, sent and granted bytes.
    pub outgoing: Option<(u32, u32, u32)>,
}

fn rpcs(shards: &[Arc<Shard>]) -> Answer {
    let mut rows = Vec::new();
    for shard in shards {
        let all = shard.lock().transport().info();
        rows.extend(all.iter().map(|rpc| row(shard.local_addr(), rpc)));
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.age_nanos));
    written(&rows)
}

fn row(endpoint: SocketAddr, rpc: &RpcInfo) -> RpcRow {
    let role = match rpc.role {
        Role::Client => "client",
        Role::Server => "server",
    };
    let state = match rpc.state {
        RpcState::Outgoing => "outgoing",
        RpcState::Incoming => "incoming",
        RpcState::Held => "held",
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

pub(super) fn written(value: &impl Serialize) -> Answer {
    serde_json::to_vec(value).map_err(|error| error.to_string())
}
