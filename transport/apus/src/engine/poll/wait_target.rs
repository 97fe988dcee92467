//! Targets of a wait: results that threads and tasks wait for, and how they take them.

use crate::engine::core::Core;
use crate::engine::handoff::{Delivered, MessageKind, ThreadToken, Waiter};
use crate::engine::state::{EndedCall, IncomingRequest, Key, Response, Taken, WaitKind};
use crate::engine::tracer::{record_taken, record_woken};
use apus_trace::Rpc;
use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Something that a thread or task waits for. All methods run under the core lock.
pub(crate) trait WaitTarget {
    /// Result for the waiter.
    type Output;

    /// Takes it if it is there, for a waiter that was not notified.
    fn take(&self, core: &mut Core) -> Option<Delivered<Self::Output>>;

    /// Takes it for a waiter that was notified. `None` if the endpoint is closed.
    fn take_notified(&self, core: &mut Core) -> Option<Delivered<Self::Output>> {
        self.take(core)
    }

    /// Adds a waiter, to be notified when it is there.
    fn enlist(&self, core: &mut Core, waiter: Arc<Waiter>);

    /// Removes a waiter that was not notified.
    fn delist(&self, core: &mut Core, waiter: &Arc<Waiter>);

    /// Returns descriptors of the application that end the sleep of a leader when one of them is
    /// readable.
    fn companions(&self) -> &[BorrowedFd<'_>] {
        &[]
    }

    /// Records that one of the companions is readable.
    fn note_companion(&self) {}

    /// Passes it on for a waiter that was notified and does not want it any more.
    #[cfg_attr(
        not(feature = "tokio"),
        expect(dead_code, reason = "only tasks are dropped while they wait")
    )]
    fn give_back(&self, _core: &mut Core) {}

    /// Returns the kinds of messages of other shards that satisfy it as well.
    fn kinds(&self) -> &'static [MessageKind] {
        &[]
    }

    /// Returns how it is counted if it is for the application.
    fn taken(_output: &Self::Output) -> Option<Taken> {
        None
    }

    /// Returns the RPC if it is a traced message.
    fn rpc(_output: &Self::Output) -> Option<Rpc> {
        None
    }
}

impl Core {
    /// Ends a pass of the loop: the leader takes its own result before other waiters are notified.
    pub(in crate::engine) fn finish_pass<W: WaitTarget>(
        &mut self,
        target: &W,
        kind: WaitKind,
    ) -> Option<W::Output> {
        if !self.is_closed() {
            self.polling().checked();
        }
        let output = self.take(target, kind);
        self.assign();
        output
    }

    /// Returns whether a thread must stop waiting for `target`: the endpoint is closed, or the
    /// thread is asked to steal from other shards.
    pub(in crate::engine) fn is_wait_over<W: WaitTarget>(&self, target: &W) -> bool {
        self.is_closed() || self.is_steal_requested(target.kinds())
    }

    /// Takes `target` if it is there, for a waiter that was not notified.
    #[inline(always)]
    pub(crate) fn take<W: WaitTarget>(&mut self, target: &W, kind: WaitKind) -> Option<W::Output> {
        let Delivered { message, by } = target.take(self)?;
        if let Some(taken) = W::taken(&message) {
            // Counts as a handoff if another thread has received the message.
            self.counters().handoffs += u64::from(by != ThreadToken::current());
            self.count_taken(taken, kind);
            record_taken(W::rpc(&message));
        }
        Some(message)
    }

    /// Takes `target` for a thread of another shard, if it is there.
    pub(crate) fn steal<W: WaitTarget>(&mut self, target: &W) -> Option<W::Output> {
        let stolen = self.take(target, WaitKind::None)?;
        self.count_steal();
        Some(stolen)
    }

    /// Passes `first`, which was waited for, and all others that are there, up to `limit` together,
    /// to `sink`. Returns their number.
    pub(crate) fn take_all<W: WaitTarget>(
        &mut self,
        target: &W,
        first: W::Output,
        limit: usize,
        mut sink: impl FnMut(W::Output),
    ) -> usize {
        sink(first);
        let mut count = 1;
        while count < limit
            && let Some(next) = self.take(target, WaitKind::None)
        {
            sink(next);
            count += 1;
        }
        count
    }

    /// Takes `target` for a waiter that was notified. If it is not there, the wake-up was spurious.
    ///
    /// `waiter` is the waiter's name in the trace, and `ended` the time of its wake-up, in ticks of
    /// the trace.
    pub(crate) fn take_notified<W: WaitTarget>(
        &mut self,
        target: &W,
        kind: WaitKind,
        (waiter, ended): (u64, u64),
    ) -> Option<W::Output> {
        let Some(Delivered { message, .. }) = target.take_notified(self) else {
            let spurious = !self.is_closed();
            self.counters().spurious_wakeups += u64::from(spurious);
            return None;
        };
        if let Some(taken) = W::taken(&message) {
            self.count_taken(taken, kind);
            record_woken(W::rpc(&message), waiter, ended);
        }
        Some(message)
    }
}

/// The next request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnyRequest;

impl WaitTarget for AnyRequest {
    type Output = IncomingRequest;

    fn take(&self, core: &mut Core) -> Option<Delivered<IncomingRequest>> {
        core.take_request()
    }

    fn take_notified(&self, core: &mut Core) -> Option<Delivered<IncomingRequest>> {
        core.take_reserved_request()
    }

    fn enlist(&self, core: &mut Core, waiter: Arc<Waiter>) {
        core.enlist_for_request(waiter);
    }

    fn delist(&self, core: &mut Core, waiter: &Arc<Waiter>) {
        core.delist_for_request(waiter);
    }

    fn give_back(&self, core: &mut Core) {
        core.give_back_request();
    }

    fn kinds(&self) -> &'static [MessageKind] {
        &[MessageKind::Request]
    }

    fn taken(arrived: &IncomingRequest) -> Option<Taken> {
        Some(Taken::Message(arrived.payload.len()))
    }

    fn rpc(arrived: &IncomingRequest) -> Option<Rpc> {
        arrived.rpc
    }
}

/// The next completion of a call whose completion any thread may receive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnyCompletion;

impl WaitTarget for AnyCompletion {
    type Output = EndedCall;

    fn take(&self, core: &mut Core) -> Option<Delivered<EndedCall>> {
        core.take_completion()
    }

    fn take_notified(&self, core: &mut Core) -> Option<Delivered<EndedCall>> {
        core.take_reserved_completion()
    }

    fn enlist(&self, core: &mut Core, waiter: Arc<Waiter>) {
        core.enlist_for_completion(waiter);
    }

    fn delist(&self, core: &mut Core, waiter: &Arc<Waiter>) {
        core.delist_for_completion(waiter);
    }

    fn give_back(&self, core: &mut Core) {
        core.give_back_completion();
    }

    fn kinds(&self) -> &'static [MessageKind] {
        &[MessageKind::Completion]
    }

    fn taken(ended: &EndedCall) -> Option<Taken> {
        Some(Taken::from_result(&ended.result))
    }

    fn rpc(ended: &EndedCall) -> Option<Rpc> {
        ended.rpc
    }
}

/// The next message of either kind, or a readable descriptor of the application.
///
/// Only the leader sees it: a follower gets its result when the poll role is passed to it.
#[derive(Debug)]
pub(crate) struct AnyArrival<'a> {
    companions: &'a [BorrowedFd<'a>],
    /// Whether one of them is readable.
    readable: Cell<bool>,
}

/// Result of [`AnyArrival`].
pub(crate) enum Arrived {
    Completion(EndedCall),
    Request(IncomingRequest),
    /// A descriptor of the application is readable.
    Companion,
}

impl<'a> AnyArrival<'a> {
    pub(crate) const fn new(companions: &'a [BorrowedFd<'a>]) -> Self {
        Self { companions, readable: Cell::new(false) }
    }
}

impl WaitTarget for AnyArrival<'_> {
    type Output = Arrived;

    fn take(&self, core: &mut Core) -> Option<Delivered<Arrived>> {
        if let Some(ended) = core.take_completion() {
            return Some(ended.map(Arrived::Completion));
        }
        if let Some(request) = core.take_request() {
            return Some(request.map(Arrived::Request));
        }
        self.readable.get().then(|| no_message(core).map(|()| Arrived::Companion))
    }

    fn enlist(&self, _core: &mut Core, _waiter: Arc<Waiter>) {}

    fn delist(&self, _core: &mut Core, _waiter: &Arc<Waiter>) {}

    fn companions(&self) -> &[BorrowedFd<'_>] {
        self.companions
    }

    fn note_companion(&self) {
        self.readable.set(true);
    }

    fn kinds(&self) -> &'static [MessageKind] {
        &MessageKind::ALL
    }

    fn taken(arrived: &Arrived) -> Option<Taken> {
        match arrived {
            Arrived::Completion(ended) => AnyCompletion::taken(ended),
            Arrived::Request(request) => AnyRequest::taken(request),
            Arrived::Companion => None,
        }
    }

    fn rpc(arrived: &Arrived) -> Option<Rpc> {
        match arrived {
            Arrived::Completion(ended) => AnyCompletion::rpc(ended),
            Arrived::Request(request) => AnyRequest::rpc(request),
            Arrived::Companion => None,
        }
    }
}

/// The end of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndOf(pub(crate) Key);

impl WaitTarget for EndOf {
    type Output = Response;

    fn take(&self, core: &mut Core) -> Option<Delivered<Response>> {
        core.take_response(self.0)
    }

    fn enlist(&self, core: &mut Core, waiter: Arc<Waiter>) {
        core.enlist_for_response(self.0, waiter);
    }

    fn delist(&self, core: &mut Core, _waiter: &Arc<Waiter>) {
        core.delist_for_response(self.0);
    }

    fn taken(response: &Response) -> Option<Taken> {
        Some(Taken::from_result(&response.result))
    }

    fn rpc(response: &Response) -> Option<Rpc> {
        response.rpc
    }
}

/// Room to send. A waiter that was notified repeats its command.
#[derive(Debug)]
pub(crate) struct Room {
    /// [`Core::room_changes`] when the command was rejected.
    pub(crate) seen: u64,
}

impl WaitTarget for Room {
    type Output = ();

    fn take(&self, core: &mut Core) -> Option<Delivered<()>> {
        (core.room_changes() != self.seen).then(|| no_message(core))
    }

    fn take_notified(&self, core: &mut Core) -> Option<Delivered<()>> {
        Some(no_message(core))
    }

    fn enlist(&self, core: &mut Core, waiter: Arc<Waiter>) {
        core.enlist_for_room(waiter);
    }

    fn delist(&self, core: &mut Core, waiter: &Arc<Waiter>) {
        core.delist_for_room(waiter);
    }
}

/// The acknowledgement of every message that this endpoint has sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllAcknowledged;

impl WaitTarget for AllAcknowledged {
    type Output = ();

    fn take(&self, core: &mut Core) -> Option<Delivered<()>> {
        core.is_drained().then(|| no_message(core))
    }

    /// Succeeds whatever has been sent since the notification.
    fn take_notified(&self, core: &mut Core) -> Option<Delivered<()>> {
        if core.is_closed() {
            return self.take(core);
        }
        Some(no_message(core))
    }

    fn enlist(&self, core: &mut Core, waiter: Arc<Waiter>) {
        core.enlist_for_drain(waiter);
    }

    fn delist(&self, core: &mut Core, waiter: &Arc<Waiter>) {
        core.delist_for_drain(waiter);
    }
}

/// No result: the loop runs until the endpoint is closed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UntilClosed;

impl WaitTarget for UntilClosed {
    type Output = ();

    fn take(&self, _core: &mut Core) -> Option<Delivered<()>> {
        None
    }

    fn enlist(&self, _core: &mut Core, _waiter: Arc<Waiter>) {}

    fn delist(&self, _core: &mut Core, _waiter: &Arc<Waiter>) {}
}

fn no_message(core: &Core) -> Delivered<()> {
    Delivered { message: (), by: core.producer() }
}
