//! What happens when the application takes a message?

use crate::call::Completion;
use crate::engine::core::{Arrived, Core, Ended};
use crate::engine::run::How;
use crate::engine::want::{AnyCompletion, AnyRequest};
use crate::error::Closed;
use bytes::Bytes;

impl Core {
    /// Why the endpoint does not work any more.
    pub(crate) fn closed_error(&self) -> Closed {
        self.closed.clone().unwrap_or(Closed::ShutDown)
    }

    /// The application takes the end of a call that was sent.
    pub(crate) fn complete(&mut self, ended: Ended) -> Completion {
        let Ended { cookie, result } = ended;
        self.transport.taken(result.as_ref().map_or(0, Bytes::len));
        self.call_ended();
        Completion { cookie, result }
    }

    /// The same for all ends that are there, at most `limit`; returns how many.
    pub(crate) fn complete_many(
        &mut self,
        first: Ended,
        ends: &mut Vec<Completion>,
        limit: usize,
    ) -> usize {
        let mut count = 0;
        let mut next = Some(first);
        while let Some(ended) = next {
            ends.push(self.complete(ended));
            count += 1;
            next = (count < limit).then(|| self.take(&AnyCompletion, How::None)).flatten();
        }
        count
    }

    /// The application takes all requests that are there, at most `limit`; returns how many.
    pub(crate) fn accept_many(
        &mut self,
        first: Arrived,
        limit: usize,
        mut accept: impl FnMut(Arrived),
    ) -> usize {
        let mut count = 0;
        let mut next = Some(first);
        while let Some(arrived) = next {
            self.transport.taken(arrived.payload.len());
            accept(arrived);
            count += 1;
            next = (count < limit).then(|| self.take(&AnyRequest, How::None)).flatten();
        }
        count
    }
}
