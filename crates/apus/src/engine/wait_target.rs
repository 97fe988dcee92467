//! What can be waited for?

use super::calls::{Key, Response};
use super::core::{Arrived, Core, Ended};
use super::handoff::From;
use super::waiter::Waiter;
use apus_proto::RpcError;
use apus_trace::Rpc;
use bytes::Bytes;
use std::sync::Arc;

/// Something that a thread or task waits for. All methods run under the core lock.
pub(crate) trait WaitTarget {
    /// What one gets.
    type Output;

    /// Takes it if it is there, for somebody who was not told so.
    fn take(&self, core: &mut Core) -> Option<From<Self::Output>>;

    /// Takes it, for somebody who was told that it is there. `None` if the endpoint was closed.
    fn take_notified(&self, core: &mut Core) -> Option<From<Self::Output>> {
        self.take(core)
    }

    /// Tell `waiter` when it is there.
    fn enlist(&self, core: &mut Core, waiter: Arc<Waiter>);

    /// Do not tell `waiter` any more; it has not been told.
    fn delist(&self, core: &mut Core, waiter: &Arc<Waiter>);

    /// It was told, but does not want it any more.
    #[cfg_attr(
        not(feature = "tokio"),
        expect(dead_code, reason = "only tasks are dropped while they wait")
    )]
    fn refuse(&self, _core: &mut Core) {}

    /// Length of what one gets, if it is a message of the application; it is counted as such then.
    fn message_len(_output: &Self::Output) -> Option<usize> {
        None
    }

    /// Its RPC, if it is a message that is traced.
    fn rpc(_output: &Self::Output) -> Option<Rpc> {
        None
    }
}

/// The next request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnyRequest;

impl WaitTarget for AnyRequest {
    type Output = Arrived;

    fn take(&self, core: &mut Core) -> Option<From<Arrived>> {
        let request = core.requests.take()?;
        core.request_taken();
        Some(request)
    }

    fn take_notified(&self, core: &mut Core) -> Option<From<Arrived>> {
        if core.closed.is_some() {
            return None;
        }
        let request = core.requests.take_reserved();
        core.request_taken();
        Some(request)
    }

    fn message_len(arrived: &Arrived) -> Option<usize> {
        Some(arrived.payload.len())
    }

    fn rpc(arrived: &Arrived) -> Option<Rpc> {
        arrived.rpc
    }

    fn enlist(&self, core: &mut Core, waiter: Arc<Waiter>) {
        core.requests.enlist(waiter);
    }

    fn delist(&self, core: &mut Core, waiter: &Arc<Waiter>) {
        core.requests.delist(waiter);
    }

    fn refuse(&self, core: &mut Core) {
        if core.closed.is_none() {
            core.requests.give_back(&mut core.wakes);
        }
    }
}

/// The end of any call of the shared kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnyCompletion;

impl WaitTarget for AnyCompletion {
    type Output = Ended;

    fn take(&self, core: &mut Core) -> Option<From<Ended>> {
        let end = core.completions.take()?;
        core.call_ended();
        Some(end)
    }

    fn take_notified(&self, core: &mut Core) -> Option<From<Ended>> {
        if core.closed.is_some() {
            return self.take(core);
        }
        let end = core.completions.take_reserved();
        core.call_ended();
        Some(end)
    }

    fn message_len(ended: &Ended) -> Option<usize> {
        Some(response_len(&ended.result))
    }

    fn rpc(ended: &Ended) -> Option<Rpc> {
        ended.rpc
    }

    fn enlist(&self, core: &mut Core, waiter: Arc<Waiter>) {
        core.completions.enlist(waiter);
    }

    fn delist(&self, core: &mut Core, waiter: &Arc<Waiter>) {
        core.completions.delist(waiter);
    }

    fn refuse(&self, core: &mut Core) {
        if core.closed.is_none() {
            core.completions.give_back(&mut core.wakes);
        }
    }
}

/// The end of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndOf(pub(crate) Key);

impl WaitTarget for EndOf {
    type Output = Response;

    fn take(&self, core: &mut Core) -> Option<From<Self::Output>> {
        let end = core.calls.take(self.0)?;
        core.call_ended();
        Some(end)
    }

    fn message_len(response: &Response) -> Option<usize> {
        Some(response_len(&response.result))
    }

    fn rpc(response: &Response) -> Option<Rpc> {
        response.rpc
    }

    fn enlist(&self, core: &mut Core, waiter: Arc<Waiter>) {
        core.calls.enlist(self.0, waiter);
    }

    fn delist(&self, core: &mut Core, _waiter: &Arc<Waiter>) {
        core.calls.delist(self.0);
    }
}

/// Room to send. Whoever was told tries its command again.
#[derive(Debug)]
pub(crate) struct Room {
    /// How often there had been room when the command was refused.
    pub(crate) seen: u64,
}

impl WaitTarget for Room {
    type Output = ();

    fn take(&self, core: &mut Core) -> Option<From<()>> {
        (core.room_changes() != self.seen).then(|| nothing(core))
    }

    fn take_notified(&self, core: &mut Core) -> Option<From<()>> {
        Some(nothing(core))
    }

    fn enlist(&self, core: &mut Core, waiter: Arc<Waiter>) {
        core.enlist_for_room(waiter);
    }

    fn delist(&self, core: &mut Core, waiter: &Arc<Waiter>) {
        core.delist_for_room(waiter);
    }
}

/// That every message we sent has been acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllAcknowledged;

impl WaitTarget for AllAcknowledged {
    type Output = ();

    fn take(&self, core: &mut Core) -> Option<From<()>> {
        core.is_drained().then(|| nothing(core))
    }

    /// Everything was acknowledged when it was told, whatever has been sent since.
    fn take_notified(&self, core: &mut Core) -> Option<From<()>> {
        if core.closed.is_some() {
            return self.take(core);
        }
        Some(nothing(core))
    }

    fn enlist(&self, core: &mut Core, waiter: Arc<Waiter>) {
        core.draining.push(waiter);
    }

    fn delist(&self, core: &mut Core, waiter: &Arc<Waiter>) {
        core.draining.retain(|other| !Arc::ptr_eq(other, waiter));
    }
}

/// Nothing: keeps the loop turning until the endpoint is closed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closing;

impl WaitTarget for Closing {
    type Output = ();

    fn take(&self, _core: &mut Core) -> Option<From<()>> {
        None
    }

    fn enlist(&self, _core: &mut Core, _waiter: Arc<Waiter>) {}

    fn delist(&self, _core: &mut Core, _waiter: &Arc<Waiter>) {}
}

/// What the keeper wants: that somebody else takes the turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PollRoleWanted;

impl WaitTarget for PollRoleWanted {
    type Output = ();

    fn take(&self, core: &mut Core) -> Option<From<()>> {
        core.role.is_wanted().then(|| nothing(core))
    }

    fn enlist(&self, _core: &mut Core, _waiter: Arc<Waiter>) {}

    fn delist(&self, _core: &mut Core, _waiter: &Arc<Waiter>) {}
}

fn nothing(core: &Core) -> From<()> {
    From { message: (), by: core.producer }
}

fn response_len(result: &Result<Bytes, RpcError>) -> usize {
    result.as_ref().map_or(0, Bytes::len)
}
