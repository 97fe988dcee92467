//! The calling threads of an experiment with many endpoints.
//!
//! A thread calls through its home shard of an endpoint, and threads that use an endpoint for the
//! first time are assigned its shards round robin. There is therefore one thread per shard, and the
//! threads call one after another. They exist for the whole run: fixed costs of a thread, such as
//! its stack and its part of the time trace, are not costs of an endpoint.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

use apus::Endpoint;

use apus_report::stats::Latencies;
use apus_testbed::error::Error;

type Endpoints = Arc<Vec<Endpoint>>;
type Called = Result<Latencies, Error>;

/// One thread for each shard. With one shard, it is the calling thread.
pub(super) struct Callers<'a, F> {
    calls: &'a F,
    threads: Vec<(Sender<Endpoints>, Receiver<Called>)>,
}

impl<'a, F: Fn(&[Endpoint]) -> Called + Sync> Callers<'a, F> {
    /// Starts the threads; each runs `calls` on request.
    pub(super) fn start<'s>(scope: &'s Scope<'s, '_>, shards: usize, calls: &'a F) -> Self
    where
        'a: 's,
    {
        let start = |_| {
            let (asks, asked) = channel::<Endpoints>();
            let (answers, answered) = channel();
            // Ends when the callers are dropped.
            scope.spawn(move || asked.iter().try_for_each(|all| answers.send(calls(&all))));
            (asks, answered)
        };
        let count = if shards == 1 { 0 } else { shards };
        Self { calls, threads: (0..count).map(start).collect() }
    }

    /// Makes a call with each endpoint, through each of its shards. Returns the times of all calls.
    pub(super) fn call(&self, endpoints: &Endpoints) -> Called {
        if self.threads.is_empty() {
            return (self.calls)(endpoints);
        }
        let mut times = Latencies::new();
        for (asks, answered) in &self.threads {
            let asked = asks.send(endpoints.clone()).ok();
            match asked.and_then(|()| answered.recv().ok()) {
                Some(called) => times.merge(&called?),
                None => resume_unwind(Box::new("a thread that calls has panicked")),
            }
        }
        Ok(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_measure::exchange::{Path, builder};
    use std::thread;

    /// Returns the number of calls that each shard of `endpoint` has made.
    fn made(endpoint: &Endpoint) -> Vec<u64> {
        let made = endpoint.shard_metrics();
        made.iter().map(|shard| shard.protocol.progress.client_requests_started).collect()
    }

    #[test]
    fn each_shard_of_each_endpoint_makes_a_call() {
        let server = builder(Path::Udp).bind("127.0.0.1:0").unwrap();
        let client = || builder(Path::Udp).shards(3).client().unwrap();
        // More endpoints than a thread remembers its homes of.
        let endpoints: Endpoints = Arc::new((0..20).map(|_| client()).collect());
        let calls = |endpoints: &[Endpoint]| {
            for endpoint in endpoints {
                let called = endpoint.call(server.local_addr(), "x");
                called.map_err(|error| Error::endpoint("call".to_owned(), error))?;
            }
            Ok(Latencies::new())
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                while let Ok(request) = server.recv_request() {
                    request.reply("").unwrap();
                }
            });
            let callers = Callers::start(scope, 3, &calls);
            let rounds = [1, 2].map(|round| {
                let called = callers.call(&endpoints);
                (round, called.is_ok(), endpoints.iter().map(made).collect::<Vec<_>>())
            });
            // First: after a failed assertion, the scope waits for the server's thread.
            server.shutdown();
            for (round, called, made) in rounds {
                assert!(called && made.iter().all(|made| *made == [round; 3]), "{made:?}");
            }
        });
    }
}
