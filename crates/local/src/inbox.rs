//! What has arrived, and does it make sense?
//!
//! Under the receiving lock of a pair. Puts messages together out of records; each number in them was read
//! once ([`super::ring`]) and is checked here before it is used.
//!
//! # Invariants
//!
//! - **I1** A message is handed out once it is complete, after its records were given back to the writer: what
//!   the writer is told was not read has not been handed out.
//! - **I2** The bytes of messages that have come in part are bounded by `max_receive_bytes` and one message.
//! - **I3** A part is appended where the last one ended, or is a [`Violation`]. One that continues a message
//!   which was declined or cancelled is dropped.

use apus_wire::{Refusal, Role};
use bytes::{Bytes, BytesMut};

use crate::error::Violation;
use crate::free_list::Spare;
use crate::layout::Lane;
use crate::limits::{LocalLimits, MAX_PARTIAL};
use crate::record::{Head, Kind};
use crate::ring::{Consumer, Record};

/// What a pair has to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PairEvent {
    /// A server: a request, to be answered or refused once.
    Request {
        /// What the client calls it. Its numbers are its own affair; they may repeat if it is hostile.
        id: u64,
        /// The message.
        payload: Bytes,
    },
    /// A server: the client does not want the answer any more. It may have been given already.
    Cancelled {
        /// Of the request.
        id: u64,
    },
    /// A client: the answer to a request.
    Response {
        /// Of the request.
        id: u64,
        /// The message.
        payload: Bytes,
    },
    /// A client: the server will not answer.
    Refused {
        /// Of the request.
        id: u64,
        /// Why; it also says whether the request may have been executed.
        why: Refusal,
    },
    /// A client: there is an answer, but no room for it here.
    Declined {
        /// Of the request, which was executed.
        id: u64,
        /// Bytes of the response.
        length: u32,
    },
    /// The peer asks for the time trace to be frozen ([`Pair::freeze`](crate::Pair::freeze)).
    Freeze,
    /// There is room again for messages that were refused ([`SendError::Full`](crate::SendError::Full)).
    Room,
}

/// What a record led to. What it has to tell is behind the other events.
#[derive(Debug)]
pub(crate) enum Step {
    /// There is none.
    Nothing,
    /// It was taken.
    Taken,
    /// It was taken, and its event concerns the other half, too.
    Heed,
    /// It was taken: a request that cannot be accepted.
    Decline(u64, Refusal),
}

/// What a pair receives.
pub(crate) struct Inbox {
    role: Role,
    short: Consumer,
    bulk: Consumer,
    limits: LocalLimits,
    partial: Vec<Partial>,
    /// What the messages in `partial` will have in the end.
    partial_bytes: usize,
    spare: Spare,
}

/// A message that has come in part.
struct Partial {
    id: u64,
    total: u32,
    bytes: BytesMut,
}

impl Inbox {
    pub(crate) fn new(role: Role, short: Consumer, bulk: Consumer, limits: LocalLimits) -> Self {
        let (partial, spare) = (Vec::new(), Spare::default());
        Self { role, short, bulk, limits, partial, partial_bytes: 0, spare }
    }

    /// Whether there is a record in either lane.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.short.is_ready() || self.bulk.is_ready()
    }

    /// Whether a message has come in part.
    pub(crate) fn is_midway(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Whether there is a record of a long message.
    #[inline]
    pub(crate) fn has_chunk(&self) -> bool {
        self.bulk.is_ready()
    }

    /// Where in the memory the first words of the next records will lie: of short ones, and of chunks.
    #[inline]
    pub(crate) fn next_words(&self) -> [usize; 2] {
        [self.short.next_word(), self.bulk.next_word()]
    }

    /// Bytes of its message that have not been taken, if a record waits in the lane of long messages.
    pub(crate) fn remaining(&mut self) -> Result<Option<u32>, Violation> {
        let record = self.bulk.peek()?;
        Ok(record.map(|record| record.head.total.saturating_sub(record.head.offset)))
    }

    /// Takes a record.
    ///
    /// # Errors
    ///
    /// [`Violation`]: it makes no sense.
    #[inline(always)]
    pub(crate) fn next(
        &mut self,
        lane: Lane,
        events: &mut Vec<PairEvent>,
    ) -> Result<Step, Violation> {
        let ring = match lane {
            Lane::Short => &mut self.short,
            Lane::Bulk => &mut self.bulk,
        };
        let Some(record) = ring.peek()? else { return Ok(Step::Nothing) };
        let Head { kind, len, id, total, offset } = record.head;
        match (self.role, kind) {
            (Role::Server, Kind::Request) | (Role::Client, Kind::Response) => {}
            _ => return self.word(lane, &record, events),
        }
        let whole = len != 0 && offset == 0 && len == total as usize;
        if !whole || total > self.limits.max_message {
            let step = self.part(lane, &record, events);
            self.release(lane, &record);
            return step;
        }
        let mut bytes = BytesMut::with_capacity(len);
        self.ring(lane).copy(&record, &mut bytes);
        self.release(lane, &record);
        self.complete(id, bytes.freeze(), events);
        Ok(Step::Taken)
    }

    /// A record that is a word, most about a message.
    #[cold]
    fn word(
        &mut self,
        lane: Lane,
        record: &Record,
        events: &mut Vec<PairEvent>,
    ) -> Result<Step, Violation> {
        let Head { kind, id, total, .. } = record.head;
        let event = match (self.role, kind) {
            (Role::Server, Kind::Cancel) => PairEvent::Cancelled { id },
            (Role::Client, Kind::Refusal) => {
                PairEvent::Refused { id, why: Refusal::from_wire(total) }
            }
            (_, Kind::Freeze) => {
                self.release(lane, record);
                events.push(PairEvent::Freeze);
                return Ok(Step::Taken);
            }
            _ => return Err(Violation::Kind),
        };
        self.release(lane, record);
        self.drop_partial(id);
        events.push(event);
        Ok(Step::Heed)
    }

    /// A record that is not all of its message, or of one that is too long.
    #[cold]
    fn part(
        &mut self,
        lane: Lane,
        record: &Record,
        events: &mut Vec<PairEvent>,
    ) -> Result<Step, Violation> {
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
            // I3
            (None, _) => return Ok(Step::Taken),
        };
        let partial = &mut self.partial[at];
        if partial.total != total || partial.bytes.len() != offset as usize {
            return Err(Violation::Part);
        }
        let mut bytes = std::mem::take(&mut partial.bytes);
        self.ring(lane).copy(record, &mut bytes);
        if offset as usize + len < total as usize {
            self.partial[at].bytes = bytes;
            return Ok(Step::Taken);
        }
        self.partial.swap_remove(at);
        self.partial_bytes -= total as usize;
        let payload = bytes.freeze();
        self.spare.keep(&payload);
        // I1: `next` gives the record back before anybody sees this.
        self.complete(id, payload, events);
        Ok(Step::Taken)
    }

    /// Makes room for a message of `total` bytes; where it is.
    fn begin(&mut self, id: u64, total: u32) -> Result<usize, Refusal> {
        if total > self.limits.max_message {
            return Err(Refusal::TooLarge);
        }
        let after = self.partial_bytes + total as usize; // I2
        let full = after > self.limits.max_receive_bytes || self.partial.len() >= MAX_PARTIAL;
        if !self.partial.is_empty() && full {
            return Err(Refusal::Overloaded);
        }
        self.partial_bytes = after;
        self.partial.push(Partial { id, total, bytes: self.spare.take(total as usize) });
        Ok(self.partial.len() - 1)
    }

    fn decline(&self, id: u64, length: u32, why: Refusal, events: &mut Vec<PairEvent>) -> Step {
        if self.role == Role::Server {
            return Step::Decline(id, why);
        }
        events.push(PairEvent::Declined { id, length });
        Step::Taken
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
    fn release(&mut self, lane: Lane, record: &Record) {
        match lane {
            Lane::Short => self.short.release(record),
            Lane::Bulk => self.bulk.release(record),
        }
    }

    /// The pair has ended: lets go of what has come in part, and of the memory kept for later.
    pub(crate) fn clear(&mut self) {
        self.partial.clear();
        self.partial_bytes = 0;
        self.spare.clear();
    }
}
