//! What does a trace say of what endpoints did?
//!
//! The recorder is one for the process: these tests take turns.

mod files;
mod stages;
#[cfg(feature = "tokio")]
mod tasks;
mod triggers;

use apus::trace::{self, Event, Record, Rpc, Sampling, Side, Trace};
use apus::{Endpoint, EndpointBuilder};
use apus_driver::loopback::LoopbackNetwork;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

static TURN: Mutex<()> = Mutex::new(());

/// The recorder to oneself, from now on.
struct Tracing {
    _turn: MutexGuard<'static, ()>,
    since: u64,
}

impl Tracing {
    /// Everything is recorded.
    fn all() -> Self {
        Self::with(Sampling::All)
    }

    fn with(sampling: Sampling) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        trace::thaw();
        trace::set_sampling(sampling);
        Self { _turn: turn, since: apus_trace::clock::ticks() }
    }

    /// What has been recorded, thread by thread.
    fn trace(&self) -> Trace {
        let mut trace = trace::snapshot();
        for thread in &mut trace.threads {
            thread.records.retain(|record| record.ticks >= self.since);
        }
        trace.threads.retain(|thread| !thread.records.is_empty());
        trace
    }

    /// What happened to this endpoint's side of RPCs, in the order of time.
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

/// Names of events.
fn names(records: &[Record]) -> Vec<&'static str> {
    records.iter().map(|record| record.event().unwrap().name()).collect()
}

/// Those of one event.
fn only(records: &[Record], event: Event) -> Vec<Record> {
    records.iter().copied().filter(|record| record.event() == Some(event)).collect()
}

/// Two endpoints on a network of their own.
fn pair(builder: &EndpointBuilder) -> (Endpoint, Endpoint) {
    let network = LoopbackNetwork::new();
    let on = || builder.clone().with_driver(Box::new(network.host())).unwrap();
    (on(), on())
}

/// Makes calls to a server that answers each with the same bytes.
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

/// Shuts a server down, also after a failed assertion: its thread then ends.
struct ShutDown<'a>(&'a Endpoint);

impl Drop for ShutDown<'_> {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}
