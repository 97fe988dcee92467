//! How is what was waited for taken, and what is counted of it?

use super::Core;
use crate::engine::handoff::From;
use crate::engine::token::ThreadToken;
use crate::engine::tracer::{taken, woken};
use crate::engine::wait_target::WaitTarget;

/// How a message was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitKind {
    None,
    Polled,
    Slept,
}

impl Core {
    /// The end of a pass: whoever turns the loop takes what it wants before the others are told.
    pub(in crate::engine) fn finish_pass<W: WaitTarget>(
        &mut self,
        want: &W,
        kind: WaitKind,
    ) -> Option<W::Output> {
        if self.closed.is_none() {
            self.check_now = false;
        }
        let output = self.take(want, kind);
        self.assign();
        output
    }

    /// Takes what one wants if it is there, without having been told.
    pub(crate) fn take<W: WaitTarget>(&mut self, want: &W, kind: WaitKind) -> Option<W::Output> {
        let From { message, by } = want.take(self)?;
        if let Some(bytes) = W::message_len(&message) {
            // It crosses from one thread to another all the same.
            self.metrics.handoffs += u64::from(by != ThreadToken::current());
            self.message_taken(bytes, kind);
            taken(W::rpc(&message));
        }
        Some(message)
    }

    /// Takes `first`, which was waited for, and all others that are there, at most `limit`; returns how
    /// many.
    pub(crate) fn take_all<W: WaitTarget>(
        &mut self,
        want: &W,
        first: W::Output,
        limit: usize,
        mut sink: impl FnMut(W::Output),
    ) -> usize {
        sink(first);
        let mut count = 1;
        while count < limit
            && let Some(next) = self.take(want, WaitKind::None)
        {
            sink(next);
            count += 1;
        }
        count
    }

    /// Takes what one was told is there. That it is not is a wake-up for nothing.
    ///
    /// `waiter` is who was told, and it runs since `ended`, in ticks of the trace.
    pub(crate) fn take_notified<W: WaitTarget>(
        &mut self,
        want: &W,
        kind: WaitKind,
        (waiter, ended): (u64, u64),
    ) -> Option<W::Output> {
        let Some(From { message, .. }) = want.take_notified(self) else {
            self.metrics.spurious_wakeups += u64::from(self.closed.is_none());
            return None;
        };
        if let Some(bytes) = W::message_len(&message) {
            self.message_taken(bytes, kind);
            woken(W::rpc(&message), waiter, ended);
        }
        Some(message)
    }

    /// The application gets a message of `bytes` bytes; counts how it was waited for.
    fn message_taken(&mut self, bytes: usize, kind: WaitKind) {
        self.transport.payload_consumed(bytes);
        self.metrics.messages += 1;
        if bytes > 0 {
            self.sizes.record(bytes);
        }
        match kind {
            WaitKind::None => self.metrics.wait_none += 1,
            WaitKind::Polled => self.metrics.wait_polled += 1,
            WaitKind::Slept => self.metrics.wait_slept += 1,
        }
    }
}
