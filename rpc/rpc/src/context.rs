//! Context that a call inherits from the call being served: the deadline and the trace.

use crate::trace_context::TraceContext;
use std::time::Instant;

tokio::task_local! {
    static CURRENT: Context;
}

/// The deadline and the trace of the call that the current task serves. Calls made by the handler
/// inherit both.
///
/// A spawned task does not inherit them automatically: wrap its future in [`Context::scope`].
///
/// ```
/// use apus_rpc::Context;
///
/// # async fn handler() {
/// let context = Context::current();
/// tokio::spawn(context.scope(async {
///     // Calls made here end with the deadline of the call that is served.
/// }));
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// When the caller stops waiting.
    pub deadline: Option<Instant>,
    /// The trace that the call belongs to.
    pub trace: Option<TraceContext>,
}

impl Context {
    /// Returns the context of the current task; outside of a handler it is empty.
    #[must_use]
    pub fn current() -> Self {
        CURRENT.try_with(|context| *context).unwrap_or_default()
    }

    /// Runs a future in this context.
    pub async fn scope<F: Future>(self, future: F) -> F::Output {
        CURRENT.scope(self, future).await
    }

    /// Runs a function in this context, on this thread.
    pub fn sync_scope<R>(self, function: impl FnOnce() -> R) -> R {
        CURRENT.sync_scope(self, function)
    }

    /// Returns the earlier of the context's deadline and `deadline`.
    #[must_use]
    pub fn sooner(&self, deadline: Option<Instant>) -> Option<Instant> {
        match (self.deadline, deadline) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }
}
