//! Which calls are under way, and who waits for each?

use super::core::Ended;
use super::handoff::From;
use super::medium::Medium;
use super::metrics::EngineMetrics;
use super::tracer::{SlowWatch, handed_off, stage};
use super::waiter::{Notice, Waiter};
use super::wake_list::WakeList;
use apus_local::SendTicket;
use apus_proto::{Instant, Payload, RpcError, RpcKey};
use apus_trace::{Event, Rpc};
use bytes::Bytes;
use slab::Slab;
use std::sync::Arc;

/// Calls whose end has not been taken yet. A call's key is the cookie that the core gives back, and its id in
/// shared memory.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    slots: Slab<Call>,
    /// Of the next call: tells it from earlier ones in the same slot.
    serial: u32,
}

/// Names a call until its end is taken; no other call has it for four billion calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    slot: u32,
    serial: u32,
}

#[derive(Debug)]
struct Call {
    serial: u32,
    way: Medium,
    /// If it goes through memory.
    local: Option<LocalCall>,
    receipt: Receipt,
    /// If it is traced.
    rpc: Option<Rpc>,
}

/// How a call has ended.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) result: Result<Bytes, RpcError>,
    /// If it is traced.
    pub(crate) rpc: Option<Rpc>,
}

impl Response {
    /// The application gets it.
    pub(crate) fn give(self) -> Result<Bytes, RpcError> {
        stage(self.rpc, Event::Returned, self.result.as_ref().map_or(0, Bytes::len));
        self.result
    }
}

/// What is known of a call that goes through memory.
#[derive(Debug)]
pub(super) struct LocalCall {
    /// Number of the pair.
    pub(super) pair: u64,
    /// `None` while it is held back.
    pub(super) ticket: Option<SendTicket>,
    pub(super) deadline: Option<Instant>,
    /// Whether it may be executed twice.
    pub(super) idempotent: bool,
    /// The request: if the pair ends, it may go over the network.
    pub(super) payload: Payload,
    /// If it is timed: when it began, and for how many calls it counts.
    pub(super) timed: Option<(std::time::Instant, u64)>,
    /// If it freezes the trace when it is slow.
    pub(super) slow_watch: Option<SlowWatch>,
}

/// What a call through memory occupies until it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(super) deadline: Option<Instant>,
    /// Of the request.
    pub(super) bytes: usize,
    pub(super) timed: Option<(std::time::Instant, u64)>,
    pub(super) slow_watch: Option<SlowWatch>,
}

impl LocalCall {
    pub(super) fn held(&self) -> Held {
        let Self { deadline, timed, slow_watch, .. } = *self;
        Held { deadline, bytes: self.payload.len(), timed, slow_watch }
    }
}

/// How a call's end is received.
#[derive(Debug)]
enum Receipt {
    /// By whoever made the call (the kernel's private RPCs, row H-4).
    Private { waiter: Option<Arc<Waiter>>, result: Option<From<Response>> },
    /// By anybody who receives, together with this value.
    Shared { cookie: u64 },
}

impl Receipt {
    /// That of a shared call with this cookie, or of a private one.
    fn new(cookie: Option<u64>) -> Self {
        cookie
            .map_or(Self::Private { waiter: None, result: None }, |cookie| Self::Shared { cookie })
    }
}

impl Calls {
    /// The key that the next call will get.
    pub(crate) fn next_key(&self) -> Key {
        // `max_client_rpcs` is less than 2^32.
        Key { slot: self.slots.vacant_key() as u32, serial: self.serial }
    }

    /// Adds a call over the network: with a cookie anybody receives its end, without only its caller.
    pub(crate) fn insert(&mut self, rpc: RpcKey, cookie: Option<u64>) -> Key {
        self.add(Medium::Network(rpc), None, cookie)
    }

    /// Adds a call through memory.
    pub(super) fn insert_local(&mut self, call: LocalCall, cookie: Option<u64>) -> Key {
        self.add(Medium::Local(call.pair), Some(call), cookie)
    }

    fn add(&mut self, way: Medium, local: Option<LocalCall>, cookie: Option<u64>) -> Key {
        let key = self.next_key();
        self.serial = self.serial.wrapping_add(1);
        let receipt = Receipt::new(cookie);
        self.slots.insert(Call { serial: key.serial, way, local, receipt, rpc: None });
        key
    }

    fn get(&self, key: Key) -> Option<&Call> {
        self.slots.get(key.slot as usize).filter(|call| call.serial == key.serial)
    }

    fn get_mut(&mut self, key: Key) -> Option<&mut Call> {
        self.slots.get_mut(key.slot as usize).filter(|call| call.serial == key.serial)
    }

    /// A call is traced.
    pub(crate) fn trace(&mut self, key: Key, rpc: Rpc) {
        if let Some(call) = self.get_mut(key) {
            call.rpc = Some(rpc);
        }
    }

    /// What a call is traced as, if it is.
    pub(super) fn rpc(&self, key: Key) -> Option<Rpc> {
        self.get(key)?.rpc
    }

    /// What is known of a call through memory that has not ended.
    pub(super) fn local(&mut self, key: Key) -> Option<&mut LocalCall> {
        self.get_mut(key)?.local.as_mut()
    }

    /// The request of a call through memory has left.
    pub(super) fn sent(&mut self, key: Key, ticket: SendTicket) {
        if let Some(call) = self.local(key) {
            call.ticket = Some(ticket);
        }
    }

    /// All calls through memory that have not ended, with the numbers of their pairs.
    pub(super) fn all_local(&self) -> Vec<(u64, Key)> {
        let all = self.slots.iter();
        let key = |slot: usize, call: &Call| Key { slot: slot as u32, serial: call.serial };
        all.filter_map(|(slot, call)| Some((call.local.as_ref()?.pair, key(slot, call)))).collect()
    }

    /// A call that went through memory goes over the network now.
    pub(super) fn reroute(&mut self, key: Key, rpc: RpcKey) {
        if let Some(call) = self.get_mut(key) {
            call.way = Medium::Network(rpc);
            call.local = None;
        }
    }

    /// Calls whose end has not been taken, or made available to anybody.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The result of a private call, once; the call is forgotten then.
    pub(crate) fn take(&mut self, key: Key) -> Option<From<Response>> {
        let Call { receipt: Receipt::Private { result, .. }, .. } = self.get_mut(key)? else {
            return None;
        };
        let result = result.take()?;
        self.slots.remove(key.slot as usize);
        Some(result)
    }

    /// Whoever made a private call waits for its end.
    pub(crate) fn enlist(&mut self, key: Key, new: Arc<Waiter>) {
        if let Some(Call { receipt: Receipt::Private { waiter, .. }, .. }) = self.get_mut(key) {
            *waiter = Some(new);
        }
    }

    /// It does not wait any more.
    pub(crate) fn delist(&mut self, key: Key) {
        if let Some(Call { receipt: Receipt::Private { waiter, .. }, .. }) = self.get_mut(key) {
            *waiter = None;
        }
    }

    /// Forgets a call that nobody wants any more. What it was: under way, and to be cancelled, or a response of so many
    /// bytes that nobody takes.
    pub(crate) fn abandon(&mut self, key: Key) -> Option<Abandoned> {
        self.get(key)?;
        let call = self.slots.remove(key.slot as usize);
        match (call.receipt, call.way) {
            (Receipt::Private { result: Some(result), .. }, _) => {
                Some(Abandoned::Ended(result.message.result.map_or(0, |bytes| bytes.len())))
            }
            (_, Medium::Network(rpc)) => Some(Abandoned::Running(rpc)),
            (_, Medium::Local(pair)) => {
                let held = call.local?.held();
                Some(Abandoned::RunningLocally { pair, held })
            }
        }
    }

    /// What a call occupies that goes over the pair with this number and has not ended.
    pub(super) fn held_by(&self, key: Key, pair: u64) -> Option<Held> {
        let local = self.get(key).filter(|call| call.way == Medium::Local(pair))?.local.as_ref()?;
        Some(local.held())
    }

    /// A call has ended. A private one's caller is told; the end of a shared one is returned, for
    /// anybody to receive.
    pub(super) fn end(
        &mut self,
        key: Key,
        ended: From<Response>,
        wakes: &mut WakeList,
        metrics: &mut EngineMetrics,
    ) -> Option<Ended> {
        let call = self.get_mut(key)?;
        call.local = None;
        match &mut call.receipt {
            Receipt::Private { waiter, result } => {
                let rpc = ended.message.rpc;
                *result = Some(ended);
                if let Some(waiter) = waiter.take() {
                    handed_off(rpc, waiter.name());
                    metrics.handoffs += 1;
                    wakes.notify(waiter, Notice::Ready);
                }
                None
            }
            Receipt::Shared { cookie } => {
                let cookie = *cookie;
                self.slots.remove(key.slot as usize);
                let Response { result, rpc } = ended.message;
                Some(Ended { cookie, result, rpc })
            }
        }
    }
}

impl Key {
    /// The cookie that the core gives back.
    pub(crate) const fn cookie(self) -> u64 {
        (self.serial as u64) << 32 | self.slot as u64
    }

    /// The key with this cookie.
    pub(crate) const fn from_cookie(cookie: u64) -> Self {
        Self { slot: cookie as u32, serial: (cookie >> 32) as u32 }
    }
}

/// What became of a call that nobody wants any more.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Abandoned {
    /// It was under way over the network.
    Running(RpcKey),
    /// It was under way through memory.
    RunningLocally { pair: u64, held: Held },
    /// It had ended with a response of so many bytes.
    Ended(usize),
}
