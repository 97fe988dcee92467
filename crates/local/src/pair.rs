//! What does one side of a connection between two processes look like to its user?
//!
//! A [`Link`] with its socket. The socket wakes a side that sleeps on it, and says when the peer has gone: the
//! kernel closes it when the last thread of the peer has ended, however it ended. Then the peer writes no more,
//! and what it had made visible can still be received.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use apus_wire::{Refusal, Role};
use bytes::Bytes;

use crate::credentials::Credentials;
use crate::error::{Disconnected, SendError};
use crate::inbox::PairEvent;
use crate::layout::RingSizes;
use crate::limits::LocalLimits;
use crate::link::{self, Link};
use crate::memory::Memory;
use crate::outbox::SendTicket;
use crate::socket;
use crate::wake::How;

/// How long a thread sleeps on a futex before it looks whether the peer still lives: nobody wakes a futex for a
/// process that was killed. Ours: a look costs a microsecond.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Looks at the rings between two looks at the clock.
const ROUNDS_PER_LOOK: u32 = 64;

/// Numbers of pairs: their place in the lock order.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// One side of a connection between two processes of this host.
///
/// The client's side sends requests and gets responses, the server's side the other way round. All
/// calls can be made by any thread at any time, except that one thread at a time may [`wait`](Pair::wait).
/// Two pairs share nothing.
///
/// When the last reference is dropped, the memory is unmapped and the socket closed; the peer sees that the pair
/// was closed.
// Two pairs of one process share no cache line either.
#[repr(align(128))]
pub struct Pair {
    number: u64,
    link: Link,
    socket: OwnedFd,
    peer: Peer,
    waits: AtomicBool,
    /// Whether a reader of many pairs has been told that this one has ended.
    told: AtomicBool,
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// What the kernel says.
    pub credentials: Credentials,
    /// What it says itself: which endpoint it is.
    pub identity: u64,
}

/// What one call of [`Pair::receive`] takes at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveQuota {
    /// Records of short messages, each a message or a word about one.
    pub short: usize,
    /// Chunks of long messages, of up to 32 KiB each.
    pub chunks: usize,
}

impl ReceiveQuota {
    /// No more than the rings hold.
    pub const ALL: Self = Self { short: 1 << 20, chunks: 1 << 20 };
}

impl Default for ReceiveQuota {
    /// 64 records, and chunks of 256 KiB in sum.
    fn default() -> Self {
        Self { short: 64, chunks: 8 }
    }
}

impl Pair {
    pub(crate) fn new(
        role: Role,
        memory: Memory,
        sizes: RingSizes,
        limits: LocalLimits,
        socket: OwnedFd,
        peer: Peer,
    ) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let link = Link::new(number, role, memory, sizes, limits);
        Self {
            number,
            link,
            socket,
            peer,
            waits: AtomicBool::new(false),
            told: AtomicBool::new(false),
        }
    }

    /// Which side this is.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.link.role()
    }

    /// Who is at the other end.
    #[must_use]
    pub const fn peer(&self) -> Peer {
        self.peer
    }

    /// A number that no other pair of this process has, or will have.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Sends a message, `pieces` one behind the other: a request as a client, the response as a server. The
    /// client chooses the `id`; two calls under way must not have the same.
    ///
    /// A short message lies in the ring when this returns. A longer one is kept by reference until it has left.
    ///
    /// # Errors
    ///
    /// [`SendError`]: nothing was sent.
    pub fn send(&self, id: u64, pieces: &[Bytes]) -> Result<SendTicket, SendError> {
        let mut batch = self.batch()?;
        let sent = batch.send(id, pieces);
        batch.finish()?;
        sent
    }

    /// As a client, lets a call go: its request does not leave if it has not yet, and the server is told. A
    /// response that is under way may come all the same.
    ///
    /// As a server, lets a response go that has not left in full.
    ///
    /// # Errors
    ///
    /// [`Disconnected`]: the pair has ended.
    pub fn cancel(&self, id: u64) -> Result<(), Disconnected> {
        let mut batch = self.batch()?;
        batch.cancel(id);
        batch.finish()
    }

    /// As a server, tells a client that its request will not be answered, and why. Never fails for lack of
    /// room.
    ///
    /// # Errors
    ///
    /// [`Disconnected`]: the pair has ended.
    ///
    /// # Panics
    ///
    /// If this is the client's side.
    pub fn refuse(&self, id: u64, why: Refusal) -> Result<(), Disconnected> {
        let mut batch = self.batch()?;
        batch.refuse(id, why);
        batch.finish()
    }

    /// Asks the peer to freeze its time trace, as FREEZE does over the network. Never fails for lack of room: without,
    /// the wish waits, and is there once.
    ///
    /// # Errors
    ///
    /// [`Disconnected`]: the pair has ended.
    pub fn freeze(&self) -> Result<(), Disconnected> {
        let mut batch = self.batch()?;
        batch.inner.freeze();
        batch.finish()
    }

    /// Lets several messages leave together: the peer is woken once, when the batch ends. Other threads that
    /// send over this pair wait until then.
    ///
    /// # Errors
    ///
    /// [`Disconnected`]: the pair has ended.
    pub fn batch(&self) -> Result<SendBatch<'_>, Disconnected> {
        Ok(SendBatch { pair: self, inner: self.link.batch()? })
    }

    /// Takes what has arrived, at most `quota`, appends it to `events`, and sends on what had to wait for room.
    /// Returns how many records were taken: 0 if there is nothing.
    ///
    /// # Errors
    ///
    /// [`Disconnected`]: the pair has ended. All that the peer had sent has been received, unless the pair was closed
    /// here or the peer broke the protocol.
    pub fn receive(
        &self,
        quota: ReceiveQuota,
        events: &mut Vec<PairEvent>,
    ) -> Result<usize, Disconnected> {
        match self.link.receive(quota.short, quota.chunks, events) {
            Ok(received) => {
                self.ring_if(received.ring);
                Ok(received.records)
            }
            Err(gone) => {
                // Whatever the reason, the peer shall know.
                self.part();
                Err(gone)
            }
        }
    }

    /// Whether [`Pair::receive`] would do nothing.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.link.is_idle()
    }

    /// Bytes that are missing of the long message whose chunk comes next, if one has arrived. For those who
    /// receive from many pairs, shortest first.
    #[must_use]
    pub fn remaining(&self) -> Option<u32> {
        self.link.remaining()
    }

    /// Whether a message has come in part, or has left in part: the rest comes soon, or room for it, as the peer
    /// copies at this moment. For those who decide whether to sleep.
    #[must_use]
    pub fn is_midway(&self) -> bool {
        self.link.is_midway()
    }

    /// Waits until there is something to receive: spins first, for as long as `spin` says (`None`: for ever), and
    /// sleeps then. Whether there is; `false` when the deadline has passed. May say so for nothing.
    ///
    /// # Panics
    ///
    /// If another thread waits for the same pair.
    pub fn wait(&self, spin: Option<Duration>, deadline: Option<Instant>) -> bool {
        let first = !self.waits.swap(true, Ordering::Acquire);
        assert!(first, "one thread at a time may wait for a pair");
        let ready = self.wait_alone(spin, deadline);
        self.waits.store(false, Ordering::Release);
        ready
    }

    fn wait_alone(&self, spin: Option<Duration>, deadline: Option<Instant>) -> bool {
        let settled = self.link.settle();
        self.ring_if(settled);
        if self.spin(spin, deadline) {
            return true;
        }
        loop {
            let now = Instant::now();
            let left = deadline.map_or(LOOK_EVERY, |at| at.saturating_duration_since(now));
            if left.is_zero() {
                return false;
            }
            if !self.link.prepare_to_sleep(How::Futex) {
                return true;
            }
            self.link.doze(left.min(LOOK_EVERY));
            self.link.withdraw();
            if self.link.is_ready() || self.look() {
                return true;
            }
        }
    }

    /// Looks at the rings again and again; whether something came.
    fn spin(&self, limit: Option<Duration>, deadline: Option<Instant>) -> bool {
        if limit.is_some_and(|limit| limit.is_zero()) {
            return self.link.is_ready();
        }
        let mut until = None;
        loop {
            if self.link.spin(ROUNDS_PER_LOOK) {
                return true;
            }
            let now = Instant::now();
            // The clock is read when the first rounds were in vain.
            let until =
                *until.get_or_insert_with(|| limit.and_then(|limit| now.checked_add(limit)));
            if [until, deadline].into_iter().flatten().any(|at| at <= now) {
                return false;
            }
            // What only a look under the locks shows: room, and a peer that has gone without a word.
            if self.link.is_ready() || self.look() {
                return true;
            }
        }
    }

    /// Announces that this side is going to sleep on the pair's descriptor, alone or among others (`poll`,
    /// `epoll`). `false`: it must not, there is something to receive.
    ///
    /// Must be followed by [`Pair::finish_sleep`].
    #[must_use]
    pub fn prepare_to_sleep(&self) -> bool {
        let settled = self.link.settle();
        self.ring_if(settled);
        self.link.prepare_to_sleep(How::Socket)
    }

    /// This side does not sleep any more.
    pub fn finish_sleep(&self) {
        self.link.withdraw();
    }

    /// Takes the bytes that made the descriptor readable, and notes if the peer has gone. To be called when the
    /// descriptor was readable.
    pub fn handle_signal(&self) {
        if socket::drain(self.socket.as_fd()) || socket::has_hung_up(self.socket.as_fd()) {
            self.link.hang_up();
        }
    }

    /// Looks whether the peer has gone.
    fn look(&self) -> bool {
        let gone = socket::has_hung_up(self.socket.as_fd());
        if gone {
            self.link.hang_up();
        }
        gone
    }

    /// What is known of a message that was accepted: `false` if the peer has not got it, for certain. Once
    /// the pair has ended, such a request was never executed, and never will be.
    ///
    /// For a pair that was closed here, or whose peer broke the protocol, ask when the peer has ended too.
    #[must_use]
    pub fn may_have_arrived(&self, ticket: SendTicket) -> bool {
        self.link.may_have_arrived(ticket)
    }

    /// Whether the peer has read all that was sent. `true` also after the end.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.link.is_drained()
    }

    /// Why the pair has ended, if it has.
    #[must_use]
    pub fn disconnected(&self) -> Option<Disconnected> {
        self.link.gone()
    }

    /// Ends the pair. The peer receives what lies in the rings, and is told then. Does nothing if it has
    /// ended already.
    pub fn close(&self) {
        self.link.end(Disconnected::Closed);
        self.part();
    }

    /// Lets the peer know that this side has ended.
    fn part(&self) {
        socket::shut_down(self.socket.as_fd());
        self.link.wake_peer();
    }

    /// Whether that the pair has ended must still be told: once.
    pub(crate) fn tell_gone(&self) -> bool {
        !self.told.swap(true, Ordering::Relaxed)
    }

    fn ring_if(&self, ring: bool) {
        if ring {
            socket::ring(self.socket.as_fd());
        }
    }
}

impl AsFd for Pair {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair")
            .field("number", &self.number)
            .field("role", &self.role())
            .field("peer", &self.peer)
            .field("gone", &self.disconnected())
            .finish_non_exhaustive()
    }
}

/// Messages that leave together; see [`Pair::batch`].
#[must_use = "the peer is told when it is finished"]
pub struct SendBatch<'a> {
    pair: &'a Pair,
    inner: link::Batch<'a>,
}

impl SendBatch<'_> {
    /// As [`Pair::send`].
    ///
    /// # Errors
    ///
    /// As for [`Pair::send`].
    pub fn send(&mut self, id: u64, pieces: &[Bytes]) -> Result<SendTicket, SendError> {
        self.inner.send(id, pieces)
    }

    /// As [`Pair::cancel`].
    pub fn cancel(&mut self, id: u64) {
        self.inner.withdraw(id);
    }

    /// As [`Pair::refuse`].
    ///
    /// # Panics
    ///
    /// If this is the client's side.
    pub fn refuse(&mut self, id: u64, why: Refusal) {
        assert_eq!(self.pair.role(), Role::Server, "clients cancel");
        self.inner.refuse(id, why);
    }

    /// Lets the messages go.
    ///
    /// # Errors
    ///
    /// [`Disconnected`]: the peer turned out to break the protocol.
    pub fn finish(self) -> Result<(), Disconnected> {
        let Self { pair, inner } = self;
        match inner.finish() {
            Ok(ring) => {
                pair.ring_if(ring);
                Ok(())
            }
            Err(gone) => {
                pair.part();
                Err(gone)
            }
        }
    }
}
