//! Messages through shared memory that a cork holds back.
//!
//! Each message costs the lock of its pair, and the processor waits for the cache lines of the ring
//! before it releases that lock. Together they cost that once: [`CorkedMessages::flush`] sends all
//! held-back messages, pair by pair. They leave when 32 are held back, when their thread waits, and
//! when the cork is dropped, as on the network. Batches (`send_many`, `reply_many`) are written to
//! the ring at once: a record is visible when it is written, so holding a batch back would only
//! copy it. A batch holds the pair's sending lock throughout, and no lock of a pair is held when a
//! call changes its path.

use crate::engine::state::{Calls, Key};
use apus_local::{Pair, SendError};
use apus_proto::Payload;
use std::sync::Arc;

/// Largest number of messages that are held back, as on the network.
const MAX_CORKED: usize = 32;

/// Messages that are held back.
#[derive(Debug, Default)]
pub(super) struct CorkedMessages {
    messages: Vec<CorkedMessage>,
    /// Messages that found no room in the last attempt; kept for its allocation.
    rest: Vec<CorkedMessage>,
}

/// A held-back message with its pair.
#[derive(Debug)]
pub(super) struct CorkedMessage {
    pub(super) pair: Arc<Pair>,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    /// The request of a call; its payload is in the table of calls.
    Call(Key),
    Reply {
        id: u64,
        payload: Payload,
    },
}

impl CorkedMessages {
    /// Returns whether no message is held back.
    pub(super) const fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns whether the largest number of messages is held back.
    pub(super) const fn is_full(&self) -> bool {
        self.messages.len() >= MAX_CORKED
    }

    /// Holds a message back.
    pub(super) fn push(&mut self, message: CorkedMessage) {
        self.messages.push(message);
    }

    /// Sends messages that have room.
    pub(super) fn flush(&mut self, calls: &mut Calls) {
        if self.is_empty() {
            return;
        }
        let Self { messages, rest } = self;
        let mut left = messages.drain(..).peekable();
        while let Some(first) = left.next() {
            let pair = first.pair.clone();
            // `None` if the pair has ended: its calls end with that event, and its replies have no
            // receiver.
            let mut batch = pair.batch().ok();
            let mut full = false;
            let mut next = Some(first);
            while let Some(message) = next {
                let sent = match (&mut batch, &message.content) {
                    (None, _) => Ok(None),
                    (Some(_), _) if full => Err(SendError::Full),
                    (Some(batch), Content::Reply { id, payload }) => {
                        batch.send(*id, payload.slices()).map(|_| None)
                    }
                    (Some(batch), Content::Call(key)) => match calls.local(*key) {
                        // Cancelled in the meantime.
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
                    // The length was checked when the message was held back, so the pair has ended.
                    Ok(None) | Err(_) => {}
                }
                next = left.next_if(|next| Arc::ptr_eq(&next.pair, &pair));
            }
            if let Some(batch) = batch {
                // A violation of the protocol by the peer is reported with the end of the pair.
                let _ = batch.finish();
            }
        }
        drop(left);
        std::mem::swap(messages, rest);
    }
}
