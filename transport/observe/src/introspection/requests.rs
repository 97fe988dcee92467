//! The table of requests that a live process responds to. A new request is a new row in
//! [`REQUESTS`].

use crate::introspection::registry::{Observable, observables};
use crate::introspection::response::{Response, json};
use crate::introspection::rpc_row::RpcRow;
use crate::introspection::sender_row::Senders;
use crate::introspection::{application, topic, trace_status};
use crate::snapshot::Snapshot;
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A request that the service supports.
struct Request {
    name: &'static str,
    /// Describes the response, in the text of `help`.
    about: &'static str,
    respond: fn(&[Arc<dyn Observable>]) -> Response,
}

/// All requests.
const REQUESTS: &[Request] = &[
    Request { name: "help", about: "all requests, as text", respond: |_| Ok(help().into_bytes()) },
    Request { name: "metrics", about: "a snapshot of all counters, as JSON", respond: metrics },
    Request { name: "rpcs", about: "the live RPCs, as JSON", respond: rpcs },
    Request {
        name: "senders",
        about: "the peers with the most bytes on the way to this process, as JSON",
        respond: senders,
    },
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
pub(crate) fn respond(name: &str) -> Response {
    let request = REQUESTS.iter().find(|request| request.name == name);
    match request {
        Some(request) => (request.respond)(&observables()),
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

fn metrics(endpoints: &[Arc<dyn Observable>]) -> Response {
    json(&snapshot(endpoints))
}

/// Returns the counters of this process's own observable endpoints, as other processes see them.
#[must_use]
pub fn own_snapshot() -> Snapshot {
    snapshot(&observables())
}

fn snapshot(endpoints: &[Arc<dyn Observable>]) -> Snapshot {
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
        endpoints: endpoints.iter().flat_map(|endpoint| endpoint.counters()).collect(),
        application: application::read(),
        unresponsive: false,
    }
}

/// Returns the name of the program that this process runs.
fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn rpcs(endpoints: &[Arc<dyn Observable>]) -> Response {
    let mut rows: Vec<RpcRow> =
        endpoints.iter().flat_map(|endpoint| endpoint.live_rpcs()).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.age_nanos));
    json(&rows)
}

fn senders(endpoints: &[Arc<dyn Observable>]) -> Response {
    let all = endpoints.iter().flat_map(|endpoint| endpoint.senders(Senders::MOST));
    json(&Senders::merged(all))
}
