//! Hedging: a second copy of a slow idempotent call, to another server.

use super::budget::Budget;
use super::latency::Latencies;
use crate::handler::BoxFuture;
use crate::message::{Request, Response};
use crate::status::Status;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tower_service::Service;

/// Sends a second copy of an idempotent call when the first copy takes longer than 95 % of recent
/// calls, and returns the first success; the other copy is cancelled.
///
/// Only calls declared [idempotent](Request::with_idempotent) are hedged. The copy goes to a
/// different server or is not sent: no server executes a call twice, but both servers may execute
/// it.
#[derive(Clone, Debug)]
pub struct Hedge<S> {
    service: S,
    budget: Budget,
    min_delay: Duration,
    shared: Arc<HedgeState>,
}

#[derive(Debug)]
struct HedgeState {
    latencies: Latencies,
    calls: AtomicU64,
    hedged: AtomicU64,
    second_first: AtomicU64,
}

/// Counters of a [`Hedge`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HedgeCounts {
    /// Idempotent calls.
    pub calls: u64,
    /// Calls with a second copy.
    pub hedged: u64,
    /// Calls whose second copy answered first.
    pub second_first: u64,
}

impl<S> Hedge<S> {
    /// Default of [`Hedge::percentile`].
    pub const PERCENTILE: usize = 95;

    /// Default of [`Hedge::min_delay`].
    pub const MIN_DELAY: Duration = Duration::from_micros(200);

    /// Creates a service that hedges the calls of `service`, within a budget of 5 % and a reserve
    /// of ten.
    pub fn new(service: S) -> Self {
        let shared = HedgeState {
            latencies: Latencies::new(Self::PERCENTILE),
            calls: AtomicU64::new(0),
            hedged: AtomicU64::new(0),
            second_first: AtomicU64::new(0),
        };
        let (budget, min_delay) = (Budget::new(5, 10), Self::MIN_DELAY);
        Self { service, budget, min_delay, shared: Arc::new(shared) }
    }

    /// Sets the percentile of recent latencies that a call must exceed. The default is
    /// [`Hedge::PERCENTILE`].
    #[must_use]
    pub fn percentile(mut self, percent: usize) -> Self {
        let shared = HedgeState {
            latencies: Latencies::new(percent),
            calls: AtomicU64::new(0),
            hedged: AtomicU64::new(0),
            second_first: AtomicU64::new(0),
        };
        self.shared = Arc::new(shared);
        self
    }

    /// Sets the minimum delay of a second copy. The default is [`Hedge::MIN_DELAY`]; shorter delays
    /// are within the error of timers and of a busy host's scheduler.
    #[must_use]
    pub const fn min_delay(mut self, delay: Duration) -> Self {
        self.min_delay = delay;
        self
    }

    /// Sets the budget for second copies.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Returns the counters.
    #[must_use]
    pub fn counts(&self) -> HedgeCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        HedgeCounts {
            calls: read(&self.shared.calls),
            hedged: read(&self.shared.hedged),
            second_first: read(&self.shared.second_first),
        }
    }
}

impl<S> Service<Request> for Hedge<S>
where
    S: Service<Request, Response = Response, Error = Status, Future: Send> + Clone + Send + 'static,
{
    type Response = Response;
    type Error = Status;
    type Future = BoxFuture<Result<Response, Status>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let next = self.service.clone();
        let mut service = std::mem::replace(&mut self.service, next);
        let copy = if request.is_idempotent() {
            request.share_attempts();
            request.try_clone()
        } else {
            None
        };
        let Some(copy) = copy else { return Box::pin(service.call(request)) };
        let (budget, shared, min_delay) =
            (self.budget.clone(), self.shared.clone(), self.min_delay);
        Box::pin(async move {
            budget.deposit();
            shared.calls.fetch_add(1, Ordering::Relaxed);
            let began = Instant::now();
            let first = service.call(request);
            let delay = shared.latencies.at_percentile().map(|delay| delay.max(min_delay));
            let result = hedged(first, service, copy, delay, &budget, &shared).await;
            if result.is_ok() {
                shared.latencies.record(began.elapsed());
            }
            result
        })
    }
}

/// Waits for the first call, and after `delay` for the first call or its copy.
async fn hedged<S>(
    first: S::Future,
    mut service: S,
    copy: Request,
    delay: Option<Duration>,
    budget: &Budget,
    shared: &HedgeState,
) -> Result<Response, Status>
where
    S: Service<Request, Response = Response, Error = Status, Future: Send> + Send,
{
    let mut first = std::pin::pin!(first);
    let Some(delay) = delay else { return first.await };
    if let Ok(result) = tokio::time::timeout(delay, first.as_mut()).await {
        return result;
    }
    if !budget.withdraw() {
        return first.await;
    }
    let second = async {
        std::future::poll_fn(|cx| service.poll_ready(cx)).await?;
        let call = service.call(copy.with_only_elsewhere(true));
        shared.hedged.fetch_add(1, Ordering::Relaxed);
        call.await
    };
    let mut second = std::pin::pin!(second);
    // If one fails, the other one remains.
    tokio::select! {
        result = first.as_mut() => match result {
            Ok(response) => Ok(response),
            Err(_) => second.await,
        },
        result = second.as_mut() => match result {
            Ok(response) => {
                shared.second_first.fetch_add(1, Ordering::Relaxed);
                Ok(response)
            }
            Err(_) => first.await,
        },
    }
}
