//! What does a pair consist of, and who may touch what?
//!
//! A link is a pair without its socket: the four rings, the two halves with their locks, and how it ends.
//!
//! # Synchronisation, all of it
//!
//! | what | protected by |
//! |---|---|
//! | writing ends of the rings, what waits to be sent | `sending`, a lock |
//! | reading ends, what has come in part | `receiving`, a lock |
//! | whether and why the link has ended | `gone`, set once (compare-and-swap) |
//! | that nothing more will come | `hung_up`, set once |
//! | where a look without a lock finds the next records, what the sending half waits for | nothing: hints, written under the locks ([`super::peek`]) |
//! | records, heads, sleep words | SYNC POINTS 1 to 3 ([`super::ring`], [`super::wake`]) |
//!
//! - **Lock order** ([`super::lock`]): registry, then pairs by number; of one pair `receiving`, then `sending`.
//!   Nothing of the application's runs under a lock, no lock is held while a thread sleeps, and no system call is made under one but a futex wake-up or a byte
//!   into the pair's own socket, neither of which can block.
//! - **References.** Whoever uses a link holds an `Arc`. The mapping ends with the last one; closing does not
//!   unmap, it only ends what goes on.
//! - **Closing races with sending.** [`Link::end`] sets `gone` first and clears the halves afterwards, each
//!   under its lock. Whoever sends looks at `gone` again *after* it has taken the lock ([`Link::sending`]) and
//!   whoever receives likewise ([`Link::receiving`]): before the lock it may have been open. So a message is either in the
//!   ring, where the peer may still read it, or was refused; never neither.
//! - **Both ends close at once.** Each sets its own `gone` and its own farewell; neither waits for the other.
//!
//! # Invariants
//!
//! - **L1** The first reason for which a link ends is the one that everybody is told.
//! - **L2** What the peer had made visible before it left is received before its leaving is told.

use std::time::Duration;

use apus_wire::{Refusal, Role};
use bytes::Bytes;

use crate::close;
use crate::error::{Disconnected, SendError, Violation};
use crate::inbox::{Inbox, PairEvent, Step};
use crate::layout::{Lane, RingSizes, place, words};
use crate::limits::LocalLimits;
use crate::lock::{Held, Lock, Rank};
use crate::memory::Memory;
use crate::outbox::{Outbox, Refused, SendTicket};
use crate::peek::{CLOGGED, Glance};
use crate::ring::{Consumer, Producer};
use crate::sync::{Ordering, spin_loop};
use crate::wake::{Alarm, How, Sleep};

/// A pair without its socket.
pub(crate) struct Link {
    memory: Memory,
    role: Role,
    glance: Glance,
    sending: Lock<Outbox>,
    receiving: Lock<Inbox>,
    sleep: Sleep,
    alarm: Alarm,
}

/// What receiving led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub(crate) struct Received {
    /// Records taken.
    pub(crate) records: usize,
    /// Whether the peer's socket must be rung.
    pub(crate) ring: bool,
}

impl Link {
    /// The link with this number over `memory`, which is laid out by `sizes` and whose bytes are all 0, or were
    /// written by the peer.
    pub(crate) fn new(
        number: u64,
        role: Role,
        memory: Memory,
        sizes: RingSizes,
        limits: LocalLimits,
    ) -> Self {
        let writer = |lane| Producer::new(memory.clone(), place(sizes, role, lane));
        let reader = |lane| Consumer::new(memory.clone(), place(sizes, role.peer(), lane));
        let outbox = Outbox::new(role, writer(Lane::Short), writer(Lane::Bulk), limits);
        let inbox = Inbox::new(role, reader(Lane::Short), reader(Lane::Bulk), limits);
        Self {
            role,
            glance: Glance::new(memory.clone(), sizes, role),
            sending: Lock::new(Rank::sending(number), outbox),
            receiving: Lock::new(Rank::receiving(number), inbox),
            sleep: Sleep::new(memory.clone(), words(role).sleep),
            alarm: Alarm::new(memory.clone(), words(role.peer()).sleep),
            memory,
        }
    }

    pub(crate) const fn role(&self) -> Role {
        self.role
    }

    /// Why the link has ended, if it has.
    pub(crate) fn gone(&self) -> Option<Disconnected> {
        decode(self.glance.state.gone.load(Ordering::Acquire))
    }

    /// The sending half, unless the link has ended: looked at again under the lock, which [`Link::end`] takes
    /// after it has said so.
    fn sending(&self) -> Result<Held<'_, Outbox>, Disconnected> {
        let outbox = self.sending.lock();
        match self.gone() {
            None => Ok(outbox),
            Some(gone) => Err(gone),
        }
    }

    /// The receiving half, likewise.
    fn receiving(&self) -> Result<Held<'_, Inbox>, Disconnected> {
        let receiving = self.receiving.lock();
        match self.gone() {
            None => Ok(receiving),
            Some(gone) => Err(gone),
        }
    }

    /// Whether [`Link::receive`] would do nothing, as far as one sees without a lock.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        !self.glance.is_worth_a_pass() && !self.glance.has_debt()
    }

    /// Holds the sending half, so that several messages leave together.
    pub(crate) fn batch(&self) -> Result<Batch<'_>, Disconnected> {
        let outbox = self.sending()?;
        outbox.expect();
        Ok(Batch { link: self, outbox, pushed: false, broken: None })
    }

    /// Takes what has arrived: short messages first, at most `limit` records, and of long ones at most `chunks`.
    ///
    /// # Errors
    ///
    /// [`Disconnected`]: the link has ended, and all that had arrived before was received.
    pub(crate) fn receive(
        &self,
        limit: usize,
        chunks: usize,
        events: &mut Vec<PairEvent>,
    ) -> Result<Received, Disconnected> {
        if !self.glance.is_worth_a_pass() {
            return Ok(Received { records: 0, ring: self.settle() });
        }
        let mut pumped = self.pump(events)?;
        let mut receiving = self.receiving()?;
        let mut records = 0;
        // Nothing is taken from a peer that does not read what it is told.
        if self.glance.state.wants.load(Ordering::Relaxed) != CLOGGED || self.has_hung_up() {
            match self.take_both(&mut receiving, limit, chunks, events) {
                Ok(taken) => records = taken,
                Err(violation) => {
                    drop(receiving);
                    return Err(self.end(Disconnected::Violation(violation)));
                }
            }
        }
        if records == 0 {
            // L2: in this order. What it had made visible was visible before.
            if self.has_hung_up() && !receiving.is_ready() {
                drop(receiving);
                return Err(self.end(self.why_hung_up()));
            }
            drop(receiving);
            let ring = self.settle() || pumped && self.alarm.ring(true);
            return Ok(Received { records, ring });
        }
        // Who goes on receiving tells the peer of the room later, all at once.
        self.glance.note(&receiving);
        drop(receiving);
        // Words about what came.
        pumped |= self.pump(events)?;
        let ring = pumped && self.alarm.ring(true);
        Ok(Received { records, ring })
    }

    /// Takes from both lanes; how many records.
    #[inline(always)]
    fn take_both(
        &self,
        inbox: &mut Inbox,
        limit: usize,
        chunks: usize,
        events: &mut Vec<PairEvent>,
    ) -> Result<usize, Violation> {
        let short = self.take(inbox, Lane::Short, limit, events)?;
        if chunks == 0 || !inbox.has_chunk() {
            return Ok(short);
        }
        Ok(short + self.take_chunks(inbox, chunks, events)?)
    }

    #[inline(never)]
    fn take_chunks(
        &self,
        inbox: &mut Inbox,
        limit: usize,
        events: &mut Vec<PairEvent>,
    ) -> Result<usize, Violation> {
        self.take(inbox, Lane::Bulk, limit, events)
    }

    /// Takes at most `limit` records of a lane; how many.
    #[inline(always)]
    fn take(
        &self,
        inbox: &mut Inbox,
        lane: Lane,
        limit: usize,
        events: &mut Vec<PairEvent>,
    ) -> Result<usize, Violation> {
        for taken in 0..limit {
            match inbox.next(lane, events)? {
                Step::Taken => {}
                Step::Nothing => return Ok(taken),
                Step::Heed => self.heed(&events[events.len() - 1]),
                Step::Decline(id, why) => self.decline(id, why),
            }
        }
        Ok(limit)
    }

    /// What an event means for what is to be sent.
    fn heed(&self, event: &PairEvent) {
        match event {
            PairEvent::Refused { id, .. } => {
                self.sending.lock().drop_queued(*id);
            }
            PairEvent::Cancelled { id } => {
                let mut outbox = self.sending.lock();
                outbox.withdraw(*id);
                self.note(&outbox);
            }
            _ => {}
        }
    }

    /// Refuses a request that there is no room for.
    fn decline(&self, id: u64, why: Refusal) {
        let mut outbox = self.sending.lock();
        outbox.refuse(id, why);
        self.note(&outbox);
    }

    /// Publishes what the receiving half has to know of the sending one, whose lock is held.
    #[inline]
    fn note(&self, outbox: &Outbox) {
        let wants = if outbox.is_clogged() { CLOGGED } else { u32::from(outbox.wants_room()) };
        // Readers look at this line all the time, and it rarely changes.
        if self.glance.state.wants.load(Ordering::Relaxed) != wants {
            self.glance.state.wants.store(wants, Ordering::Relaxed);
        }
    }

    /// Sends on what waits for room; tells the application if it does. Whether anything went.
    #[inline]
    fn pump(&self, events: &mut Vec<PairEvent>) -> Result<bool, Disconnected> {
        match self.glance.state.wants.load(Ordering::Relaxed) {
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
                self.note(&outbox);
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

    /// Whether a record comes, or the end, while one looks `rounds` times.
    pub(crate) fn spin(&self, rounds: u32) -> bool {
        for _ in 0..rounds {
            if self.glance.has_news() {
                return true;
            }
            spin_loop();
        }
        false
    }

    /// Whether there is something to receive, or room that was waited for, or the end.
    pub(crate) fn is_ready(&self) -> bool {
        let ready = |receiving: Held<'_, Inbox>| receiving.is_ready();
        self.has_hung_up()
            || self.receiving().map_or(true, ready)
            || self.sending().map_or(true, |mut outbox| outbox.has_room())
    }

    /// Bytes that are missing of the long message whose record comes next.
    pub(crate) fn remaining(&self) -> Option<u32> {
        if !self.glance.has_chunk() {
            return None;
        }
        // A violation is told by `receive`, which is called for what is ready.
        self.receiving().ok()?.remaining().unwrap_or(Some(0))
    }

    /// Whether a message has come in part, or has left in part.
    pub(crate) fn is_midway(&self) -> bool {
        self.glance.is_midway()
    }

    /// Announces that this side is about to sleep. Whether it may: there was nothing to do even afterwards.
    pub(crate) fn prepare_to_sleep(&self, how: How) -> bool {
        let for_room = self.sending().is_ok_and(|outbox| outbox.wants_room());
        self.sleep.announce(how, for_room);
        if self.is_ready() {
            self.sleep.withdraw();
            return false;
        }
        true
    }

    /// Tells the peer of room that it may wait for, before this side sleeps. Whether its socket must be rung.
    pub(crate) fn settle(&self) -> bool {
        self.glance.take_debt() && self.alarm.ring(false)
    }

    /// Sleeps as announced, but no longer than `time`. May return early.
    pub(crate) fn doze(&self, time: Duration) {
        self.sleep.doze(time);
    }

    /// This side is awake.
    pub(crate) fn withdraw(&self) {
        self.sleep.withdraw();
    }

    /// Whether the peer may have got the message: `false` is certain.
    pub(crate) fn may_have_arrived(&self, ticket: SendTicket) -> bool {
        // Also after the end: that is when one asks.
        self.sending.lock().may_have_arrived(ticket)
    }

    /// Whether the peer has read all that was sent.
    pub(crate) fn is_drained(&self) -> bool {
        self.sending().map_or(true, |mut outbox| outbox.is_drained())
    }

    /// The peer's end of the socket is closed: nothing more comes.
    pub(crate) fn hang_up(&self) {
        self.glance.state.hung_up.store(true, Ordering::Release);
        self.sleep.rouse();
    }

    fn has_hung_up(&self) -> bool {
        self.glance.state.hung_up.load(Ordering::Acquire)
    }

    fn why_hung_up(&self) -> Disconnected {
        let word = self.memory.half(words(self.role.peer()).farewell).load(Ordering::Acquire);
        close::read(word)
    }

    /// Ends the link. Returns why it has ended, which may be another reason (L1).
    pub(crate) fn end(&self, why: Disconnected) -> Disconnected {
        let set = self.glance.state.gone.compare_exchange(
            0,
            encode(why),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if let Err(before) = set {
            return decode(before).unwrap_or(why);
        }
        // What was accepted lies in the ring already, or never leaves.
        self.receiving.lock().clear();
        self.sending.lock().clear();
        let own = words(self.role).farewell;
        self.memory.half(own).store(close::word(why), Ordering::Release);
        self.sleep.rouse();
        why
    }

    /// Wakes the peer if it sleeps on its word. The end of the socket wakes those who sleep on that.
    pub(crate) fn wake_peer(&self) {
        let _ = self.alarm.wake();
    }
}

/// The sending half, held: messages leave one by one, and the peer is woken once.
pub(crate) struct Batch<'a> {
    link: &'a Link,
    outbox: Held<'a, Outbox>,
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
            Err(Refused::Send(error)) => Err(error),
            Err(Refused::Broken(violation)) => {
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

    /// Lets a message go; as a client, the call.
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

    /// Lets the messages go. Whether the peer's socket must be rung.
    ///
    /// # Errors
    ///
    /// [`Disconnected`]: the peer turned out to break the protocol.
    pub(crate) fn finish(self) -> Result<bool, Disconnected> {
        let Self { link, outbox, pushed, broken } = self;
        link.note(&outbox);
        drop(outbox);
        match broken {
            Some(violation) => Err(link.end(Disconnected::Violation(violation))),
            None => Ok(pushed && link.alarm.ring(true)),
        }
    }
}

const fn encode(gone: Disconnected) -> u32 {
    match gone {
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
