//! Which calls are under way, and who waits for each?

use super::core::Ended;
use super::handoff::From;
use super::metrics::EngineMetrics;
use super::waiter::{Told, Waiter};
use super::wakes::Wakes;
use apus_proto::{RpcError, RpcId};
use bytes::Bytes;
use slab::Slab;
use std::sync::Arc;

/// Calls whose end has not been taken yet. A call's key is the cookie that the core gives back.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    slots: Slab<Call>,
}

/// Names a call until its end is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key(usize);

#[derive(Debug)]
struct Call {
    rpc: RpcId,
    receipt: Receipt,
}

/// How a call's end is received.
#[derive(Debug)]
enum Receipt {
    /// By whoever made the call (the kernel's private RPCs, row H-4).
    Private { waiter: Option<Arc<Waiter>>, result: Option<From<Result<Bytes, RpcError>>> },
    /// By anybody who receives, together with this value.
    Shared { cookie: u64 },
}

impl Calls {
    /// The key that the next call will get.
    pub(crate) fn next_key(&self) -> Key {
        Key(self.slots.vacant_key())
    }

    /// Adds a call whose end only its caller receives.
    pub(crate) fn insert_private(&mut self, rpc: RpcId) -> Key {
        Key(self
            .slots
            .insert(Call { rpc, receipt: Receipt::Private { waiter: None, result: None } }))
    }

    /// Adds a call whose end anybody receives.
    pub(crate) fn insert_shared(&mut self, rpc: RpcId, cookie: u64) -> Key {
        Key(self.slots.insert(Call { rpc, receipt: Receipt::Shared { cookie } }))
    }

    /// Calls whose end has not been taken, or made available to anybody.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The result of a private call, once; the call is forgotten then.
    pub(crate) fn take(&mut self, key: Key) -> Option<From<Result<Bytes, RpcError>>> {
        let Call { receipt: Receipt::Private { result, .. }, .. } = self.slots.get_mut(key.0)?
        else {
            return None;
        };
        let result = result.take()?;
        self.slots.remove(key.0);
        Some(result)
    }

    /// Whoever made a private call waits for its end.
    pub(crate) fn enlist(&mut self, key: Key, new: Arc<Waiter>) {
        if let Some(Call { receipt: Receipt::Private { waiter, .. }, .. }) =
            self.slots.get_mut(key.0)
        {
            *waiter = Some(new);
        }
    }

    /// It does not wait any more.
    pub(crate) fn delist(&mut self, key: Key) {
        if let Some(Call { receipt: Receipt::Private { waiter, .. }, .. }) =
            self.slots.get_mut(key.0)
        {
            *waiter = None;
        }
    }

    /// Forgets a call that nobody wants any more, if it is still that of `rpc`. What it was: the RPC
    /// to be cancelled, or the bytes of a response that nobody takes.
    pub(crate) fn abandon(&mut self, key: Key, rpc: Option<RpcId>) -> Option<Abandoned> {
        let call = self.slots.get(key.0)?;
        if rpc.is_some_and(|rpc| rpc != call.rpc) {
            return None;
        }
        let call = self.slots.remove(key.0);
        match call.receipt {
            Receipt::Private { result: Some(result), .. } => {
                Some(Abandoned::Ended(result.message.map_or(0, |bytes| bytes.len())))
            }
            _ => Some(Abandoned::Running(call.rpc)),
        }
    }

    /// A call has ended. A private one's caller is told; the end of a shared one is returned, for
    /// anybody to receive.
    pub(super) fn end(
        &mut self,
        key: u64,
        ended: From<Result<Bytes, RpcError>>,
        wakes: &mut Wakes,
        metrics: &mut EngineMetrics,
    ) -> Option<Ended> {
        let key = usize::try_from(key).unwrap_or(usize::MAX);
        let call = self.slots.get_mut(key)?;
        match &mut call.receipt {
            Receipt::Private { waiter, result } => {
                *result = Some(ended);
                if let Some(waiter) = waiter.take() {
                    metrics.handoffs += 1;
                    wakes.tell(waiter, Told::Ready);
                }
                None
            }
            Receipt::Shared { cookie } => {
                let cookie = *cookie;
                self.slots.remove(key);
                Some(Ended { cookie, result: ended.message })
            }
        }
    }
}

impl Key {
    /// The cookie that the core gives back.
    pub(crate) const fn cookie(self) -> u64 {
        self.0 as u64
    }
}

/// What became of a call that nobody wants any more.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Abandoned {
    /// It was under way.
    Running(RpcId),
    /// It had ended with a response of so many bytes.
    Ended(usize),
}
