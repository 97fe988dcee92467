//! Time traces of endpoints: stages, files, triggers.
//!
//! There is one recorder per process, so these tests run one after the other.

mod exemplars;
mod files;
#[path = "../gate/mod.rs"]
mod gate;
mod stages;
#[cfg(feature = "tokio")]
mod tasks;
mod triggers;

use apus::trace::{self, Event, Record, Rpc, Sampling, Side, Trace};
use apus::{Config, Endpoint, EndpointBuilder};
use apus_driver::loopback::LoopbackNetwork;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

static RECORDER: Mutex<()> = Mutex::new(());

/// Exclusive use of the recorder, and of its records from now on.
struct Tracing {
    _exclusive: MutexGuard<'static, ()>,
    since: u64,
}

impl Tracing {
    /// Records every RPC.
    fn all() -> Self {
        Self::with(Sampling::All)
    }

    fn with(sampling: Sampling) -> Self {
        let exclusive = RECORDER.lock().unwrap_or_else(PoisonError::into_inner);
        trace::resume();
        trace::set_sampling(sampling);
        Self { _exclusive: exclusive, since: apus_trace::clock::ticks() }
    }

    /// Returns the records since then, thread by thread.
    fn trace(&self) -> Trace {
        let mut trace = trace::snapshot();
        for thread in &mut trace.threads {
            thread.records.retain(|record| record.ticks >= self.since);
        }
        trace.threads.retain(|thread| !thread.records.is_empty());
        trace
    }

    /// Returns the records of one side of an endpoint's RPCs in the order of time.
    fn of(&self, endpoint: SocketAddr, side: Side) -> Vec<Record> {
        let trace = self.trace();
        let is_ours = |rpc: Rpc| {
            let peer = trace.head.peer(rpc.peer());
            rpc.side() == side && peer.is_some_and(|peer| peer.endpoint == endpoint)
        };
        let mut records: Vec<Record> = trace
            .records()
            .map(|(_, record)| *record)
            .filter(|record| record.rpc().is_some_and(is_ours))
            .collect();
        records.sort_by_key(|record| record.ticks);
        records
    }
}

/// Returns the names of the records' events.
fn names(records: &[Record]) -> Vec<&'static str> {
    records.iter().map(|record| record.event().unwrap().name()).collect()
}

/// Returns the records of one event.
fn only(records: &[Record], event: Event) -> Vec<Record> {
    records.iter().copied().filter(|record| record.event() == Some(event)).collect()
}

/// Parameters that keep a busy machine from causing retransmission requests.
fn unhurried() -> Config {
    let config = Config::builder().timeout_usecs(60_000_000).resend_usecs(10_000_000);
    config.resend_interval_usecs(10_000_000).need_ack_usecs(10_000_000).build().unwrap()
}

/// Two endpoints on a separate network.
fn pair(builder: &EndpointBuilder) -> (Endpoint, Endpoint) {
    let network = LoopbackNetwork::new();
    let on = || builder.clone().with_driver(Box::new(network.host())).unwrap();
    (on(), on())
}

/// Two endpoints that reach each other through shared memory; `None`, and a line that reports it,
/// if this system has none.
fn pair_in_memory() -> Option<(Endpoint, Endpoint)> {
    let bind = || Endpoint::builder().bind("127.0.0.1:0").unwrap();
    let (client, server) = (bind(), bind());
    let has_path = client.has_local_path() && server.has_local_path();
    if !has_path {
        eprintln!("SKIPPED: the shared-memory path is not available");
    }
    has_path.then_some((client, server))
}

/// Runs `calls` while an echo server serves.
fn serve_while(server: &Endpoint, calls: impl FnOnce()) {
    std::thread::scope(|scope| {
        let _end = ShutDown(server);
        scope.spawn(|| {
            while let Ok(request) = server.recv_request() {
                let payload = request.payload().clone();
                let _ = request.reply(payload);
            }
        });
        calls();
    });
}

/// Shuts a server down, also after a failed assertion, so that its thread ends.
struct ShutDown<'a>(&'a Endpoint);

impl Drop for ShutDown<'_> {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}
