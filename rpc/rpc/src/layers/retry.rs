//! Retries, based on whether a call was executed.

use super::budget::Budget;
use crate::code::Code;
use crate::handler::BoxFuture;
use crate::message::{Request, Response};
use crate::status::Status;
use apus::Execution;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tower_service::Service;

/// Retries failed calls that were certainly not executed, and idempotent calls whose execution is
/// unknown. A call that may have been executed is never retried unless it is
/// [idempotent](Request::with_idempotent).
///
/// A retry goes to another server if there is one. The first retry follows at once; later retries
/// wait for a random part of 1 ms, 2 ms, … up to 100 ms. A call whose body is a stream is not
/// retried.
#[derive(Clone, Debug)]
pub struct Retry<S> {
    service: S,
    budget: Budget,
    max_attempts: u32,
}

impl<S> Retry<S> {
    /// Default of [`Retry::max_attempts`].
    pub const MAX_ATTEMPTS: u32 = 4;

    /// Creates a service that retries failed calls of `service`, within a budget of 10 % and a
    /// reserve of 100.
    pub fn new(service: S) -> Self {
        Self { service, budget: Budget::new(10, 100), max_attempts: Self::MAX_ATTEMPTS }
    }

    /// Sets the maximum number of attempts, including the first. The default is
    /// [`Retry::MAX_ATTEMPTS`].
    #[must_use]
    pub const fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// Sets the budget for retries.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }
}

impl<S> Service<Request> for Retry<S>
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
        // The ready service makes the call; its clone is for later calls.
        let next = self.service.clone();
        let mut service = std::mem::replace(&mut self.service, next);
        let (budget, max_attempts) = (self.budget.clone(), self.max_attempts);
        Box::pin(async move {
            budget.deposit();
            request.share_attempts();
            for attempt in 1..max_attempts {
                let Some(again) = request.try_clone() else { break };
                match service.call(request).await {
                    Err(status) if may_retry(&again, &status) && budget.withdraw() => {
                        request = again;
                        pause(attempt, request.deadline(), status).await?;
                        std::future::poll_fn(|cx| service.poll_ready(cx)).await?;
                    }
                    result => return result,
                }
            }
            service.call(request).await
        })
    }
}

/// Returns whether a call may be retried after this failure, and could succeed.
fn may_retry(request: &Request, status: &Status) -> bool {
    let hopeless = matches!(
        status.code(),
        Code::InvalidArgument
            | Code::Unimplemented
            | Code::FailedPrecondition
            | Code::DeadlineExceeded
            | Code::Cancelled
    );
    let safe = match status.execution() {
        Execution::NotExecuted => true,
        Execution::Unknown => request.is_idempotent(),
        Execution::Executed => false,
    };
    safe && !hopeless && request.deadline().is_none_or(|deadline| Instant::now() < deadline)
}

/// Waits before the attempt after `attempt`. Returns an error instead if the wait would exceed the
/// deadline.
async fn pause(attempt: u32, deadline: Option<Instant>, status: Status) -> Result<(), Status> {
    let Some(exponent) = attempt.checked_sub(2) else { return Ok(()) };
    let longest = Duration::from_millis(100).min(Duration::from_millis(1) * (1 << exponent.min(7)));
    let pause = longest.mul_f32(fastrand::f32());
    if deadline.is_some_and(|deadline| Instant::now() + pause >= deadline) {
        return Err(status);
    }
    tokio::time::sleep(pause).await;
    Ok(())
}
