//! A server of a balancer: its measured cost, and whether it is ejected.

use crate::client::Channel;
use crate::code::Code;
use crate::message::{Request, Response};
use crate::server::{HEALTH_METHOD, Health};
use crate::status::Status;
use apus::Execution;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Number of consecutive failures that eject a server. One may be an accident; three are not.
const MAX_FAILURES: u32 = 3;

/// Milliseconds until a measured round trip counts half.
const HALF_LIFE: u64 = 50;

/// Bounds of the interval between two health checks of an ejected server.
const FIRST_PROBE: Duration = Duration::from_millis(50);
const LAST_PROBE: Duration = Duration::from_secs(2);

/// Timeout of a health check.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// A server.
#[derive(Debug)]
pub(super) struct BalancedServer {
    channel: Channel,
    outstanding: AtomicUsize,
    /// Smoothed round trip in nanoseconds; 0 before the first call.
    round_trip: AtomicU64,
    began: Instant,
    /// Milliseconds from `began` to the last sample.
    sampled: AtomicU64,
    failures: AtomicU32,
    ejected: AtomicBool,
}

/// A call in progress at a server.
struct Outstanding<'a>(&'a BalancedServer);

impl Drop for Outstanding<'_> {
    fn drop(&mut self) {
        self.0.outstanding.fetch_sub(1, Ordering::Relaxed);
    }
}

impl BalancedServer {
    pub(super) fn new(channel: Channel) -> Self {
        Self {
            channel,
            outstanding: AtomicUsize::new(0),
            round_trip: AtomicU64::new(0),
            began: Instant::now(),
            sampled: AtomicU64::new(0),
            failures: AtomicU32::new(0),
            ejected: AtomicBool::new(false),
        }
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.channel.peer_addr()
    }

    pub(super) fn is_ejected(&self) -> bool {
        self.ejected.load(Ordering::Relaxed)
    }

    /// Returns the cost of a further call: the round trips of the outstanding calls. A server
    /// without calls so far is cheap, so that it gets some. The estimate of an idle server halves
    /// every [`HALF_LIFE`]; otherwise a server that was slow once would never be called again.
    pub(super) fn cost(&self) -> u64 {
        let outstanding = self.outstanding.load(Ordering::Relaxed) as u64;
        let round_trip = self.round_trip.load(Ordering::Relaxed);
        if outstanding > 0 {
            return (outstanding + 1).saturating_mul(round_trip);
        }
        let age = self.now().saturating_sub(self.sampled.load(Ordering::Relaxed));
        let halvings = u32::try_from(age / HALF_LIFE).unwrap_or(u32::MAX);
        round_trip.checked_shr(halvings).unwrap_or(0)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Makes a call, and updates the estimate.
    pub(super) async fn call(self: Arc<Self>, request: Request) -> Result<Response, Status> {
        self.outstanding.fetch_add(1, Ordering::Relaxed);
        let _outstanding = Outstanding(&self);
        let began = Instant::now();
        let result = self.channel.call(request).await;
        match &result {
            Ok(_) => self.succeeded(began.elapsed()),
            Err(status) => self.failed(status),
        }
        result
    }

    fn succeeded(&self, took: Duration) {
        self.failures.store(0, Ordering::Relaxed);
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1);
        let known = self.round_trip.load(Ordering::Relaxed);
        // A lost update in a race of two threads costs one sample.
        let smoothed = if known == 0 { took } else { known - known / 8 + took / 8 };
        self.round_trip.store(smoothed.max(1), Ordering::Relaxed);
        self.sampled.store(self.now(), Ordering::Relaxed);
    }

    fn failed(self: &Arc<Self>, status: &Status) {
        let refuses =
            status.execution() == Execution::NotExecuted && status.code() == Code::Unavailable;
        let is_lost = status.execution() == Execution::Unknown && status.code() == Code::Unknown;
        if !refuses && !is_lost {
            return;
        }
        let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        if refuses || failures >= MAX_FAILURES {
            self.eject();
        }
    }

    /// Ejects the server until it reports that it is ready.
    fn eject(self: &Arc<Self>) {
        if self.ejected.swap(true, Ordering::Relaxed) {
            return;
        }
        let server = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut pause = FIRST_PROBE;
            loop {
                tokio::time::sleep(pause).await;
                // The server was removed in the meantime, or the balancer has ended.
                let Some(server) = server.upgrade() else { return };
                if server.is_ready().await {
                    server.failures.store(0, Ordering::Relaxed);
                    server.ejected.store(false, Ordering::Relaxed);
                    return;
                }
                pause = (2 * pause).min(LAST_PROBE);
            }
        });
    }

    async fn is_ready(&self) -> bool {
        let probe = Request::new(HEALTH_METHOD, vec![]).with_timeout(PROBE_TIMEOUT);
        let Ok(response) = self.channel.call(probe).await else { return false };
        let health = response.into_body().into_bytes(1).await;
        health.is_ok_and(|health| health.first() == Some(&Health::Ready.number()))
    }
}
