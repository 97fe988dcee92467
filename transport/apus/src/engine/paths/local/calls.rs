//! The client's side of shared memory: calls, their ends, and their fate when a pair ends.

use super::context::{LocalContext, command_error, failure_kind};
use super::cork::{Content, CorkedMessage};
use crate::engine::state::{Delivery, Key, LocalCall, LocalTimer};
use crate::engine::tracer::{SlowWatch, stage};
use apus_local::{Disconnected, Pair, SendBatch, SendError};
use apus_proto::{Call, CommandError, Execution, FailureKind, Instant, Payload, RpcError};
use apus_trace::Event;
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::Arc;

/// Options of a call, in addition to its payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalCallOptions {
    pub(crate) deadline: Option<Instant>,
    /// Timeout interval of the call, if the timeout applies to it.
    pub(crate) made: Option<u32>,
    /// Whether executing the request twice is harmless.
    pub(crate) idempotent: bool,
    /// The cookie of a call whose completion any thread may receive.
    pub(crate) cookie: Option<u64>,
}

/// Way of a request into the ring of its pair.
enum CallVia<'a, 'b> {
    /// In a batch of its pair.
    Batch(&'a mut SendBatch<'b>),
    /// By itself.
    Pair(&'a Arc<Pair>),
    /// Later: a cork holds it back.
    Cork(Arc<Pair>),
}

impl LocalContext<'_> {
    /// Sends a call through shared memory, in `batch` if there is one; `None` if it must go over
    /// the network.
    #[inline]
    pub(crate) fn call(
        &mut self,
        to: SocketAddr,
        batch: Option<&mut SendBatch<'_>>,
        payload: &mut Payload,
        options: LocalCallOptions,
    ) -> Option<Result<Key, CommandError>> {
        let holds_back = if batch.is_some() { Ok(false) } else { self.holds_back(payload) };
        let Self { local, delivery, time, .. } = self;
        let (number, mut path) = match batch {
            Some(batch) => (batch.pair_number(), CallVia::Batch(batch)),
            None => {
                let pair = local.routes.pair(to, time.now(), &local.path.local)?;
                match holds_back {
                    Ok(true) => (pair.number(), CallVia::Cork(pair.clone())),
                    Ok(false) => (pair.number(), CallVia::Pair(pair)),
                    Err(error) => return Some(Err(error)),
                }
            }
        };
        let bytes = payload.len() as u64;
        let limit = delivery.network.transport().config().max_send_bytes();
        if !local.outstanding.has_room(bytes, limit) {
            return Some(Err(CommandError::SendFull { limit: "max_send_bytes" }));
        }
        let key = delivery.calls.next_key();
        let tracer = &mut delivery.observation.tracer;
        let slow_watch = tracer.watch_local_call(key.cookie(), to, time.clock());
        let sent = match &mut path {
            CallVia::Batch(batch) => batch.send(key.cookie(), payload.slices()).map(Some),
            CallVia::Pair(pair) => pair.send(key.cookie(), payload.slices()).map(Some),
            CallVia::Cork(_) => Ok(None),
        };
        let ticket = match sent {
            Ok(ticket) => ticket,
            // The end of the pair has not been received yet.
            Err(SendError::Disconnected(_)) => return None,
            Err(error) => return Some(Err(command_error(error))),
        };
        let LocalCallOptions { deadline, made, idempotent, cookie } = options;
        let payload = std::mem::take(payload);
        let timed = delivery.observation.time_local_call();
        let timer = (timed.is_some() || slow_watch.is_some())
            .then(|| Box::new(LocalTimer { timed, slow_watch }));
        let call = LocalCall { pair: number, ticket, deadline, idempotent, payload, timer };
        let inserted = delivery.calls.insert_local(call, made, cookie);
        debug_assert_eq!(inserted, key, "the id names the call");
        local.outstanding.insert(key, bytes, deadline);
        delivery.observation.counters.local_calls += 1;
        if let CallVia::Cork(pair) = path {
            let message = CorkedMessage { pair, content: Content::Call(key) };
            local.hold_back(message, delivery.calls);
        }
        Some(Ok(key))
    }

    /// Cancels a call that has been removed from the table of calls.
    pub(crate) fn cancel(&mut self, key: Key, number: u64, call: &LocalCall) {
        if let Some(pair) = self.local.pair(number) {
            // Fails if the pair has ended: then no server works on it.
            let _ = pair.cancel(key.cookie());
        }
        self.release(key, call.payload.len(), call.deadline);
    }

    /// Frees the resources of a call.
    #[inline]
    fn release(&mut self, key: Key, bytes: usize, deadline: Option<Instant>) {
        if self.local.outstanding.remove(key, bytes as u64, deadline) {
            self.delivery.notify_room();
        }
    }

    /// Ends a call, as the server at the other end of the pair reports. Returns whether packets
    /// must leave over the network.
    #[must_use]
    pub(super) fn end_call(
        &mut self,
        number: u64,
        id: u64,
        result: Result<Bytes, RpcError>,
    ) -> bool {
        let key = Key::from_cookie(id);
        // LOCALCALL-1: the call may have been cancelled, or the peer may lie.
        let Some((call, rpc)) = self.delivery.calls.take_local(key, number) else { return false };
        self.release(key, call.payload.len(), call.deadline);
        let mut must_transmit = false;
        if let Ok(payload) = &result {
            let delivery = &mut self.delivery;
            delivery.network.transport_mut().charge_external_payload(payload.len());
            stage(rpc, Event::LocalReceived, payload.len());
            if let Some(timer) = call.timer {
                let LocalTimer { timed, slow_watch } = *timer;
                if let Some(timed) = timed {
                    delivery.observation.record_local_call(timed, rpc, self.time.clock());
                }
                if let Some(watch) = slow_watch {
                    must_transmit = self.freeze_if_slow(watch);
                }
            }
        }
        self.delivery.end_call(id, result);
        must_transmit
    }

    /// Freezes the trace if a call that has ended was slow. Returns whether peers must do the same:
    /// no other packet may leave for a while.
    fn freeze_if_slow(&mut self, watch: SlowWatch) -> bool {
        let now = self.time.read_clock();
        let tracer = &mut self.delivery.observation.tracer;
        tracer.local_call_ended(watch, now);
        tracer.freezes_peers()
    }

    /// Ends the calls whose deadlines have passed.
    pub(crate) fn handle_timers(&mut self) {
        let now = self.time.now();
        while let Some(key) = self.local.outstanding.expired(now) {
            let Some(call) = self.delivery.calls.local(key) else {
                unreachable!("deadlines belong to outstanding calls")
            };
            let number = call.pair;
            // A cork still holds back a call without a ticket, and skips it from now on.
            let execution = if call.ticket.is_none() {
                Execution::NotExecuted
            } else {
                if let Some(pair) = self.local.pair(number) {
                    let _ = pair.cancel(key.cookie());
                }
                Execution::Unknown
            };
            self.fail_call(number, key, FailureKind::DeadlineExceeded, execution);
        }
        self.local.expire_drain_check(now);
    }

    fn fail_call(&mut self, pair: u64, key: Key, kind: FailureKind, execution: Execution) {
        let must_transmit = self.end_call(pair, key.cookie(), Err(RpcError { kind, execution }));
        debug_assert!(!must_transmit, "only a response can be slow");
    }

    /// Ends the calls of a pair that has ended. Calls that the server has not read, and idempotent
    /// ones, are repeated over the network instead.
    pub(super) fn pair_ended(&mut self, pair: &Arc<Pair>, why: Disconnected) {
        let number = pair.number();
        let to = self.local.routes.forget(number);
        self.local.clients.forget(number);
        self.local.served.forget_pair(number);
        self.delivery.watches.pair_ended(number);
        self.delivery.observation.counters.local_pairs_ended += 1;
        let all = self.delivery.calls.all_local();
        for (_, key) in all.into_iter().filter(|(other, _)| *other == number) {
            let Some(call) = self.delivery.calls.local(key) else { continue };
            let read = call.ticket.is_some_and(|ticket| pair.may_have_arrived(ticket));
            let repeat_to = to.filter(|_| !read || call.idempotent);
            if !repeat_to.is_some_and(|to| self.repeat_over_network(key, to)) {
                let execution = if read { Execution::Unknown } else { Execution::NotExecuted };
                self.fail_call(number, key, failure_kind(why), execution);
            }
        }
        // A thread that waited for room in the pair tries again, over the network.
        self.delivery.notify_room();
    }

    /// Repeats a call over the network whose pair has ended. Returns whether the protocol accepted
    /// it.
    fn repeat_over_network(&mut self, key: Key, to: SocketAddr) -> bool {
        let now = self.time.now();
        let Delivery { network, calls, .. } = &mut self.delivery;
        let Some(local) = calls.local(key) else { return false };
        let LocalCall { deadline, idempotent, .. } = *local;
        let bytes = local.payload.len();
        let sent = network.send_payload(&mut local.payload, |transport, payload| {
            transport.call(now, Call { to, payload, cookie: key.cookie(), deadline, idempotent })
        });
        let Ok(rpc) = sent else { return false };
        self.release(key, bytes, deadline);
        self.delivery.observation.counters.local_fallbacks += 1;
        self.delivery.calls.reroute(key, rpc);
        true
    }

    /// Ends all calls and pairs: the endpoint is closed.
    pub(crate) fn close(&mut self) {
        self.local.routes.clear();
        self.local.clients.clear();
        self.local.path.local.close();
        for (pair, key) in self.delivery.calls.all_local() {
            self.fail_call(pair, key, FailureKind::ShutDown, Execution::Unknown);
        }
    }
}
