//! The table of calls whose completion has not been received.

use super::message::{EndedCall, Taken};
use crate::engine::handoff::{Delivered, Notice, ThreadToken, Waiter, WakeList};
use crate::engine::tracer::{SlowWatch, record_handoff, stage};
use apus_local::SendTicket;
use apus_observe::EngineMetrics;
use apus_proto::{Instant, Payload, RpcError, RpcKey};
use apus_trace::{Event, Rpc};
use bytes::Bytes;
use slab::Slab;
use std::sync::Arc;

/// Calls whose completion has not been received. A call's key is its cookie in the protocol and its
/// id in shared memory.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    slots: Slab<Call>,
    /// Additional state of calls through shared memory, until they end. Kept outside of the calls:
    /// a call over the network is copied into its slot and out of it.
    local: Slab<LocalCall>,
    /// The serial number of the next call: distinguishes it from earlier ones in the same slot.
    serial: u32,
}

/// Names a call until its completion is received. It is not used again for four billion calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    slot: u32,
    serial: u32,
}

/// The path of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallPath {
    /// Over the network.
    Network(RpcKey),
    /// Through shared memory, over the pair with this number. Its id is the call's key.
    Local(u64),
}

#[derive(Debug)]
struct Call {
    serial: u32,
    path: CallPath,
    /// Its index in the table of calls through shared memory; `None` if it uses the network or has
    /// ended.
    local: Option<u32>,
    /// Its interval of the [timeout](crate::engine::state::CallTimeout); `None` if it has a
    /// deadline, or no limit at all.
    made: Option<u32>,
    receipt: Receipt,
    /// `None` if it is not traced.
    rpc: Option<Rpc>,
}

/// The end of a call whose caller waits for it.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) result: Result<Bytes, RpcError>,
    /// `None` if it is not traced.
    pub(crate) rpc: Option<Rpc>,
}

impl Response {
    /// Returns the result to the application, and records that.
    pub(crate) fn into_result(self) -> Result<Bytes, RpcError> {
        stage(self.rpc, Event::Returned, self.result.as_ref().map_or(0, Bytes::len));
        self.result
    }
}

/// A call through shared memory that has not ended.
#[derive(Debug)]
pub(crate) struct LocalCall {
    /// The number of its pair.
    pub(crate) pair: u64,
    /// `None` while a cork holds it back.
    pub(crate) ticket: Option<SendTicket>,
    pub(crate) deadline: Option<Instant>,
    /// Whether executing the request twice is harmless.
    pub(crate) idempotent: bool,
    /// The request. If the pair ends, it may be repeated over the network.
    pub(crate) payload: Payload,
    /// `None` for most calls, so that these are smaller.
    pub(crate) timer: Option<Box<LocalTimer>>,
}

/// Timing of a call through shared memory.
#[derive(Debug)]
pub(crate) struct LocalTimer {
    /// Its start, and the number of calls that it counts for; `None` if its duration is not
    /// recorded.
    pub(crate) timed: Option<(std::time::Instant, u64)>,
    /// `None` unless the trace is frozen if it is slow.
    pub(crate) slow_watch: Option<SlowWatch>,
}

/// How the completion of a call is received.
#[derive(Debug)]
enum Receipt {
    /// By the thread or task that made the call (the kernel's private RPCs,
    /// HM `homa_incoming.c` `homa_wait_private`).
    Private { waiter: Option<Arc<Waiter>>, result: Option<Delivered<Response>> },
    /// By any thread that receives completions, together with this cookie.
    Shared { cookie: u64 },
}

impl Receipt {
    /// Returns the key of a shared call with this cookie, or of a private one.
    fn new(cookie: Option<u64>) -> Self {
        cookie
            .map_or(Self::Private { waiter: None, result: None }, |cookie| Self::Shared { cookie })
    }
}

impl Calls {
    /// Returns the key of the next call.
    pub(crate) fn next_key(&self) -> Key {
        // `max_client_rpcs` is less than 2^32.
        Key { slot: self.slots.vacant_key() as u32, serial: self.serial }
    }

    /// Adds a call over the network that was `made` in this interval of the timeout, if it has one.
    /// With a cookie any thread may receive its completion, without one only its caller.
    pub(crate) fn insert(&mut self, rpc: RpcKey, made: Option<u32>, cookie: Option<u64>) -> Key {
        self.add(CallPath::Network(rpc), None, made, cookie)
    }

    /// Adds a call through shared memory.
    pub(crate) fn insert_local(
        &mut self,
        call: LocalCall,
        made: Option<u32>,
        cookie: Option<u64>,
    ) -> Key {
        let path = CallPath::Local(call.pair);
        // As many as calls, so less than 2^32.
        let local = self.local.insert(call) as u32;
        self.add(path, Some(local), made, cookie)
    }

    fn add(
        &mut self,
        path: CallPath,
        local: Option<u32>,
        made: Option<u32>,
        cookie: Option<u64>,
    ) -> Key {
        let key = self.next_key();
        self.serial = self.serial.wrapping_add(1);
        let receipt = Receipt::new(cookie);
        self.slots.insert(Call { serial: key.serial, path, local, made, receipt, rpc: None });
        key
    }

    /// Removes the additional state of a call through shared memory, if it has any.
    fn remove_local(&mut self, at: Option<u32>) -> Option<LocalCall> {
        at.map(|at| self.local.remove(at as usize))
    }

    fn get(&self, key: Key) -> Option<&Call> {
        self.slots.get(key.slot as usize).filter(|call| call.serial == key.serial)
    }

    fn get_mut(&mut self, key: Key) -> Option<&mut Call> {
        self.slots.get_mut(key.slot as usize).filter(|call| call.serial == key.serial)
    }

    /// Sets the RPC of a traced call.
    pub(crate) fn trace(&mut self, key: Key, rpc: Rpc) {
        if let Some(call) = self.get_mut(key) {
            call.rpc = Some(rpc);
        }
    }

    /// Returns a call through shared memory that has not ended.
    pub(crate) fn local(&mut self, key: Key) -> Option<&mut LocalCall> {
        let at = self.get(key)?.local?;
        self.local.get_mut(at as usize)
    }

    /// Notes that the request of a call through shared memory, which was held back, was sent.
    pub(crate) fn sent(&mut self, key: Key, ticket: SendTicket) {
        if let Some(call) = self.local(key) {
            call.ticket = Some(ticket);
        }
    }

    /// Returns all calls through shared memory that have not ended, with the numbers of their
    /// pairs.
    pub(crate) fn all_local(&self) -> Vec<(u64, Key)> {
        let all = self.slots.iter();
        let key = |slot: usize, call: &Call| Key { slot: slot as u32, serial: call.serial };
        let pair = |at: u32| self.local[at as usize].pair;
        all.filter_map(|(slot, call)| Some((pair(call.local?), key(slot, call)))).collect()
    }

    /// Takes the timeout from the calls for which it `is_overdue`, and returns those that have not
    /// ended.
    pub(crate) fn overdue(&mut self, is_overdue: impl Fn(u32) -> bool) -> Vec<OverdueCall> {
        let mut overdue = Vec::new();
        for (slot, call) in &mut self.slots {
            if call.made.take_if(|made| is_overdue(*made)).is_none() {
                continue;
            }
            let key = Key { slot: slot as u32, serial: call.serial };
            match call.path {
                CallPath::Network(rpc) => overdue.push(OverdueCall::Network(rpc)),
                CallPath::Local(_) if call.local.is_some() => overdue.push(OverdueCall::Local(key)),
                CallPath::Local(_) => {}
            }
        }
        overdue
    }

    /// Notes that a call through shared memory is repeated over the network.
    pub(crate) fn reroute(&mut self, key: Key, rpc: RpcKey) {
        if let Some(call) = self.get_mut(key) {
            call.path = CallPath::Network(rpc);
            let at = call.local.take();
            self.remove_local(at);
        }
    }

    /// Returns the number of calls in the table.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns whether the table is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Takes the response to a private call if it is there, and removes the call.
    pub(crate) fn take(&mut self, key: Key) -> Option<Delivered<Response>> {
        let Call { receipt: Receipt::Private { result, .. }, .. } = self.get_mut(key)? else {
            return None;
        };
        let result = result.take()?;
        self.slots.remove(key.slot as usize);
        Some(result)
    }

    /// Sets the waiter of a private call.
    pub(crate) fn enlist(&mut self, key: Key, new: Arc<Waiter>) {
        if let Some(Call { receipt: Receipt::Private { waiter, .. }, .. }) = self.get_mut(key) {
            *waiter = Some(new);
        }
    }

    /// Removes the waiter of a private call.
    pub(crate) fn delist(&mut self, key: Key) {
        if let Some(Call { receipt: Receipt::Private { waiter, .. }, .. }) = self.get_mut(key) {
            *waiter = None;
        }
    }

    /// Removes a call that is cancelled. Returns the remaining work for it; `None` if there is no
    /// such call.
    pub(crate) fn abandon(&mut self, key: Key) -> Option<Abandoned> {
        self.get(key)?;
        let call = self.slots.remove(key.slot as usize);
        match (call.receipt, call.path) {
            (Receipt::Private { result: Some(result), .. }, _) => {
                Some(Abandoned::Ended(Taken::from_result(&result.message.result)))
            }
            (_, CallPath::Network(rpc)) => Some(Abandoned::Running(rpc)),
            (_, CallPath::Local(pair)) => {
                let call = self.remove_local(call.local)?;
                Some(Abandoned::RunningLocally { pair, call })
            }
        }
    }

    /// Takes the additional state of a call through the pair with this number that has not ended:
    /// [`Calls::end`] follows. Also returns its RPC, if it is traced.
    pub(crate) fn take_local(&mut self, key: Key, pair: u64) -> Option<(LocalCall, Option<Rpc>)> {
        let call = self.get_mut(key).filter(|call| call.path == CallPath::Local(pair))?;
        let (at, rpc) = (call.local.take()?, call.rpc);
        Some((self.local.remove(at as usize), rpc))
    }

    /// Ends a call whose end the thread `by` has received. Notifies the waiter of a private one,
    /// and returns the completion of a shared one.
    pub(crate) fn end(
        &mut self,
        key: Key,
        result: Result<Bytes, RpcError>,
        by: ThreadToken,
        wakes: &mut WakeList,
        metrics: &mut EngineMetrics,
    ) -> Option<EndedCall> {
        let call =
            self.slots.get_mut(key.slot as usize).filter(|call| call.serial == key.serial)?;
        debug_assert!(call.local.is_none(), "taken before");
        let rpc = call.rpc;
        match &mut call.receipt {
            Receipt::Private { waiter, result: ended } => {
                *ended = Some(Delivered { message: Response { result, rpc }, by });
                if let Some(waiter) = waiter.take() {
                    record_handoff(rpc, waiter.name());
                    metrics.handoffs += 1;
                    wakes.notify(waiter, Notice::Ready);
                }
                None
            }
            Receipt::Shared { cookie } => {
                let cookie = *cookie;
                self.slots.remove(key.slot as usize);
                Some(EndedCall { cookie, result, rpc })
            }
        }
    }
}

impl Key {
    /// Returns the key as a cookie for the protocol.
    pub(crate) const fn cookie(self) -> u64 {
        (self.serial as u64) << 32 | self.slot as u64
    }

    /// Returns the key with this cookie.
    pub(crate) const fn from_cookie(cookie: u64) -> Self {
        Self { slot: cookie as u32, serial: (cookie >> 32) as u32 }
    }
}

/// A call whose timeout has passed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OverdueCall {
    /// It uses the network, and may have ended.
    Network(RpcKey),
    /// It uses shared memory.
    Local(Key),
}

/// The state of a call that is cancelled.
#[derive(Debug)]
pub(crate) enum Abandoned {
    /// It was outstanding over the network.
    Running(RpcKey),
    /// It was outstanding through shared memory.
    RunningLocally { pair: u64, call: LocalCall },
    /// It had ended.
    Ended(Taken),
}
