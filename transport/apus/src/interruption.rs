//! Calls and replies whose caller checks at intervals whether to keep waiting.

use crate::call::{CallId, CallOptions};
use crate::endpoint::{Endpoint, submit_while};
use crate::engine::poll::EndOf;
use crate::error::{CallError, ReplyError};
use crate::request::Request;
use crate::submission::{Submission, cancel};
use apus_proto::{Execution, FailureKind, Payload, RpcError};
use bytes::Bytes;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

impl Endpoint {
    /// Sends a request and waits for the response, as [`Endpoint::call_with`] does, and calls
    /// `keep_waiting` each time that it has waited for `interval`. If it returns `false`, the call
    /// is cancelled and fails with [`FailureKind::Cancelled`].
    ///
    /// For threads that must be interruptible, such as the main thread of an interpreter, which
    /// handles Ctrl-C. A response that arrives within `interval` costs the same as with
    /// `call_with`. The wait for room to send counts as well.
    ///
    /// `keep_waiting` may use the endpoint.
    ///
    /// ```
    /// use apus::{CallOptions, Endpoint, Execution};
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (server, client) = (Endpoint::bind("127.0.0.1:0")?, Endpoint::client()?);
    /// // The server never replies, and the caller loses patience at once.
    /// let interval = Duration::from_millis(1);
    /// let result =
    ///     client.call_interruptible(server.local_addr(), "hello", CallOptions::new(), interval, || false);
    /// assert_eq!(result.unwrap_err().execution(), Execution::Unknown);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`CallError`]; its [`execution`](CallError::execution) tells whether the request may have
    /// been executed.
    pub fn call_interruptible(
        &self,
        to: SocketAddr,
        request: impl Into<Payload>,
        options: CallOptions,
        interval: Duration,
        mut keep_waiting: impl FnMut() -> bool,
    ) -> Result<Bytes, CallError> {
        let mut submission = Submission::new(to, request.into(), options, None);
        let shard = self.shards.caller()?;
        let (mut core, call) = submit_while(shard, &mut submission, interval, &mut keep_waiting)?;
        loop {
            let until = Instant::now().checked_add(interval);
            let (again, ended) = shard.wait_for(core, &EndOf(call.key), until);
            if let Some(response) = ended {
                drop(again);
                return shard.result_of(response);
            }
            if again.is_closed() {
                return Err(again.closed_error().into());
            }
            drop(again);
            let keeps_waiting = keep_waiting();
            // It may have forked.
            shard.owner().check()?;
            core = shard.lock();
            // A call that has ended in the meantime is not cancelled: its result is available.
            if !keeps_waiting && cancel(&mut core, call) {
                let kind = FailureKind::Cancelled;
                return Err(RpcError { kind, execution: Execution::Unknown }.into());
            }
        }
    }

    /// Sends a request without waiting for the response, as [`Endpoint::send_with`] does, and calls
    /// `keep_waiting` each time that it has waited for room for `interval`. If it returns `false`,
    /// the request is not sent, and the call fails with [`FailureKind::Cancelled`].
    ///
    /// `keep_waiting` may use the endpoint.
    ///
    /// # Errors
    ///
    /// [`CallError`]: the request was not sent.
    pub fn send_interruptible(
        &self,
        to: SocketAddr,
        request: impl Into<Payload>,
        cookie: u64,
        options: CallOptions,
        interval: Duration,
        keep_waiting: impl FnMut() -> bool,
    ) -> Result<CallId, CallError> {
        let mut submission = Submission::new(to, request.into(), options, Some(cookie));
        let shard = self.shards.caller()?;
        submit_while(shard, &mut submission, interval, keep_waiting).map(|(_, call)| call)
    }
}

impl Request {
    /// Sends the response as [`Request::reply_or_keep`] does, and calls `keep_waiting` each time
    /// that it has waited for room for `interval`. If it returns `false`, fails with
    /// [`ReplyError::GivenUp`]; the request may be replied to again.
    ///
    /// `keep_waiting` may use the endpoint.
    ///
    /// # Errors
    ///
    /// [`ReplyError`]: the client does not wait any more, the response is rejected, the caller
    /// stopped waiting, or the endpoint is closed.
    pub fn reply_interruptible(
        &mut self,
        payload: impl Into<Payload>,
        interval: Duration,
        keep_waiting: impl FnMut() -> bool,
    ) -> Result<(), ReplyError> {
        self.pending.reply_while(payload.into(), interval, keep_waiting)
    }
}
