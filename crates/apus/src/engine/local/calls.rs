//! What becomes of calls that go through memory?

use super::cork::{CorkedMessages, Message, What};
use super::path::Path;
use super::routes::Routes;
use crate::call::CallOptions;
use crate::engine::calls::{Held, Key, LocalCall};
use crate::engine::core::Core;
use crate::engine::tracer::{SlowWatch, stage};
use apus_local::{Disconnected, Pair, SendError};
use apus_proto::{Call, CommandError, Execution, FailureKind, Instant, Payload, RpcError};
use apus_trace::Event;
use std::collections::{BTreeSet, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// What an endpoint knows of its calls and requests in memory. Lives under the core lock.
#[derive(Debug)]
pub(crate) struct Underway {
    pub(super) path: Path,
    pub(crate) routes: Routes,
    /// Calls that have not ended.
    calls: usize,
    /// Bytes of their requests.
    bytes: u64,
    /// Whether a call was refused because of them.
    wants_room: bool,
    deadlines: BTreeSet<(Instant, Key)>,
    /// What a cork holds back.
    pub(super) held: CorkedMessages,
    /// Requests that were neither answered nor let go (W2).
    pub(super) serving: u64,
    /// Those of them, by pair and id, whose answers nobody wants.
    pub(super) cancelled: HashSet<(u64, u64)>,
    /// When to look whether the peers have read everything, if somebody waits for that: they do not say so.
    drain_check_at: Option<Instant>,
}

/// Nanoseconds between two looks whether peers have read everything.
const DRAIN_CHECK_INTERVAL: Duration = Duration::from_micros(200);

impl Underway {
    pub(crate) fn new(path: Path) -> Self {
        Self {
            path,
            routes: Routes::default(),
            calls: 0,
            bytes: 0,
            wants_room: false,
            deadlines: BTreeSet::new(),
            held: CorkedMessages::default(),
            serving: 0,
            cancelled: HashSet::new(),
            drain_check_at: None,
        }
    }

    /// When something is to be done even if nothing comes.
    pub(in crate::engine) fn next_due(&self) -> Instant {
        let deadline = self.deadlines.first().map_or(Instant::NEVER, |(at, _)| *at);
        deadline.min(self.drain_check_at.unwrap_or(Instant::NEVER))
    }

    /// Whether peers have read everything and answered all calls.
    pub(in crate::engine) fn is_drained(&self) -> bool {
        self.calls == 0
            && self.held.is_empty()
            && self.path.local.pairs().iter().all(|pair| pair.is_drained())
    }

    /// Somebody waits until they have.
    pub(in crate::engine) fn schedule_drain_check(&mut self, now: Instant) {
        self.drain_check_at.get_or_insert(now + DRAIN_CHECK_INTERVAL);
    }

    /// A call has ended, or is let go. Whether somebody waits for the room that it has made.
    fn ended(&mut self, key: Key, held: Held) -> bool {
        self.calls -= 1;
        self.bytes -= held.bytes as u64;
        if let Some(at) = held.deadline {
            self.deadlines.remove(&(at, key));
        }
        std::mem::take(&mut self.wants_room)
    }
}

impl Core {
    /// Sends a call through memory, if that is its way; `None`: it goes over the network.
    pub(crate) fn call_locally(
        &mut self,
        to: SocketAddr,
        payload: &mut Payload,
        options: CallOptions,
        cookie: Option<u64>,
    ) -> Option<Result<Key, CommandError>> {
        let holds_back = match self.local {
            Some(_) => self.holds_back_locally(payload),
            None => return None,
        };
        let local = self.local.as_mut()?;
        let pair = local.routes.pair(to, self.time, &local.path.local)?;
        let held = match holds_back {
            Ok(holds_back) => holds_back.then(|| pair.clone()),
            Err(error) => return Some(Err(error)),
        };
        let bytes = payload.len() as u64;
        if local.bytes > 0 && local.bytes + bytes > self.transport.config().max_send_bytes() {
            local.wants_room = true;
            return Some(Err(CommandError::SendFull { limit: "max_send_bytes" }));
        }
        let number = pair.number();
        let key = self.calls.next_key();
        let slow_watch = self.tracer.watch_locally(key.cookie(), to, self.clock);
        let ticket = match held {
            Some(_) => None,
            None => match pair.send(key.cookie(), payload.slices()) {
                Ok(ticket) => Some(ticket),
                // The end of the pair has not been received yet.
                Err(SendError::Disconnected(_)) => return None,
                Err(error) => return Some(Err(command_error(error))),
            },
        };
        let deadline = options.deadline.map(|at| self.clock.convert(at));
        let CallOptions { idempotent, .. } = options;
        let payload = std::mem::take(payload);
        let timed = self.time_local_call();
        let call =
            LocalCall { pair: number, ticket, deadline, idempotent, payload, timed, slow_watch };
        let inserted = self.calls.insert_local(call, cookie);
        debug_assert_eq!(inserted, key, "the id names the call");
        if let Some(local) = &mut self.local {
            local.calls += 1;
            local.bytes += bytes;
            local.deadlines.extend(deadline.map(|at| (at, key)));
        }
        self.metrics.local_calls += 1;
        if let Some(pair) = held {
            self.hold_back_locally(Message { pair, what: What::Call(key) });
        }
        Some(Ok(key))
    }

    /// The caller does not want the end of a call any more. It is no longer among the calls.
    pub(crate) fn cancel_locally(&mut self, key: Key, number: u64, held: Held) {
        let Some(local) = &mut self.local else { return };
        if let Some(pair) = local.pair(number) {
            // If it has ended, there is nobody to tell.
            let _ = pair.cancel(key.cookie());
        }
        self.let_go(key, held);
    }

    /// What a call held is free again.
    fn let_go(&mut self, key: Key, held: Held) {
        if self.local.as_mut().is_some_and(|local| local.ended(key, held)) {
            self.notify_room();
        }
    }

    /// A call has ended, as the server at the other end of this pair says.
    pub(super) fn end_locally(
        &mut self,
        number: u64,
        id: u64,
        result: Result<bytes::Bytes, RpcError>,
    ) {
        let key = Key::from_cookie(id);
        // W1: it may be one that was cancelled, or a lie.
        let Some(held) = self.calls.held_by(key, number) else { return };
        self.let_go(key, held);
        if let Ok(payload) = &result {
            self.transport.charge_external_payload(payload.len());
            stage(self.calls.rpc(key), Event::LocalReceived, payload.len());
            if let Some((began, times)) = held.timed {
                self.local_calls.record(began.elapsed().as_nanos() as u64, times);
            }
            if let Some(slow_watch) = held.slow_watch {
                self.see_whether_slow(slow_watch);
            }
        }
        self.end_call(id, result);
    }

    /// A call has ended that freezes the trace if it was slow.
    fn see_whether_slow(&mut self, slow_watch: SlowWatch) {
        self.read_clock();
        self.tracer.ended_locally(slow_watch, self.time);
        if self.tracer.freezes_peers() {
            // Nothing else may leave for long.
            self.transmit();
        }
    }

    /// Ends the calls whose deadlines have passed; looks whether peers have read everything, if somebody wants to
    /// know.
    pub(in crate::engine) fn handle_local_timers(&mut self) {
        let now = self.time;
        while let Some(local) = &mut self.local
            && let Some((_, key)) = local.deadlines.first().copied().filter(|(at, _)| *at <= now)
        {
            let Some(call) = self.calls.local(key) else {
                unreachable!("the deadlines are those of calls")
            };
            let number = call.pair;
            if let Some(pair) = local.pair(number) {
                let _ = pair.cancel(key.cookie());
            }
            let (reason, outcome) = (FailureKind::DeadlineExceeded, Execution::Unknown);
            self.end_locally(
                number,
                key.cookie(),
                Err(RpcError { kind: reason, execution: outcome }),
            );
        }
        if let Some(local) = &mut self.local {
            local.drain_check_at = local.drain_check_at.filter(|at| *at > now);
        }
    }

    /// A pair has ended. Its calls end, or go over the network: those that the server has not read, and those that
    /// may be executed twice.
    pub(super) fn pair_ended(&mut self, pair: &Arc<Pair>, why: Disconnected) {
        let number = pair.number();
        let Some(local) = &mut self.local else { return };
        let to = local.routes.forget(number);
        local.cancelled.retain(|(other, _)| *other != number);
        self.metrics.local_pairs_ended += 1;
        let all = self.calls.all_local();
        for (_, key) in all.into_iter().filter(|(other, _)| *other == number) {
            let Some(call) = self.calls.local(key) else { continue };
            let read = call.ticket.is_some_and(|ticket| pair.may_have_arrived(ticket));
            let again = to.filter(|_| !read || call.idempotent);
            if !again.is_some_and(|to| self.call_again(key, to)) {
                let outcome = if read { Execution::Unknown } else { Execution::NotExecuted };
                let reason = reason(why);
                self.end_locally(
                    number,
                    key.cookie(),
                    Err(RpcError { kind: reason, execution: outcome }),
                );
            }
        }
        self.transmit();
        // Whoever waited for room in it tries again, and takes the other way.
        self.notify_room();
    }

    /// Sends a call over the network whose pair has ended; whether it could be sent.
    fn call_again(&mut self, key: Key, to: SocketAddr) -> bool {
        let now = self.time;
        let Some(local) = self.calls.local(key) else { return false };
        let LocalCall { deadline, idempotent, .. } = *local;
        let held = local.held();
        let payload = std::mem::take(&mut local.payload);
        let call = Call { to, payload, cookie: key.cookie(), deadline, idempotent };
        let Ok(rpc) = self.transport.call(now, call) else { return false };
        self.let_go(key, held);
        self.metrics.local_fallbacks += 1;
        self.calls.reroute(key, rpc);
        true
    }

    /// The endpoint is closed: ends all calls and pairs.
    pub(in crate::engine) fn close_locally(&mut self) {
        let Some(local) = &mut self.local else { return };
        local.routes.clear();
        local.path.local.close();
        for (pair, key) in self.calls.all_local() {
            let error = RpcError { kind: FailureKind::ShutDown, execution: Execution::Unknown };
            self.end_locally(pair, key.cookie(), Err(error));
        }
    }
}

impl Underway {
    /// The pair with this number, if it has not ended.
    fn pair(&self, number: u64) -> Option<Arc<Pair>> {
        self.path.local.pairs().into_iter().find(|pair| pair.number() == number)
    }
}

/// What is full if a ring is.
const ROOM: &str = "the room in the memory shared with the peer";

/// What the caller is told if a message is not accepted.
pub(super) fn command_error(error: SendError) -> CommandError {
    match error {
        SendError::Empty => CommandError::EmptyMessage,
        SendError::TooLarge { length, limit } => {
            CommandError::TooLarge { length, limit: u64::from(limit) }
        }
        SendError::Disconnected(_) => CommandError::UnknownRpc,
        // Full, and what a later crate may say.
        _ => CommandError::SendFull { limit: ROOM },
    }
}

/// What the caller is told if a pair ends.
const fn reason(why: Disconnected) -> FailureKind {
    match why {
        Disconnected::Closed => FailureKind::ShutDown,
        Disconnected::Violation(_) | Disconnected::Accused => FailureKind::ProtocolBroken,
        _ => FailureKind::PeerEnded,
    }
}
