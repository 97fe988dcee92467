//! What leaves next, and what waits?
//!
//! Under the sending lock of a pair. Short messages go into their ring at once, or are refused for lack of
//! room. Long ones wait here as references, and go in chunks, the shortest remaining one first.
//!
//! # Invariants
//!
//! - **O1** What was accepted goes into the ring in full, unless it is withdrawn or the pair ends.
//! - **O2** What concerns a long message goes in the lane of its chunks, so that it does not overtake them.
//! - **O3** A message that was withdrawn after some chunks had left is followed by a word that ends it.

use std::collections::{BTreeMap, VecDeque};

use apus_wire::{Refusal, Role};
use bytes::Bytes;
use smallvec::SmallVec;

use crate::error::{SendError, Violation};
use crate::limits::{LocalLimits, MAX_HELD, MAX_QUEUED, chunk, max_short};
use crate::record::{Head, Kind};
use crate::ring::{Producer, PushError};

/// One chunk in so many belongs to the message that has waited longest, so that it does not starve behind
/// shorter ones: 5 %, the share that Homa gives the oldest message (ATC 2021 section 3.4; docs/adr/0007).
const OLDEST_EVERY: u64 = 20;

/// Names a message that was accepted, to ask what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendTicket(Lot);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lot {
    /// It ends there in the short ring.
    Short(u64),
    /// A long message, by the order in which they were accepted.
    Long(u64),
}

/// Why a message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Send(SendError),
    Broken(Violation),
}

impl From<SendError> for Refused {
    fn from(error: SendError) -> Self {
        Self::Send(error)
    }
}

/// What a pair sends.
pub(crate) struct Outbox {
    role: Role,
    short: Producer,
    bulk: Producer,
    limits: LocalLimits,
    max_short: usize,
    chunk: usize,
    /// Words for which there was no room, by lane.
    held_short: VecDeque<Head>,
    held_bulk: VecDeque<Head>,
    /// Long messages by what remains of them, and by age.
    queue: BTreeMap<(u32, u64), Outgoing>,
    queued_bytes: usize,
    /// Age of the next long message.
    next: u64,
    chunks: u64,
    /// Long messages that lie in the ring in full: age, id and the position behind the last chunk.
    in_ring: VecDeque<(u64, u64, u64)>,
    /// Whether somebody was refused for lack of room.
    refused: bool,
}

/// A long message.
struct Outgoing {
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
            held_short: VecDeque::new(),
            held_bulk: VecDeque::new(),
            queue: BTreeMap::new(),
            queued_bytes: 0,
            next: 0,
            chunks: 0,
            in_ring: VecDeque::new(),
            refused: false,
        }
    }

    /// Expects a short message at once.
    #[inline]
    pub(crate) fn expect(&self) {
        self.short.expect();
    }

    /// Accepts a message: a request of a client, a response of a server. `first`: of those that leave together, the
    /// one that the peer is likely to wait for.
    #[inline]
    pub(crate) fn send(
        &mut self,
        id: u64,
        pieces: &[Bytes],
        first: bool,
    ) -> Result<SendTicket, Refused> {
        let length: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
        if length == 0 {
            return Err(SendError::Empty.into());
        }
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
    ) -> Result<SendTicket, Refused> {
        if !self.held_short.is_empty() {
            self.pump_short().map_err(Refused::Broken)?;
            if !self.held_short.is_empty() {
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
                    slot.hurry();
                }
                let end = slot.commit(&Head::part(kind, id, total as usize, total, 0));
                Ok(SendTicket(Lot::Short(end)))
            }
            Err(PushError::Full) => Err(self.full()),
            Err(PushError::Broken(violation)) => Err(Refused::Broken(violation)),
        }
    }

    #[cold]
    fn send_long(&mut self, id: u64, pieces: &[Bytes], total: u32) -> Result<SendTicket, Refused> {
        let fits = self.queued_bytes + total as usize <= self.limits.max_send_bytes;
        if !self.queue.is_empty() && (!fits || self.queue.len() >= MAX_QUEUED) {
            return Err(self.full());
        }
        let age = self.next;
        self.next += 1;
        self.queued_bytes += total as usize;
        let pieces = pieces.iter().filter(|piece| !piece.is_empty()).cloned().collect();
        self.queue.insert((total, age), Outgoing { id, pieces, total, sent: 0 });
        self.pump_bulk().map_err(Refused::Broken)?;
        Ok(SendTicket(Lot::Long(age)))
    }

    fn full(&mut self) -> Refused {
        self.refused = true;
        SendError::Full.into()
    }

    const fn kind(&self) -> Kind {
        match self.role {
            Role::Client => Kind::Request,
            Role::Server => Kind::Response,
        }
    }

    /// The server will not answer `id`. To be followed by [`Outbox::pump`].
    pub(crate) fn refuse(&mut self, id: u64, why: Refusal) {
        self.held_short.push_back(Head::refusal(id, why));
    }

    /// The peer shall freeze its trace: once, however often that is said before there is room. To be followed by
    /// [`Outbox::pump`].
    pub(crate) fn freeze(&mut self) {
        let word = Head::freeze();
        if !self.held_short.contains(&word) {
            self.held_short.push_back(word);
        }
    }

    /// Lets go of what was to be sent for `id`, and as a client also of the call. To be followed by
    /// [`Outbox::pump`].
    pub(crate) fn withdraw(&mut self, id: u64) {
        let word = match self.role {
            Role::Client => Head::cancel(id),
            // The client has let go of the call, and drops what has come of its response.
            Role::Server => Head::refusal(id, Refusal::Abandoned),
        };
        if let Some(sent) = self.drop_queued(id) {
            if sent > 0 {
                self.held_bulk.push_back(word); // O2, O3
            }
        } else if self.role == Role::Client {
            // O2
            let long = self.in_ring.iter().any(|(_, other, _)| *other == id);
            let held = if long { &mut self.held_bulk } else { &mut self.held_short };
            held.push_back(word);
        }
    }

    /// Forgets a long message for `id`, if one waits: the peer does not want it. How much of it has left.
    pub(crate) fn drop_queued(&mut self, id: u64) -> Option<u32> {
        let key = *self.queue.iter().find(|(_, message)| message.id == id)?.0;
        let message = self.queue.remove(&key)?;
        self.queued_bytes -= message.total as usize;
        Some(message.sent)
    }

    /// Puts as much of what waits into the rings as there is room. Whether anything went.
    ///
    /// # Errors
    ///
    /// [`Violation`]: the peer claims what cannot be.
    pub(crate) fn pump(&mut self) -> Result<bool, Violation> {
        let short = !self.held_short.is_empty() && self.pump_short()?;
        let bulk = self.has_long() && self.pump_bulk()?;
        Ok(short || bulk)
    }

    fn pump_short(&mut self) -> Result<bool, Violation> {
        Self::pump_held(&mut self.held_short, &mut self.short)
    }

    fn pump_held(held: &mut VecDeque<Head>, ring: &mut Producer) -> Result<bool, Violation> {
        let mut any = false;
        while let Some(word) = held.front() {
            match ring.reserve(0) {
                Ok(slot) => slot.commit(word),
                Err(PushError::Full) => break,
                Err(PushError::Broken(violation)) => return Err(violation),
            };
            held.pop_front();
            any = true;
        }
        Ok(any)
    }

    fn pump_bulk(&mut self) -> Result<bool, Violation> {
        let mut any = Self::pump_held(&mut self.held_bulk, &mut self.bulk)?;
        if !self.held_bulk.is_empty() {
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

    /// Which long message the next chunk belongs to.
    fn next_long(&self) -> Option<(u32, u64)> {
        if self.chunks % OLDEST_EVERY == OLDEST_EVERY - 1 {
            return self.queue.keys().min_by_key(|(_, age)| *age).copied();
        }
        self.queue.keys().next().copied()
    }

    /// Puts the next chunk of a queued message into the ring.
    fn push_chunk(&mut self, key: (u32, u64)) -> Result<(), PushError> {
        let (remaining, age) = key;
        let len = self.chunk.min(remaining as usize);
        let kind = self.kind();
        let mut slot = self.bulk.reserve(len)?;
        let mut message = self.queue.remove(&key).expect("it was found there");
        let mut left = len;
        while left > 0 {
            // What has been copied is let go piece by piece.
            let piece = message.pieces.first_mut().expect("pieces make up the message");
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

    /// Forgets long messages that the peer has read.
    fn forget_read(&mut self) -> Result<(), PushError> {
        while let Some((_, _, end)) = self.in_ring.front() {
            if !self.bulk.is_read(*end).map_err(PushError::Broken)? {
                break;
            }
            self.in_ring.pop_front();
        }
        Ok(())
    }

    /// Whether the peer may have got the message: `false` is certain.
    pub(crate) fn may_have_arrived(&mut self, ticket: SendTicket) -> bool {
        match ticket.0 {
            // A peer that makes false claims may have done anything.
            Lot::Short(end) => self.short.is_read(end).unwrap_or(true),
            Lot::Long(age) => {
                let waits = self.queue.keys().any(|(_, other)| *other == age);
                let end = self.in_ring.iter().find(|(other, _, _)| *other == age);
                !waits && end.is_none_or(|(_, _, end)| self.bulk.is_read(*end).unwrap_or(true))
            }
        }
    }

    /// Whether the peer has read all that was accepted.
    pub(crate) fn is_drained(&mut self) -> bool {
        let [short, bulk] = [self.short.position(), self.bulk.position()];
        !self.has_waiting()
            && self.short.is_read(short).unwrap_or(true)
            && self.bulk.is_read(bulk).unwrap_or(true)
    }

    /// Whether somebody who was refused can try again. Says so once.
    pub(crate) fn take_room(&mut self) -> bool {
        let room = self.has_room_for_refused();
        self.refused &= !room;
        room
    }

    /// Whether [`Outbox::pump`] or [`Outbox::take_room`] would do something.
    pub(crate) fn has_room(&mut self) -> bool {
        // A peer that makes false claims is found out by looking.
        let short = !self.held_short.is_empty() && !self.short.is_full(0);
        let len = self.chunk;
        short || self.has_long() && !self.bulk.is_full(len) || self.has_room_for_refused()
    }

    fn has_room_for_refused(&mut self) -> bool {
        let len = self.max_short;
        self.refused
            && self.held_short.is_empty()
            && self.queued_bytes <= self.limits.max_send_bytes / 2
            && self.queue.len() <= MAX_QUEUED / 2
            && !self.short.is_full(len)
    }

    /// Whether so many words wait for a peer which does not read that nothing more is taken from it.
    pub(crate) fn is_clogged(&self) -> bool {
        self.held_short.len().max(self.held_bulk.len()) >= MAX_HELD
    }

    /// Whether the peer must make room before all goes on here.
    pub(crate) fn wants_room(&self) -> bool {
        self.refused || self.has_waiting()
    }

    fn has_waiting(&self) -> bool {
        !self.held_short.is_empty() || self.has_long()
    }

    fn has_long(&self) -> bool {
        !self.held_bulk.is_empty() || !self.queue.is_empty()
    }

    /// The pair has ended: lets go of what was not sent.
    pub(crate) fn clear(&mut self) {
        self.held_short.clear();
        self.held_bulk.clear();
        self.refused = false;
        // Who asks later is told the truth: they are still in the queue, as far as their bytes go.
        for message in self.queue.values_mut() {
            message.pieces.clear();
        }
    }
}
