//! Receiving half of a pair: assembles messages from records.
//!
//! Runs under the receiving lock of the pair (`pair::link`). Each number in a record was read once
//! (`ring`) and is checked here before it is used.
//!
//! # Invariants
//!
//! - **INBOX-1** A message is delivered once it is complete, after its records were released to the
//!   writer: a message that the writer sees as unread has not been delivered.
//! - **INBOX-2** The total length of messages that have arrived in part is bounded by
//!   `max_receive_bytes` and one message.
//! - **INBOX-3** A part whose offset differs from the end of the previous one is a [`Violation`]. A
//!   part that continues a declined or cancelled message is dropped.

use apus_wire::{Refusal, Role};
use bytes::{Bytes, BytesMut};

use super::free_list::FreeList;
use super::limits::{LocalLimits, MAX_PARTIAL};
use crate::error::Violation;
use crate::memory::layout::Lane;
use crate::ring::record::{Head, RecordKind};
use crate::ring::{Consumer, RingRecord};

/// Event received by a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PairEvent {
    /// Server only: a request has arrived. It must be answered or refused once.
    Request {
        /// The client's id of the call. A hostile client may repeat ids.
        id: u64,
        /// The message.
        payload: Bytes,
    },
    /// Server only: the client has cancelled a call. It may have been answered already.
    Cancelled {
        /// Id of the request.
        id: u64,
    },
    /// Client only: the response to a request has arrived.
    Response {
        /// Id of the request.
        id: u64,
        /// The message.
        payload: Bytes,
    },
    /// Client only: the server will not respond.
    Refused {
        /// Id of the request.
        id: u64,
        /// The reason, which also determines whether the request may have been executed.
        why: Refusal,
    },
    /// Client only: a response was dropped because it exceeds this side's limits.
    Declined {
        /// Id of the request, which was executed.
        id: u64,
        /// Length of the response in bytes.
        length: u32,
    },
    /// The peer requests a freeze of the time trace ([`Pair::freeze`](crate::Pair::freeze)).
    Freeze,
    /// There is room again for messages that were refused with
    /// [`SendError::Full`](crate::SendError::Full).
    Room,
}

/// Result of reading one record. Its event, if any, is the last event of the list.
#[derive(Debug)]
pub(crate) enum ReadStep {
    /// No record was visible.
    Empty,
    /// A record was consumed.
    Consumed,
    /// A control record was consumed, whose event also concerns the sending half.
    Control,
    /// A record of a request was consumed that must be refused.
    Decline(u64, Refusal),
}

/// The receiving half of a pair.
pub(crate) struct Inbox {
    role: Role,
    short: Consumer,
    bulk: Consumer,
    limits: LocalLimits,
    partial: Vec<PartialMessage>,
    /// Total final length of the messages in `partial`.
    partial_bytes: usize,
    free_list: FreeList,
}

/// A message that has arrived in part.
struct PartialMessage {
    id: u64,
    total: u32,
    bytes: BytesMut,
}

impl Inbox {
    pub(crate) fn new(role: Role, short: Consumer, bulk: Consumer, limits: LocalLimits) -> Self {
        let (partial, free_list) = (Vec::new(), FreeList::default());
        Self { role, short, bulk, limits, partial, partial_bytes: 0, free_list }
    }

    /// Returns whether a record is visible in either lane.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.short.is_ready() || self.bulk.is_ready()
    }

    /// Returns whether a message has arrived in part.
    pub(crate) fn has_partial_message(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Returns whether a record of a long message is visible.
    #[inline]
    pub(crate) fn has_chunk(&self) -> bool {
        self.bulk.is_ready()
    }

    /// Returns the offsets in the memory of the first words of the next records, short and bulk.
    #[inline]
    pub(crate) fn next_words(&self) -> [usize; 2] {
        [self.short.next_word(), self.bulk.next_word()]
    }

    /// Returns the missing bytes of the message whose record is next in the bulk lane, if there is
    /// one.
    pub(crate) fn remaining(&mut self) -> Result<Option<u32>, Violation> {
        let record = self.bulk.peek()?;
        Ok(record.map(|record| record.head.total.saturating_sub(record.head.offset)))
    }

    /// Reads one record.
    ///
    /// # Errors
    ///
    /// [`Violation`] if the record contradicts the protocol.
    #[inline(always)]
    pub(crate) fn next(
        &mut self,
        lane: Lane,
        events: &mut Vec<PairEvent>,
    ) -> Result<ReadStep, Violation> {
        let ring = match lane {
            Lane::Short => &mut self.short,
            Lane::Bulk => &mut self.bulk,
        };
        let Some(record) = ring.peek()? else { return Ok(ReadStep::Empty) };
        let Head { kind, len, id, total, offset } = record.head;
        match (self.role, kind) {
            (Role::Server, RecordKind::Request) | (Role::Client, RecordKind::Response) => {}
            _ => return self.control(lane, &record, events),
        }
        let whole = offset == 0 && len == total as usize;
        if !whole || total > self.limits.max_message {
            let step = self.part(lane, &record, events);
            self.release(lane, &record);
            return step;
        }
        let payload = self.ring(lane).read(&record);
        self.release(lane, &record);
        self.complete(id, payload, events);
        Ok(ReadStep::Consumed)
    }

    /// Reads a control record: a cancellation, a refusal or a request to freeze.
    #[cold]
    fn control(
        &mut self,
        lane: Lane,
        record: &RingRecord,
        events: &mut Vec<PairEvent>,
    ) -> Result<ReadStep, Violation> {
        let Head { kind, id, total, .. } = record.head;
        let event = match (self.role, kind) {
            (Role::Server, RecordKind::Cancel) => PairEvent::Cancelled { id },
            (Role::Client, RecordKind::Refusal) => {
                PairEvent::Refused { id, why: Refusal::from_wire(total) }
            }
            (_, RecordKind::Freeze) => {
                self.release(lane, record);
                events.push(PairEvent::Freeze);
                return Ok(ReadStep::Consumed);
            }
            _ => return Err(Violation::Kind),
        };
        self.release(lane, record);
        self.drop_partial(id);
        events.push(event);
        Ok(ReadStep::Control)
    }

    /// Reads a record that is only a part of its message, or belongs to a message that is too long.
    #[cold]
    fn part(
        &mut self,
        lane: Lane,
        record: &RingRecord,
        events: &mut Vec<PairEvent>,
    ) -> Result<ReadStep, Violation> {
        let Head { len, id, total, offset, .. } = record.head;
        if len == 0 || offset as usize + len > total as usize {
            return Err(Violation::Part);
        }
        let found = self.partial.iter().position(|partial| partial.id == id);
        let at = match (found, offset) {
            (Some(_), 0) => return Err(Violation::Part),
            (Some(at), _) => at,
            (None, 0) => match self.begin(id, total) {
                Ok(at) => at,
                Err(why) => return Ok(self.decline(id, total, why, events)),
            },
            // INBOX-3
            (None, _) => return Ok(ReadStep::Consumed),
        };
        let partial = &mut self.partial[at];
        if partial.total != total || partial.bytes.len() != offset as usize {
            return Err(Violation::Part);
        }
        let mut bytes = std::mem::take(&mut partial.bytes);
        self.ring(lane).copy(record, &mut bytes);
        if offset as usize + len < total as usize {
            self.partial[at].bytes = bytes;
            return Ok(ReadStep::Consumed);
        }
        self.partial.swap_remove(at);
        self.partial_bytes -= total as usize;
        let payload = bytes.freeze();
        self.free_list.add(&payload);
        // INBOX-1: `next` releases the record before the caller sees this event.
        self.complete(id, payload, events);
        Ok(ReadStep::Consumed)
    }

    /// Allocates a message of `total` bytes; returns its index in `partial`.
    fn begin(&mut self, id: u64, total: u32) -> Result<usize, Refusal> {
        if total > self.limits.max_message {
            return Err(Refusal::TooLarge);
        }
        let after = self.partial_bytes + total as usize; // INBOX-2
        let full = after > self.limits.max_receive_bytes || self.partial.len() >= MAX_PARTIAL;
        if !self.partial.is_empty() && full {
            return Err(Refusal::Overloaded);
        }
        self.partial_bytes = after;
        let bytes = self.free_list.take(total as usize);
        self.partial.push(PartialMessage { id, total, bytes });
        Ok(self.partial.len() - 1)
    }

    fn decline(&self, id: u64, length: u32, why: Refusal, events: &mut Vec<PairEvent>) -> ReadStep {
        if self.role == Role::Server {
            return ReadStep::Decline(id, why);
        }
        events.push(PairEvent::Declined { id, length });
        ReadStep::Consumed
    }

    #[inline(always)]
    fn complete(&self, id: u64, payload: Bytes, events: &mut Vec<PairEvent>) {
        events.push(match self.role {
            Role::Server => PairEvent::Request { id, payload },
            Role::Client => PairEvent::Response { id, payload },
        });
    }

    fn drop_partial(&mut self, id: u64) {
        if let Some(at) = self.partial.iter().position(|partial| partial.id == id) {
            self.partial_bytes -= self.partial.swap_remove(at).total as usize;
        }
    }

    const fn ring(&self, lane: Lane) -> &Consumer {
        match lane {
            Lane::Short => &self.short,
            Lane::Bulk => &self.bulk,
        }
    }

    #[inline(always)]
    fn release(&mut self, lane: Lane, record: &RingRecord) {
        match lane {
            Lane::Short => self.short.release(record),
            Lane::Bulk => self.bulk.release(record),
        }
    }

    /// Frees partial messages and the memory retained for reuse. Called when the pair has ended.
    pub(crate) fn clear(&mut self) {
        self.partial.clear();
        self.partial_bytes = 0;
        self.free_list.clear();
    }
}
