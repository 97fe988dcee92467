//! One attempt of an operation: the state that every operation may change, and the ways to wait.

use crate::client::interface::effect::{Clock, OpToken};
use crate::client::interface::operation::Caller;
use crate::client::link::Link;
use crate::client::link::calls::Purpose;
use crate::client::nodes::cache::Cache;
use crate::client::waiting::{Event, Waiting};
use crate::wire::{Errno, Failure, Ino, Record, Response, SessionRequest};

/// The reason why an attempt did not complete.
#[derive(Debug)]
pub(in crate::client) enum Stop {
    /// The operation fails.
    Fail(Errno),
    /// The operation waits for an event that makes it ready.
    Wait,
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Self {
        Self::Fail(error)
    }
}

/// Outcome of an attempt, or of one of its steps.
pub(in crate::client) type Attempt<T> = Result<T, Stop>;

/// One attempt: the operation, and the groups of state that it may change.
pub(super) struct Turn<'a> {
    pub(super) clock: Clock,
    pub(super) token: OpToken,
    pub(super) caller: Caller,
    pub(super) link: &'a mut Link,
    pub(super) cache: &'a mut Cache,
    pub(super) waiting: &'a mut Waiting,
}

impl Turn<'_> {
    /// Waits for the call with a purpose, which is made if it is not outstanding.
    pub(super) fn wait_for(
        &mut self,
        purpose: Purpose,
        request: impl FnOnce() -> SessionRequest,
    ) -> Stop {
        self.link.wait_for(&self.clock, self.token, purpose, request);
        Stop::Wait
    }

    /// Sends a request whose response only this operation uses.
    pub(super) fn request(&mut self, request: SessionRequest) -> Stop {
        self.wait_for(Purpose::Operation(self.token), || request)
    }

    /// Waits until a batch is applied.
    pub(super) fn wait_for_batch(&mut self, number: u64) -> Stop {
        self.link.log.seal();
        self.waiting.wait_for_batch(number, self.token);
        Stop::Wait
    }

    /// Requires that all changes of a node are applied.
    pub(super) fn require_clean(&mut self, ino: Ino) -> Attempt<()> {
        let node = self.cache.node(ino)?;
        if node.is_dirty(self.link.log.applied()) {
            let number = node.last_batch;
            return Err(self.wait_for_batch(number));
        }
        Ok(())
    }

    /// Returns whether the operation's own batch is applied, and waits while it is in flight. False
    /// if the operation has none yet.
    pub(super) fn was_applied_alone(&mut self) -> Attempt<bool> {
        let Some(number) = self.waiting.own_batch(self.token) else { return Ok(false) };
        if number > self.link.log.applied() {
            return Err(self.wait_for_batch(number));
        }
        self.waiting.clear_own_batch(self.token);
        Ok(true)
    }

    /// Adds a record in a separate batch, which the operation waits for: if it fails, no other
    /// operation fails.
    pub(super) fn apply_alone(&mut self, nodes: &[Ino], record: Record) -> Stop {
        self.link.log.seal();
        let number = self.link.log.open_number();
        self.link.log.add(self.clock.now, record);
        for ino in nodes {
            // The operation ends when the server's times have arrived.
            if let Some(node) = self.cache.get_mut(*ino) {
                (node.last_batch, node.has_own_times) = (number, false);
            }
        }
        self.link.log.seal_alone(self.token);
        self.waiting.set_own_batch(self.token, number);
        self.wait_for_batch(number)
    }

    /// Requires room for a change in the log.
    pub(super) fn require_room(&mut self, bytes: usize) -> Attempt<()> {
        if self.link.session.is_read_only() {
            return Err(Errno::ROFS.into());
        }
        if !self.link.log.has_room(bytes) {
            self.link.log.seal();
            self.waiting.wait(Event::Room, self.token);
            return Err(Stop::Wait);
        }
        Ok(())
    }

    /// Adds a record that changes nodes.
    pub(super) fn record(&mut self, nodes: &[Ino], record: Record) {
        let number = self.link.log.open_number();
        self.link.log.add(self.clock.now, record);
        for ino in nodes {
            if let Some(node) = self.cache.get_mut(*ino) {
                node.last_batch = number;
                node.attributes.ctime = self.clock.wall;
                node.has_own_times = true;
            }
        }
    }
}

/// The error of a response that does not fit.
pub(super) fn unexpected(response: &Response) -> Stop {
    match response {
        Response::Failed(Failure::Errno(error)) => Stop::Fail(*error),
        _ => Stop::Fail(Errno::IO),
    }
}
