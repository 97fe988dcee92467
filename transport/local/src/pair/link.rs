//! Core of a pair without its socket: four rings, two halves with their locks, and the reason of
//! the end.
//!
//! # Synchronisation
//!
//! This table is complete for one pair.
//!
//! | state | protected by |
//! |---|---|
//! | writing ends of the rings, messages that wait to be sent | `sending`, a lock |
//! | reading ends of the rings, messages that have arrived in part | `receiving`, a lock |
//! | whether and why the link has ended | `ended`, set once (compare-and-swap) |
//! | that the peer will write no more | `hung_up`, set once |
//! | offsets of the next records, the room that the sending half waits for | no data: hints, written under the locks ([`super::peek`]) |
//! | records, read positions, sleep words | acquire and release: RING-1, RING-3 (`ring`), SLEEP-1 ([`super::sleep`]) |
//!
//! - **Lock order** (`lock`): registry, then pairs by number; within one pair `receiving`, then
//!   `sending`. No code of the application runs under a lock, and no lock is held while a thread
//!   sleeps. The only system calls under a lock are a futex wake-up and a byte into the pair's own
//!   socket, neither of which can block.
//! - **References.** Every user of a link holds an `Arc`. The mapping ends with the last one;
//!   closing does not unmap.
//! - **Closing races with sending.** [`Link::end`] sets `ended` first and then clears the halves,
//!   each under its lock. A sender checks `ended` again *after* it has taken the lock
//!   ([`Link::sending`]), and so does a receiver ([`Link::receiving`]): the pair may have ended
//!   while it waited for the lock. A message is therefore either in the ring, where the peer may
//!   still read it, or was refused.
//! - **Both sides close at the same time.** Each sets its own `ended` and its own close word;
//!   neither waits.
//!
//! # Invariants
//!
//! - **LINK-1** Every caller receives the same reason for the end: the first one.
//! - **LINK-2** Records that the peer made visible before it left are received before its departure
//!   is reported.

use std::time::Duration;

use apus_wire::{Refusal, Role};
use bytes::Bytes;

use super::close;
use super::inbox::{Inbox, PairEvent, ReadStep};
use super::limits::LocalLimits;
use super::outbox::{Outbox, OutboxError, SendTicket};
use super::peek::{Peek, STALLED};
use super::sleep::{OwnSleep, PeerSleep, SleepMode};
use crate::error::{Disconnected, SendError, Violation};
use crate::lock::{Lock, LockGuard, Rank};
use crate::memory::Memory;
use crate::memory::layout::{Lane, RingSizes, ring_layout, side_words};
use crate::ring::{Consumer, Producer};
use crate::sync::{Ordering, spin_loop};

/// A pair without its socket.
pub(crate) struct Link {
    memory: Memory,
    role: Role,
    peek: Peek,
    sending: Lock<Outbox>,
    receiving: Lock<Inbox>,
    sleep: OwnSleep,
    peer_sleep: PeerSleep,
}

/// Result of one [`Link::receive`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub(crate) struct Received {
    /// Number of records consumed.
    pub(crate) records: usize,
    /// Whether the caller must signal the peer's socket.
    pub(crate) signal: bool,
}

impl Link {
    /// Returns the link with this number over `memory`, whose layout follows from `sizes` and whose
    /// bytes are 0, or were written by the peer.
    pub(crate) fn new(
        number: u64,
        role: Role,
        memory: Memory,
        sizes: RingSizes,
        limits: LocalLimits,
    ) -> Self {
        let writer = |lane| Producer::new(memory.clone(), ring_layout(sizes, role, lane));
        let reader = |lane| Consumer::new(memory.clone(), ring_layout(sizes, role.peer(), lane));
        let outbox = Outbox::new(role, writer(Lane::Short), writer(Lane::Bulk), limits);
        let inbox = Inbox::new(role, reader(Lane::Short), reader(Lane::Bulk), limits);
        Self {
            role,
            peek: Peek::new(memory.clone(), sizes, role),
            sending: Lock::new(Rank::sending(number), outbox),
            receiving: Lock::new(Rank::receiving(number), inbox),
            sleep: OwnSleep::new(memory.clone(), side_words(role).sleep),
            peer_sleep: PeerSleep::new(memory.clone(), side_words(role.peer()).sleep),
            memory,
        }
    }

    pub(crate) const fn role(&self) -> Role {
        self.role
    }

    /// Returns why the link has ended, if it has.
    pub(crate) fn disconnected(&self) -> Option<Disconnected> {
        decode(self.peek.state.ended.load(Ordering::Acquire))
    }

    /// Locks the sending half, unless the link has ended. Checks under the lock, which
    /// [`Link::end`] takes after it has set `ended`.
    fn sending(&self) -> Result<LockGuard<'_, Outbox>, Disconnected> {
        let outbox = self.sending.lock();
        match self.disconnected() {
            None => Ok(outbox),
            Some(why) => Err(why),
        }
    }

    /// Locks the receiving half, unless the link has ended; see [`Link::sending`].
    fn receiving(&self) -> Result<LockGuard<'_, Inbox>, Disconnected> {
        let receiving = self.receiving.lock();
        match self.disconnected() {
            None => Ok(receiving),
            Some(why) => Err(why),
        }
    }

    /// Returns whether [`Link::receive`] would have no work, as far as is visible without a lock.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        !self.peek.is_worth_a_pass() && !self.peek.has_unreported_room()
    }

    /// Locks the sending half, so that several messages leave together.
    pub(crate) fn batch(&self) -> Result<Batch<'_>, Disconnected> {
        let outbox = self.sending()?;
        outbox.prefetch_next();
        Ok(Batch { link: self, outbox, pushed: false, broken: None })
    }

    /// Receives up to `limit` short records and then up to `chunks` chunks of long messages.
    ///
    /// # Errors
    ///
    /// [`Disconnected`] if the link has ended; everything that had arrived before was received.
    pub(crate) fn receive(
        &self,
        limit: usize,
        chunks: usize,
        events: &mut Vec<PairEvent>,
    ) -> Result<Received, Disconnected> {
        if !self.peek.is_worth_a_pass() {
            return Ok(Received { records: 0, signal: self.report_room() });
        }
        let mut pumped = self.pump(events)?;
        let mut receiving = self.receiving()?;
        let mut records = 0;
        // Reception stops while the peer does not read the control records for it.
        let stalled = self.peek.state.wanted.load(Ordering::Relaxed) == STALLED;
        if !stalled || self.has_hung_up() {
            match self.read_both(&mut receiving, limit, chunks, events) {
                Ok(read) => records = read,
                Err(violation) => {
                    drop(receiving);
                    return Err(self.end(Disconnected::Violation(violation)));
                }
            }
        }
        if records == 0 {
            // LINK-2: in this order. Records that the peer made visible were visible before it hung
            // up.
            if self.has_hung_up() && !receiving.is_ready() {
                drop(receiving);
                return Err(self.end(self.hang_up_reason()));
            }
            drop(receiving);
            let signal = self.report_room() || pumped && self.peer_sleep.wake_if_asleep(true);
            return Ok(Received { records, signal });
        }
        // A caller that continues to receive reports the room to the peer later, in one step.
        self.peek.publish(&receiving);
        drop(receiving);
        // Control records written in response to received ones.
        pumped |= self.pump(events)?;
        let signal = pumped && self.peer_sleep.wake_if_asleep(true);
        Ok(Received { records, signal })
    }

    /// Reads from both lanes; returns the number of records.
    #[inline(always)]
    fn read_both(
        &self,
        inbox: &mut Inbox,
        limit: usize,
        chunks: usize,
        events: &mut Vec<PairEvent>,
    ) -> Result<usize, Violation> {
        let short = self.read(inbox, Lane::Short, limit, events)?;
        if chunks == 0 || !inbox.has_chunk() {
            return Ok(short);
        }
        Ok(short + self.read_chunks(inbox, chunks, events)?)
    }

    #[inline(never)]
    fn read_chunks(
        &self,
        inbox: &mut Inbox,
        limit: usize,
        events: &mut Vec<PairEvent>,
    ) -> Result<usize, Violation> {
        self.read(inbox, Lane::Bulk, limit, events)
    }

    /// Reads up to `limit` records of a lane; returns their number.
    #[inline(always)]
    fn read(
        &self,
        inbox: &mut Inbox,
        lane: Lane,
        limit: usize,
        events: &mut Vec<PairEvent>,
    ) -> Result<usize, Violation> {
        for read in 0..limit {
            match inbox.next(lane, events)? {
                ReadStep::Consumed => {}
                ReadStep::Empty => return Ok(read),
                ReadStep::Control => self.handle_control(&events[events.len() - 1]),
                ReadStep::Decline(id, why) => self.decline(id, why),
            }
        }
        Ok(limit)
    }

    /// Applies a control event to the sending half.
    fn handle_control(&self, event: &PairEvent) {
        match event {
            PairEvent::Refused { id, .. } => {
                self.sending.lock().drop_queued(*id);
            }
            PairEvent::Cancelled { id } => {
                let mut outbox = self.sending.lock();
                outbox.withdraw(*id);
                self.publish(&outbox);
            }
            _ => {}
        }
    }

    /// Refuses a request that exceeds the limits.
    fn decline(&self, id: u64, why: Refusal) {
        let mut outbox = self.sending.lock();
        outbox.refuse(id, why);
        self.publish(&outbox);
    }

    /// Publishes to the receiving half the room that the sending half, whose lock is held, waits
    /// for.
    #[inline]
    fn publish(&self, outbox: &Outbox) {
        let wanted = if outbox.is_stalled() { STALLED } else { u32::from(outbox.wants_room()) };
        // Readers poll this line all the time, and it rarely changes.
        if self.peek.state.wanted.load(Ordering::Relaxed) != wanted {
            self.peek.state.wanted.store(wanted, Ordering::Relaxed);
        }
    }

    /// Writes waiting records that now have room, and reports room to the application. Returns
    /// whether any record was written.
    #[inline]
    fn pump(&self, events: &mut Vec<PairEvent>) -> Result<bool, Disconnected> {
        match self.peek.state.wanted.load(Ordering::Relaxed) {
            0 => Ok(false),
            _ => self.pump_waiting(events),
        }
    }

    #[cold]
    fn pump_waiting(&self, events: &mut Vec<PairEvent>) -> Result<bool, Disconnected> {
        let mut outbox = self.sending()?;
        match outbox.pump() {
            Ok(pumped) => {
                let room = outbox.take_room();
                self.publish(&outbox);
                drop(outbox);
                if room {
                    events.push(PairEvent::Room);
                }
                Ok(pumped)
            }
            Err(violation) => {
                drop(outbox);
                Err(self.end(Disconnected::Violation(violation)))
            }
        }
    }

    /// Polls up to `rounds` times; returns whether a record arrived or the link ended.
    pub(crate) fn spin(&self, rounds: u32) -> bool {
        for _ in 0..rounds {
            if self.peek.has_news() {
                return true;
            }
            spin_loop();
        }
        false
    }

    /// Returns whether there is a record to receive, room that was waited for, or the end.
    pub(crate) fn is_ready(&self) -> bool {
        let ready = |receiving: LockGuard<'_, Inbox>| receiving.is_ready();
        self.has_hung_up()
            || self.receiving().map_or(true, ready)
            || self.sending().map_or(true, |mut outbox| outbox.has_room())
    }

    /// Returns the missing bytes of the long message whose record is next.
    pub(crate) fn remaining(&self) -> Option<u32> {
        if !self.peek.has_chunk() {
            return None;
        }
        // `receive`, which is called for every ready pair, reports a violation.
        self.receiving().ok()?.remaining().unwrap_or(Some(0))
    }

    /// Returns whether a message has arrived in part or was sent in part.
    pub(crate) fn has_partial_message(&self) -> bool {
        self.peek.has_partial_message()
    }

    /// Announces that this side is about to sleep. Returns whether it may: a check after the
    /// announcement found no work.
    pub(crate) fn prepare_to_sleep(&self, mode: SleepMode) -> bool {
        let for_room = self.sending().is_ok_and(|outbox| outbox.wants_room());
        self.sleep.announce(mode, for_room);
        if self.is_ready() {
            self.sleep.clear();
            return false;
        }
        true
    }

    /// Reports room to a peer that may wait for it, before this side sleeps. Returns whether the
    /// caller must signal the peer's socket.
    pub(crate) fn report_room(&self) -> bool {
        self.peek.take_unreported_room() && self.peer_sleep.wake_if_asleep(false)
    }

    /// Sleeps as announced, for up to `time`. May return early.
    pub(crate) fn sleep(&self, time: Duration) {
        self.sleep.wait(time);
    }

    /// Withdraws the announcement to sleep.
    pub(crate) fn finish_sleep(&self) {
        self.sleep.clear();
    }

    /// Returns whether the peer may have received the message; `false` is certain.
    pub(crate) fn may_have_arrived(&self, ticket: SendTicket) -> bool {
        // Also valid after the end, when callers need it.
        self.sending.lock().may_have_arrived(ticket)
    }

    /// Returns whether the peer has read all sent messages.
    pub(crate) fn is_drained(&self) -> bool {
        self.sending().map_or(true, |mut outbox| outbox.is_drained())
    }

    /// Records that the peer's end of the socket is closed: the peer writes no more.
    pub(crate) fn hang_up(&self) {
        self.peek.state.hung_up.store(true, Ordering::Release);
        self.sleep.wake();
    }

    fn has_hung_up(&self) -> bool {
        self.peek.state.hung_up.load(Ordering::Acquire)
    }

    fn hang_up_reason(&self) -> Disconnected {
        let word = self.memory.half(side_words(self.role.peer()).close).load(Ordering::Acquire);
        close::decode(word)
    }

    /// Ends the link. Returns the reason of the end, which may be an earlier one (LINK-1).
    pub(crate) fn end(&self, why: Disconnected) -> Disconnected {
        let set = self.peek.state.ended.compare_exchange(
            0,
            encode(why),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if let Err(before) = set {
            return decode(before).unwrap_or(why);
        }
        // Accepted messages are in the ring by now, or never leave.
        self.receiving.lock().clear();
        self.sending.lock().clear();
        let own = side_words(self.role).close;
        self.memory.half(own).store(close::encode(why), Ordering::Release);
        self.sleep.wake();
        why
    }

    /// Wakes the peer if it sleeps on its word. The end of the socket wakes a peer that sleeps on
    /// the socket.
    pub(crate) fn wake_peer(&self) {
        let _ = self.peer_sleep.wake();
    }
}

/// The locked sending half: several messages leave, and the peer is woken once.
pub(crate) struct Batch<'a> {
    link: &'a Link,
    outbox: LockGuard<'a, Outbox>,
    pushed: bool,
    broken: Option<Violation>,
}

impl Batch<'_> {
    /// Accepts a message.
    #[inline]
    pub(crate) fn send(&mut self, id: u64, pieces: &[Bytes]) -> Result<SendTicket, SendError> {
        if let Some(violation) = self.broken {
            return Err(Disconnected::Violation(violation).into());
        }
        match self.outbox.send(id, pieces, !self.pushed) {
            Ok(ticket) => {
                self.pushed = true;
                Ok(ticket)
            }
            Err(OutboxError::Send(error)) => Err(error),
            Err(OutboxError::Broken(violation)) => {
                self.broken = Some(violation);
                Err(Disconnected::Violation(violation).into())
            }
        }
    }

    /// Refuses a request.
    pub(crate) fn refuse(&mut self, id: u64, why: Refusal) {
        self.outbox.refuse(id, why);
        self.pump();
    }

    /// Asks the peer to freeze its trace.
    pub(crate) fn freeze(&mut self) {
        self.outbox.freeze();
        self.pump();
    }

    /// Cancels the queued message of `id`; as a client, also the call.
    pub(crate) fn withdraw(&mut self, id: u64) {
        self.outbox.withdraw(id);
        self.pump();
    }

    fn pump(&mut self) {
        match self.outbox.pump() {
            Ok(pumped) => self.pushed |= pumped,
            Err(violation) => self.broken = Some(violation),
        }
    }

    /// Ends the batch. Returns whether the caller must signal the peer's socket.
    ///
    /// # Errors
    ///
    /// [`Disconnected`] if the peer broke the protocol.
    pub(crate) fn finish(self) -> Result<bool, Disconnected> {
        let Self { link, outbox, pushed, broken } = self;
        link.publish(&outbox);
        drop(outbox);
        match broken {
            Some(violation) => Err(link.end(Disconnected::Violation(violation))),
            None => Ok(pushed && link.peer_sleep.wake_if_asleep(true)),
        }
    }
}

const fn encode(why: Disconnected) -> u32 {
    match why {
        Disconnected::Closed => 1,
        Disconnected::PeerClosed => 2,
        Disconnected::PeerDied => 3,
        Disconnected::Accused => 4,
        Disconnected::Violation(Violation::Mark) => 5,
        Disconnected::Violation(Violation::Kind) => 6,
        Disconnected::Violation(Violation::Length) => 7,
        Disconnected::Violation(Violation::Head) => 8,
        Disconnected::Violation(Violation::Part) => 9,
    }
}

const fn decode(code: u32) -> Option<Disconnected> {
    Some(match code {
        0 => return None,
        1 => Disconnected::Closed,
        2 => Disconnected::PeerClosed,
        3 => Disconnected::PeerDied,
        4 => Disconnected::Accused,
        5 => Disconnected::Violation(Violation::Mark),
        6 => Disconnected::Violation(Violation::Kind),
        7 => Disconnected::Violation(Violation::Length),
        8 => Disconnected::Violation(Violation::Head),
        _ => Disconnected::Violation(Violation::Part),
    })
}
