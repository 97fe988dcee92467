//! Inspection of live processes: counters, live RPCs and the time trace, over a unix socket.
//!
//! Every process with an endpoint listens on a unix socket in a folder of its user. `apus metrics`,
//! `apus top` and `apus trace` are clients; [`processes`] and [`Process`] serve other tools. An
//! application can [`publish`] its own responses and [counters](publish_metrics).
//! `apus_observe::introspection` documents access and costs.
//!
//! [`EndpointBuilder::observable`](crate::EndpointBuilder::observable), `APUS_LIVE=0` in the
//! environment, or the cargo feature switches it off.

pub use apus_observe::introspection::{
    Error, Process, Published, PublishedMetrics, Query, RpcRow, SenderInfo, SenderRow, Senders,
    TraceStatus, own_snapshot, processes, publish, publish_metrics,
};

use crate::engine::shard::Shard;
use crate::engine::shards::Shards;
use crate::snapshot::EndpointSnapshot;
use crate::warning;
use apus_observe::introspection::{Observable, Registration};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Once, Weak};

impl Observable for Shards {
    fn counters(&self) -> Vec<EndpointSnapshot> {
        let snapshot = |shard: &Arc<Shard>| {
            let snapshot = EndpointSnapshot::new(shard.local_addr(), &shard.metrics());
            match shard.sibling() {
                None => snapshot,
                Some(sibling) => snapshot.of_shard(sibling.index() as u32),
            }
        };
        self.all().map(snapshot).collect()
    }

    fn live_rpcs(&self) -> Vec<RpcRow> {
        let rows = |shard: &Arc<Shard>| {
            // Taken first: the lock is not held while rows are made.
            let all = shard.lock().transport().info();
            all.iter().map(|rpc| RpcRow::new(shard.local_addr(), rpc)).collect::<Vec<_>>()
        };
        self.all().flat_map(rows).collect()
    }

    fn senders(&self, most: usize) -> Vec<(SocketAddr, apus_proto::Senders)> {
        let of = |shard: &Arc<Shard>| (shard.local_addr(), shard.lock().transport().senders(most));
        self.all().map(of).collect()
    }
}

/// Registers an endpoint, unless the environment forbids it. Prints a warning if the process cannot
/// be inspected.
pub(crate) fn register(shards: &Arc<Shards>) -> Option<Registration> {
    let shards: Weak<dyn Observable> = Arc::downgrade(&(shards.clone() as Arc<dyn Observable>));
    Registration::new(shards, warn_once)
}

/// Says that the process cannot be inspected, once.
fn warn_once(error: &io::Error) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        warning::print(format_args!(
            "this process cannot be inspected by `apus metrics` and `apus top`: {error} (APUS_RUNTIME_DIR names another \
             folder, APUS_LIVE=0 switches the inspection off)"
        ));
    });
}
