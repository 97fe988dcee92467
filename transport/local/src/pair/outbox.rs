//! Sending half of a pair: picks the next record to write.
//!
//! Runs under the sending lock of the pair (`pair::link`). Short messages go into their ring at
//! once, or are refused for lack of room. Long messages are queued here by reference and leave in
//! chunks, shortest remaining message first.
//!
//! # Invariants
//!
//! - **OUTBOX-1** An accepted message is written to the ring in full, unless it is withdrawn or the
//!   pair ends.
//! - **OUTBOX-2** A control record about a long message uses the lane of its chunks, so that it
//!   does not overtake them.
//! - **OUTBOX-3** A message that is withdrawn after some of its chunks were sent is followed by a
//!   control record that ends it.

use std::collections::{BTreeMap, VecDeque};

use apus_wire::{Refusal, Role};
use bytes::Bytes;
use smallvec::SmallVec;

use super::limits::{LocalLimits, MAX_CONTROL, MAX_QUEUED, chunk, max_short};
use crate::error::{SendError, Violation};
use crate::ring::record::{Head, RecordKind};
use crate::ring::{Producer, PushError};

/// One chunk in this many belongs to the message that has waited longest, so that it does not
/// starve behind shorter ones: 5 %, the share that Homa gives the oldest message (ATC 2021 section
/// 3.4; docs/adr/0007).
const OLDEST_EVERY: u64 = 20;

/// Identifies an accepted message, for [`Pair::may_have_arrived`](crate::Pair::may_have_arrived).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendTicket(Sent);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// Position in the short ring behind the message.
    Short(u64),
    /// Number of a long message, in the order of acceptance.
    Long(u64),
}

/// Why a message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutboxError {
    Send(SendError),
    Broken(Violation),
}

impl From<SendError> for OutboxError {
    fn from(error: SendError) -> Self {
        Self::Send(error)
    }
}

/// The sending half of a pair.
pub(crate) struct Outbox {
    role: Role,
    short: Producer,
    bulk: Producer,
    limits: LocalLimits,
    max_short: usize,
    chunk: usize,
    /// Control records that wait for room, by lane.
    control_short: VecDeque<Head>,
    control_bulk: VecDeque<Head>,
    /// Long messages by remaining bytes and age.
    queue: BTreeMap<(u32, u64), OutgoingMessage>,
    queued_bytes: usize,
    /// Age of the next long message.
    next: u64,
    chunks: u64,
    /// Long messages that are in the ring in full: age, id and the position behind the last chunk.
    in_ring: VecDeque<(u64, u64, u64)>,
    /// Whether a message was refused for lack of room.
    refused: bool,
}

/// A queued long message.
struct OutgoingMessage {
    id: u64,
    pieces: SmallVec<[Bytes; 2]>,
    total: u32,
    sent: u32,
}

impl Outbox {
    pub(crate) fn new(role: Role, short: Producer, bulk: Producer, limits: LocalLimits) -> Self {
        Self {
            role,
            max_short: max_short(short.capacity()),
            chunk: chunk(bulk.capacity()),
            short,
            bulk,
            limits,
            control_short: VecDeque::new(),
            control_bulk: VecDeque::new(),
            queue: BTreeMap::new(),
            queued_bytes: 0,
            next: 0,
            chunks: 0,
            in_ring: VecDeque::new(),
            refused: false,
        }
    }

    /// Prefetches memory for a short message that is about to be sent.
    #[inline]
    pub(crate) fn prefetch_next(&self) {
        self.short.prefetch_next();
    }

    /// Accepts a message: a request of a client, a response of a server. `first` marks the first
    /// message of a batch, which the peer is likely to wait for.
    #[inline]
    pub(crate) fn send(
        &mut self,
        id: u64,
        pieces: &[Bytes],
        first: bool,
    ) -> Result<SendTicket, OutboxError> {
        let length = match pieces {
            // The sum of one is a loop nevertheless.
            [only] => only.len() as u64,
            pieces => pieces.iter().map(|piece| piece.len() as u64).sum(),
        };
        let total = match u32::try_from(length) {
            Ok(total) if total <= self.limits.max_message => total,
            _ => return Err(SendError::TooLarge { length, limit: self.limits.max_message }.into()),
        };
        if total as usize <= self.max_short {
            self.send_short(id, pieces, total, first)
        } else {
            self.send_long(id, pieces, total)
        }
    }

    #[inline]
    fn send_short(
        &mut self,
        id: u64,
        pieces: &[Bytes],
        total: u32,
        first: bool,
    ) -> Result<SendTicket, OutboxError> {
        if !self.control_short.is_empty() {
            self.pump_short().map_err(OutboxError::Broken)?;
            if !self.control_short.is_empty() {
                return Err(self.full());
            }
        }
        let kind = self.kind();
        match self.short.reserve(total as usize) {
            Ok(mut slot) => {
                for piece in pieces {
                    slot.put(piece);
                }
                if first {
                    slot.expedite();
                }
                let end = slot.commit(&Head::part(kind, id, total as usize, total, 0));
                Ok(SendTicket(Sent::Short(end)))
            }
            Err(PushError::Full) => Err(self.full()),
            Err(PushError::Broken(violation)) => Err(OutboxError::Broken(violation)),
        }
    }

    #[cold]
    fn send_long(
        &mut self,
        id: u64,
        pieces: &[Bytes],
        total: u32,
    ) -> Result<SendTicket, OutboxError> {
        let fits = self.queued_bytes + total as usize <= self.limits.max_send_bytes;
        if !self.queue.is_empty() && (!fits || self.queue.len() >= MAX_QUEUED) {
            return Err(self.full());
        }
        let age = self.next;
        self.next += 1;
        self.queued_bytes += total as usize;
        let pieces = pieces.iter().filter(|piece| !piece.is_empty()).cloned().collect();
        self.queue.insert((total, age), OutgoingMessage { id, pieces, total, sent: 0 });
        self.pump_bulk().map_err(OutboxError::Broken)?;
        Ok(SendTicket(Sent::Long(age)))
    }

    fn full(&mut self) -> OutboxError {
        self.refused = true;
        SendError::Full.into()
    }

    const fn kind(&self) -> RecordKind {
        match self.role {
            Role::Client => RecordKind::Request,
            Role::Server => RecordKind::Response,
        }
    }

    /// Refuses the request `id`. The caller then calls [`Outbox::pump`].
    pub(crate) fn refuse(&mut self, id: u64, why: Refusal) {
        self.control_short.push_back(Head::refusal(id, why));
    }

    /// Asks the peer to freeze its trace. Repeated calls send one record until there is room. The
    /// caller then calls [`Outbox::pump`].
    pub(crate) fn freeze(&mut self) {
        let control = Head::freeze();
        if !self.control_short.contains(&control) {
            self.control_short.push_back(control);
        }
    }

    /// Cancels the queued message of `id`, and as a client also the call. The caller then calls
    /// [`Outbox::pump`].
    pub(crate) fn withdraw(&mut self, id: u64) {
        let control = match self.role {
            Role::Client => Head::cancel(id),
            // The client has cancelled the call, and drops the parts of the response that it has.
            Role::Server => Head::refusal(id, Refusal::Abandoned),
        };
        if let Some(sent) = self.drop_queued(id) {
            if sent > 0 {
                self.control_bulk.push_back(control); // OUTBOX-2, OUTBOX-3
            }
        } else if self.role == Role::Client {
            // OUTBOX-2
            let long = self.in_ring.iter().any(|(_, other, _)| *other == id);
            let queue = if long { &mut self.control_bulk } else { &mut self.control_short };
            queue.push_back(control);
        }
    }

    /// Drops the queued long message for `id`, if there is one. Returns how many of its bytes were
    /// sent.
    pub(crate) fn drop_queued(&mut self, id: u64) -> Option<u32> {
        let key = *self.queue.iter().find(|(_, message)| message.id == id)?.0;
        let message = self.queue.remove(&key)?;
        self.queued_bytes -= message.total as usize;
        Some(message.sent)
    }

    /// Writes into the rings as many of the waiting records as there is room for. Returns whether
    /// any was written.
    ///
    /// # Errors
    ///
    /// [`Violation`] if the peer published an impossible read position.
    pub(crate) fn pump(&mut self) -> Result<bool, Violation> {
        let short = !self.control_short.is_empty() && self.pump_short()?;
        let bulk = self.has_long() && self.pump_bulk()?;
        Ok(short || bulk)
    }

    fn pump_short(&mut self) -> Result<bool, Violation> {
        Self::pump_control(&mut self.control_short, &mut self.short)
    }

    fn pump_control(queue: &mut VecDeque<Head>, ring: &mut Producer) -> Result<bool, Violation> {
        let mut any = false;
        while let Some(control) = queue.front() {
            match ring.reserve(0) {
                Ok(slot) => slot.commit(control),
                Err(PushError::Full) => break,
                Err(PushError::Broken(violation)) => return Err(violation),
            };
            queue.pop_front();
            any = true;
        }
        Ok(any)
    }

    fn pump_bulk(&mut self) -> Result<bool, Violation> {
        let mut any = Self::pump_control(&mut self.control_bulk, &mut self.bulk)?;
        if !self.control_bulk.is_empty() {
            return Ok(any);
        }
        while let Some(key) = self.next_long() {
            match self.push_chunk(key) {
                Ok(()) => any = true,
                Err(PushError::Full) => break,
                Err(PushError::Broken(violation)) => return Err(violation),
            }
        }
        Ok(any)
    }

    /// Returns the key of the long message that sends the next chunk.
    fn next_long(&self) -> Option<(u32, u64)> {
        if self.chunks % OLDEST_EVERY == OLDEST_EVERY - 1 {
            return self.queue.keys().min_by_key(|(_, age)| *age).copied();
        }
        self.queue.keys().next().copied()
    }

    /// Writes the next chunk of a queued message into the ring.
    fn push_chunk(&mut self, key: (u32, u64)) -> Result<(), PushError> {
        let (remaining, age) = key;
        let len = self.chunk.min(remaining as usize);
        let kind = self.kind();
        let mut slot = self.bulk.reserve(len)?;
        let mut message = self.queue.remove(&key).expect("the key is in the queue");
        let mut left = len;
        while left > 0 {
            // Pieces that were copied are released one by one.
            let piece = message.pieces.first_mut().expect("the pieces cover the message");
            let part = piece.split_to(left.min(piece.len()));
            slot.put(&part);
            left -= part.len();
            if piece.is_empty() {
                message.pieces.remove(0);
            }
        }
        let end = slot.commit(&Head::part(kind, message.id, len, message.total, message.sent));
        self.chunks += 1;
        message.sent += len as u32;
        if message.sent < message.total {
            self.queue.insert((remaining - len as u32, age), message);
        } else {
            self.queued_bytes -= message.total as usize;
            self.in_ring.push_back((age, message.id, end));
            self.forget_read()?;
        }
        Ok(())
    }

    /// Forgets long messages that the peer has read in full.
    fn forget_read(&mut self) -> Result<(), PushError> {
        while let Some((_, _, end)) = self.in_ring.front() {
            if !self.bulk.is_read(*end).map_err(PushError::Broken)? {
                break;
            }
            self.in_ring.pop_front();
        }
        Ok(())
    }

    /// Returns whether the peer may have received the message; `false` is certain.
    pub(crate) fn may_have_arrived(&mut self, ticket: SendTicket) -> bool {
        match ticket.0 {
            // A peer that publishes impossible positions may have done anything.
            Sent::Short(end) => self.short.is_read(end).unwrap_or(true),
            Sent::Long(age) => {
                let waits = self.queue.keys().any(|(_, other)| *other == age);
                let end = self.in_ring.iter().find(|(other, _, _)| *other == age);
                !waits && end.is_none_or(|(_, _, end)| self.bulk.is_read(*end).unwrap_or(true))
            }
        }
    }

    /// Returns whether the peer has read all accepted messages.
    pub(crate) fn is_drained(&mut self) -> bool {
        let [short, bulk] = [self.short.position(), self.bulk.position()];
        !self.has_waiting()
            && self.short.is_read(short).unwrap_or(true)
            && self.bulk.is_read(bulk).unwrap_or(true)
    }

    /// Returns whether a sender that was refused can retry. Returns `true` once per refusal.
    pub(crate) fn take_room(&mut self) -> bool {
        let room = self.has_room_for_refused();
        self.refused &= !room;
        room
    }

    /// Returns whether [`Outbox::pump`] or [`Outbox::take_room`] would do something.
    pub(crate) fn has_room(&mut self) -> bool {
        // An impossible read position is reported by the next write.
        let short = !self.control_short.is_empty() && !self.short.is_full(0);
        let len = self.chunk;
        short || self.has_long() && !self.bulk.is_full(len) || self.has_room_for_refused()
    }

    fn has_room_for_refused(&mut self) -> bool {
        let len = self.max_short;
        self.refused
            && self.control_short.is_empty()
            && self.queued_bytes <= self.limits.max_send_bytes / 2
            && self.queue.len() <= MAX_QUEUED / 2
            && !self.short.is_full(len)
    }

    /// Returns whether the control records that wait for the peer have reached their limit, so that
    /// reception must stop.
    pub(crate) fn is_stalled(&self) -> bool {
        self.control_short.len().max(self.control_bulk.len()) >= MAX_CONTROL
    }

    /// Returns whether records or refused senders wait for room.
    pub(crate) fn wants_room(&self) -> bool {
        self.refused || self.has_waiting()
    }

    fn has_waiting(&self) -> bool {
        !self.control_short.is_empty() || self.has_long()
    }

    fn has_long(&self) -> bool {
        !self.control_bulk.is_empty() || !self.queue.is_empty()
    }

    /// Frees unsent messages. Called when the pair has ended.
    pub(crate) fn clear(&mut self) {
        self.control_short.clear();
        self.control_bulk.clear();
        self.refused = false;
        // The entries stay, without their bytes: `may_have_arrived` still needs them.
        for message in self.queue.values_mut() {
            message.pieces.clear();
        }
    }
}
