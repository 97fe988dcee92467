//! What does a cork hold back of messages that go through memory?
//!
//! Each message on its own costs the lock of its pair, and the processor waits for the cache lines of the ring before
//! it lets that lock go. Together they cost that once: [`Core::flush_local`] sends all that were held back, pair by pair.
//! They leave when 32 have gathered, when their thread waits, and when the cork is drawn, as on the network.

use crate::engine::calls::Key;
use crate::engine::core::Core;
use apus_local::{Pair, SendError};
use apus_proto::{CommandError, Payload};
use std::sync::Arc;

/// Messages that are held back at most. As on the network.
const MAX_HELD: usize = 32;

/// Messages that are held back. Lives under the core lock.
#[derive(Debug, Default)]
pub(crate) struct CorkedMessages {
    messages: Vec<Message>,
    /// Those that found no room at the last try; used again.
    rest: Vec<Message>,
}

#[derive(Debug)]
pub(super) struct Message {
    pub(super) pair: Arc<Pair>,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    /// The call's request, which is kept with the call.
    Call(Key),
    Reply {
        id: u64,
        payload: Payload,
    },
}

impl CorkedMessages {
    /// Whether there is nothing.
    pub(super) const fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

impl Core {
    /// Whether a message that goes through memory is to be held back. Not if so many are that find no room: then it
    /// is tried at once, as its own peer may have room.
    ///
    /// # Errors
    ///
    /// What is wrong with the message: what is held back is sent later, whatever it is.
    pub(super) fn holds_back_locally(&mut self, payload: &Payload) -> Result<bool, CommandError> {
        if self.corks == 0 {
            return Ok(false);
        }
        if payload.is_empty() {
            return Err(CommandError::EmptyMessage);
        }
        let (length, limit) = (payload.len() as u64, self.transport.config().max_message());
        if length > limit {
            return Err(CommandError::TooLarge { length, limit });
        }
        if self.is_local_full() {
            self.flush_local();
        }
        Ok(!self.is_local_full())
    }

    fn is_local_full(&self) -> bool {
        self.local.as_ref().is_some_and(|local| local.held.messages.len() >= MAX_HELD)
    }

    /// Holds a message back, and lets all leave if they are enough.
    pub(super) fn hold_back_locally(&mut self, message: Message) {
        let Some(local) = &mut self.local else { return };
        local.held.messages.push(message);
        if self.is_local_full() {
            self.flush_local();
        }
    }

    /// Sends what was held back, if there is room.
    pub(in crate::engine) fn flush_local(&mut self) {
        let Self { local: Some(local), calls, .. } = self else { return };
        if local.held.is_empty() {
            return;
        }
        let CorkedMessages { messages, rest } = &mut local.held;
        let mut left = messages.drain(..).peekable();
        while let Some(first) = left.next() {
            let pair = first.pair.clone();
            // If it has ended, its calls are told so elsewhere, and its replies are wanted by nobody.
            let mut batch = pair.batch().ok();
            let mut full = false;
            let mut next = Some(first);
            while let Some(message) = next {
                let sent = match (&mut batch, &message.what) {
                    (None, _) => Ok(None),
                    (Some(_), _) if full => Err(SendError::Full),
                    (Some(batch), What::Reply { id, payload }) => {
                        batch.send(*id, payload.slices()).map(|_| None)
                    }
                    // A call that was let go meanwhile is not sent.
                    (Some(batch), What::Call(key)) => match calls.local(*key) {
                        None => Ok(None),
                        Some(call) => {
                            let id = key.cookie();
                            batch.send(id, call.payload.slices()).map(|ticket| Some((*key, ticket)))
                        }
                    },
                };
                match sent {
                    Ok(Some((key, ticket))) => calls.sent(key, ticket),
                    Err(SendError::Full) => {
                        full = true;
                        rest.push(message);
                    }
                    // Its length was right when it was held back: the pair has ended.
                    Ok(None) | Err(_) => {}
                }
                next = left.next_if(|next| Arc::ptr_eq(&next.pair, &pair));
            }
            if let Some(batch) = batch {
                // That the peer broke the protocol is told with the end of the pair.
                let _ = batch.finish();
            }
        }
        drop(left);
        std::mem::swap(messages, rest);
    }
}
