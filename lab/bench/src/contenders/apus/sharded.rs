//! Endpoints with several shards, to measure the cost of a shard.
//!
//! Each side has one thread per shard. A client thread starts the plan's number of outstanding
//! calls, and follows each completion with the next call; a server thread echoes requests. Each
//! shard thus has the load of a single-shard endpoint. Both sides use all cores and sleep when
//! idle: spinning threads would compete for the cores.

use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use apus::{Bytes, CallOptions, Closed, Endpoint, OutgoingCall, PollMode};

use crate::contenders::contender::Contender;
use apus_measure::exchange::client::expect_length;
use apus_measure::exchange::endpoint::{serve_at, shut_down_on_stop};
use apus_measure::exchange::{Path, configured, engine_counters, server};
use apus_measure::meter::Meter;
use apus_measure::plan::{Plan, Side};
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::process::{Control, Stop};

/// Small messages between two endpoints with this number of shards.
#[derive(Clone, Copy, Debug)]
pub struct Sharded {
    shards: usize,
    name: &'static str,
}

impl Sharded {
    /// Returns the contender with `shards` shards on each side.
    #[must_use]
    pub fn new(shards: usize) -> Self {
        // Contenders are few, and their names are used until the program exits.
        Self { shards, name: Box::leak(Self::name_of(shards).into_boxed_str()) }
    }

    /// Returns the name of the contender with this number of shards.
    #[must_use]
    pub fn name_of(shards: usize) -> String {
        format!("apus shards={shards}")
    }
}

impl Contender for Sharded {
    fn name(&self) -> &'static str {
        self.name
    }

    fn settings(&self) -> String {
        format!(
            "endpoints with {0} shards and {0} threads on each side, as many requests outstanding for each shard, over UDP, both \
             on all cores, waiting threads sleep, messages that are ready leave together (cork)",
            self.shards
        )
    }

    fn exclusion(&self, plan: &Plan) -> Option<String> {
        plan.raw.then(|| "endpoints over raw IP have one shard".to_owned())
    }

    fn uses_all_cores(&self) -> bool {
        true
    }

    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error> {
        let settings = configured(&plan.settings, Path::Udp);
        let endpoint = serve_at(settings.poll_mode(PollMode::Block).shards(self.shards), control)?;
        let echo = || server::echo_together(&endpoint);
        on_threads(self.shards, |_| echo())?;
        Ok(Side { counters: engine_counters::of(&endpoint), ..Side::default() })
    }

    fn drive(&self, plan: &Plan, server: SocketAddr, control: &mut Control) -> Result<Side, Error> {
        let settings = configured(&plan.settings, Path::Udp).poll_mode(PollMode::Block);
        let endpoint = settings
            .shards(self.shards)
            .client()
            .map_err(|error| Error::endpoint("open a client".to_owned(), error))?;
        shut_down_on_stop(&endpoint, control);
        let calls = Calls::new(&endpoint, server, plan, self.shards, control.stop());
        let sides = on_threads(self.shards, |thread| calls.run(thread, self.shards))?;
        let mut sum = Side { counters: engine_counters::of(&endpoint), ..Side::default() };
        for side in sides {
            sum.messages += side.messages;
            sum.bytes += side.bytes;
            sum.elapsed = sum.elapsed.max(side.elapsed);
            sum.cpu = sum.cpu.max(side.cpu);
            if side.latency.p99 > sum.latency.p99 {
                sum.latency = side.latency;
            }
        }
        Ok(sum)
    }
}

/// Runs `work` in `count` threads. Returns their results.
fn on_threads<T: Send>(
    count: usize,
    work: impl Fn(usize) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let work = &work;
    thread::scope(|scope| {
        let start = |thread| scope.spawn(move || work(thread));
        let threads: Vec<_> = (0..count).map(start).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    })
}

/// The outstanding calls of all threads of a client.
struct Calls<'a> {
    endpoint: &'a Endpoint,
    server: SocketAddr,
    plan: &'a Plan,
    stop: &'a Stop,
    request: Bytes,
    /// Send time of each call, by cookie.
    sent: Vec<AtomicU64>,
    under_way: AtomicUsize,
}

impl<'a> Calls<'a> {
    fn new(
        endpoint: &'a Endpoint,
        server: SocketAddr,
        plan: &'a Plan,
        shards: usize,
        stop: &'a Stop,
    ) -> Self {
        let now = clock::now();
        let outstanding = plan.outstanding * shards;
        Self {
            endpoint,
            server,
            plan,
            stop,
            request: Bytes::from(vec![0; plan.size]),
            sent: (0..outstanding).map(|_| AtomicU64::new(now)).collect(),
            under_way: AtomicUsize::new(outstanding),
        }
    }

    fn call(&self, cookie: u64) -> OutgoingCall {
        OutgoingCall { to: self.server, request: self.request.clone().into(), cookie }
    }

    fn send(&self, calls: &mut Vec<OutgoingCall>) -> Result<(), Error> {
        let sent = self.endpoint.send_many(calls, CallOptions::new());
        sent.map_err(|error| Error::endpoint(format!("send to {}", self.server), error))
    }

    /// Runs one of `threads` threads.
    fn run(&self, thread: usize, threads: usize) -> Result<Side, Error> {
        let mut meter = Meter::start(self.plan);
        match self.exchange(&mut meter, thread, threads) {
            Err(_) if self.stop.is_asked() => {}
            exchanged => exchanged?,
        }
        Ok(meter.finish())
    }

    fn exchange(&self, meter: &mut Meter, thread: usize, threads: usize) -> Result<(), Error> {
        let _together = self.endpoint.cork();
        let own = (0..self.sent.len() as u64).skip(thread).step_by(threads);
        let mut calls: Vec<_> = own.map(|cookie| self.call(cookie)).collect();
        self.send(&mut calls)?;
        let mut ends = Vec::with_capacity(self.sent.len());
        loop {
            match self.endpoint.recv_completions(&mut ends, self.sent.len()) {
                Ok(_) => {}
                // Another thread has received the last completion.
                Err(Closed::ShutDown) => return Ok(()),
                Err(error) => return Err(Error::endpoint("receive".to_owned(), error)),
            }
            let now = clock::now();
            for ended in ends.drain(..) {
                let reply = ended
                    .result
                    .map_err(|error| Error::endpoint(format!("call {}", self.server), error))?;
                expect_length(&reply, self.plan.size, self.server)?;
                let sent = &self.sent[ended.cookie as usize];
                meter.latency(now - sent.load(Ordering::Relaxed).min(now));
                meter.count(now, 1, self.plan.size as u64);
                if meter.is_over(now) {
                    if self.under_way.fetch_sub(1, Ordering::Relaxed) == 1 {
                        self.endpoint.shutdown();
                    }
                    continue;
                }
                sent.store(now, Ordering::Relaxed);
                calls.push(self.call(ended.cookie));
            }
            self.send(&mut calls)?;
        }
    }
}
