//! One side of a pair: a [`Link`] with its socket.
//!
//! The socket wakes a side that sleeps on it, and reports the end of the peer: the kernel closes it
//! when the last thread of the peer has ended, however it ended. From then on the peer writes no
//! more, and all records that it had made visible can still be received.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use apus_process::{Descriptor, Owned};
use apus_wire::{Refusal, Role};
use bytes::Bytes;

use super::inbox::PairEvent;
use super::limits::LocalLimits;
use super::link::{self, Link};
use super::outbox::SendTicket;
use super::sleep::SleepMode;
use crate::error::{Disconnected, SendError};
use crate::memory::Memory;
use crate::memory::layout::RingSizes;
use crate::socket::credentials::Credentials;
use crate::socket::stream;

/// Longest sleep on a futex before the thread checks whether the peer still lives: the kernel wakes
/// no futex for a process that was killed. Chosen by us: a check costs a microsecond.
const HANG_UP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Polls of the rings between two readings of the clock.
const POLLS_PER_CLOCK_READING: u32 = 64;

/// Next number of a pair: its position in the lock order.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// One side of a connection between two processes of this host.
///
/// The client's side sends requests and receives responses, the server's side the other way round.
/// Any thread may make any call at any time, except that only one thread at a time may
/// [`wait`](Pair::wait). Two pairs share no state.
///
/// When the last reference is dropped, the memory is unmapped and the socket closed; the peer is
/// notified that the pair was closed.
///
/// A child of a fork has no part in the pair: its calls fail with [`Disconnected::Closed`] or do
/// nothing, and it writes neither to the memory nor to the socket.
// Two pairs of one process share no cache line either.
#[repr(align(128))]
pub struct Pair {
    number: u64,
    link: Owned<Link>,
    socket: Descriptor,
    peer: Peer,
    has_waiter: AtomicBool,
    /// Whether a reader of many pairs has received the end of this one.
    end_reported: AtomicBool,
}

/// The process at the other end of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// Identity according to the kernel.
    pub credentials: Credentials,
    /// Identity according to the peer: its [`LocalConfig::identity`](crate::LocalConfig::identity).
    pub identity: u64,
}

/// Limits of one call of [`Pair::receive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveQuota {
    /// Maximum number of short records, each a message or a control record.
    pub short: usize,
    /// Maximum number of chunks of long messages, of up to 32 KiB each.
    pub chunks: usize,
}

impl ReceiveQuota {
    /// No limit but the size of the rings.
    pub const ALL: Self = Self { short: 1 << 20, chunks: 1 << 20 };
}

impl Default for ReceiveQuota {
    /// 64 records and 8 chunks, which carry 256 KiB.
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
        socket: Descriptor,
        peer: Peer,
    ) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let link = Owned::new(Link::new(number, role, memory, sizes, limits));
        Self {
            number,
            link,
            socket,
            peer,
            has_waiter: AtomicBool::new(false),
            end_reported: AtomicBool::new(false),
        }
    }

    /// Returns the role of this side.
    #[must_use]
    pub fn role(&self) -> Role {
        self.link.role()
    }

    /// Returns the identity of the peer.
    #[must_use]
    pub const fn peer(&self) -> Peer {
        self.peer
    }

    /// Returns the number of the pair, which no other pair of this process ever has.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Sends a message, the concatenation of `pieces`: a request as a client, the response as a
    /// server. The client chooses the `id`; ids of outstanding calls must differ.
    ///
    /// A short message is in the ring when this returns. A longer one is retained by reference
    /// until it was sent.
    ///
    /// # Errors
    ///
    /// [`SendError`]: the message was not sent.
    pub fn send(&self, id: u64, pieces: &[Bytes]) -> Result<SendTicket, SendError> {
        let mut batch = self.batch()?;
        let sent = batch.send(id, pieces);
        batch.finish()?;
        sent
    }

    /// As a client, cancels a call: its request is not sent if it has not been yet, and the server
    /// is notified. A response may still arrive.
    ///
    /// As a server, cancels a response that was not sent in full.
    ///
    /// # Errors
    ///
    /// [`Disconnected`] if the pair has ended.
    pub fn cancel(&self, id: u64) -> Result<(), Disconnected> {
        let mut batch = self.batch()?;
        batch.cancel(id);
        batch.finish()
    }

    /// As a server, refuses a request and gives the client the reason. Never fails for lack of
    /// room.
    ///
    /// # Errors
    ///
    /// [`Disconnected`] if the pair has ended.
    ///
    /// # Panics
    ///
    /// If this is the client's side.
    pub fn refuse(&self, id: u64, why: Refusal) -> Result<(), Disconnected> {
        let mut batch = self.batch()?;
        batch.refuse(id, why);
        batch.finish()
    }

    /// Asks the peer to freeze its time trace, as FREEZE does over the network. Never fails for
    /// lack of room: without room the record waits, and repeated calls send it once.
    ///
    /// # Errors
    ///
    /// [`Disconnected`] if the pair has ended.
    pub fn freeze(&self) -> Result<(), Disconnected> {
        let mut batch = self.batch()?;
        batch.inner.freeze();
        batch.finish()
    }

    /// Starts a batch of messages that leave together: the peer is woken once, when the batch ends.
    /// Until then, other threads that send over this pair wait.
    ///
    /// # Errors
    ///
    /// [`Disconnected`] if the pair has ended.
    pub fn batch(&self) -> Result<SendBatch<'_>, Disconnected> {
        Ok(SendBatch { pair: self, inner: self.own()?.batch()? })
    }

    /// Receives up to `quota` records, appends their events to `events`, and writes records that
    /// had to wait for room. Returns the number of records received.
    ///
    /// # Errors
    ///
    /// [`Disconnected`] if the pair has ended. Everything that the peer had sent was received,
    /// unless this side closed the pair or the peer broke the protocol.
    pub fn receive(
        &self,
        quota: ReceiveQuota,
        events: &mut Vec<PairEvent>,
    ) -> Result<usize, Disconnected> {
        match self.own()?.receive(quota.short, quota.chunks, events) {
            Ok(received) => {
                self.signal_if(received.signal);
                Ok(received.records)
            }
            Err(why) => {
                // The peer is notified of the end, whatever the reason.
                self.notify_end();
                Err(why)
            }
        }
    }

    /// Returns the link, unless the caller is in a child of the pair's process.
    #[inline]
    fn own(&self) -> Result<&Link, Disconnected> {
        self.link.own().map_err(|_| Disconnected::Closed)
    }

    /// Returns whether [`Pair::receive`] would have no work.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.link.is_idle()
    }

    /// Returns the missing bytes of the long message whose chunk is next, if one has arrived. A
    /// receiver of many pairs uses it to read the shortest remaining message first.
    #[must_use]
    pub fn remaining(&self) -> Option<u32> {
        self.link.remaining()
    }

    /// Returns whether a message has arrived in part or was sent in part. The rest, or room for it,
    /// follows soon, as the peer is copying. Helps to decide whether to sleep.
    #[must_use]
    pub fn has_partial_message(&self) -> bool {
        self.link.has_partial_message()
    }

    /// Waits until there is something to receive: polls for `spin` (`None`: forever) and then
    /// sleeps. Returns `false` if the deadline has passed. May return `true` spuriously.
    ///
    /// # Panics
    ///
    /// If another thread waits for the same pair.
    pub fn wait(&self, spin: Option<Duration>, deadline: Option<Instant>) -> bool {
        if self.own().is_err() {
            // `receive` reports the end.
            return true;
        }
        let first = !self.has_waiter.swap(true, Ordering::Acquire);
        assert!(first, "one thread at a time may wait for a pair");
        let ready = self.wait_alone(spin, deadline);
        self.has_waiter.store(false, Ordering::Release);
        ready
    }

    fn wait_alone(&self, spin: Option<Duration>, deadline: Option<Instant>) -> bool {
        let signal = self.link.report_room();
        self.signal_if(signal);
        if self.spin(spin, deadline) {
            return true;
        }
        loop {
            let now = Instant::now();
            let left =
                deadline.map_or(HANG_UP_CHECK_INTERVAL, |at| at.saturating_duration_since(now));
            if left.is_zero() {
                return false;
            }
            if !self.link.prepare_to_sleep(SleepMode::Futex) {
                return true;
            }
            self.link.sleep(left.min(HANG_UP_CHECK_INTERVAL));
            self.link.finish_sleep();
            if self.link.is_ready() || self.check_hang_up() {
                return true;
            }
        }
    }

    /// Polls the rings; returns whether something arrived.
    fn spin(&self, limit: Option<Duration>, deadline: Option<Instant>) -> bool {
        if limit.is_some_and(|limit| limit.is_zero()) {
            return self.link.is_ready();
        }
        let mut until = None;
        loop {
            if self.link.spin(POLLS_PER_CLOCK_READING) {
                return true;
            }
            let now = Instant::now();
            // The limit starts when the first polls have found no record.
            let until =
                *until.get_or_insert_with(|| limit.and_then(|limit| now.checked_add(limit)));
            if [until, deadline].into_iter().flatten().any(|at| at <= now) {
                return false;
            }
            // Only a check under the locks shows room, and only the socket shows a peer that died.
            if self.link.is_ready() || self.check_hang_up() {
                return true;
            }
        }
    }

    /// Announces that this side is going to sleep on the pair's descriptor, alone or together with
    /// others (`poll`, `epoll`). Returns `false` if it must not sleep, because there is something
    /// to receive.
    ///
    /// Must be followed by [`Pair::finish_sleep`].
    #[must_use]
    pub fn prepare_to_sleep(&self) -> bool {
        let Ok(link) = self.own() else { return false };
        let signal = link.report_room();
        self.signal_if(signal);
        link.prepare_to_sleep(SleepMode::Socket)
    }

    /// Announces that this side does not sleep any more.
    pub fn finish_sleep(&self) {
        if let Ok(link) = self.own() {
            link.finish_sleep();
        }
    }

    /// Reads the bytes that made the descriptor readable, and records whether the peer has gone.
    /// Call it when the descriptor is readable.
    pub fn handle_signal(&self) {
        self.handle_event(true);
    }

    /// Does the work of [`Pair::handle_signal`]. `may_have_gone`: the event that reported the
    /// descriptor does not exclude the end of the peer. A signal alone excludes it, which saves a
    /// system call at each wake-up: the end is a separate event.
    pub(crate) fn handle_event(&self, may_have_gone: bool) {
        if self.own().is_err() {
            return;
        }
        let socket = self.socket.as_fd();
        if stream::drain(socket) || (may_have_gone && stream::has_hung_up(socket)) {
            self.link.hang_up();
        }
    }

    /// Checks whether the peer has gone.
    fn check_hang_up(&self) -> bool {
        let gone = stream::has_hung_up(self.socket.as_fd());
        if gone {
            self.link.hang_up();
        }
        gone
    }

    /// Returns whether the peer may have received an accepted message; `false` is certain. Once the
    /// pair has ended, a request for which it returns `false` was never executed, and never will
    /// be.
    ///
    /// If this side closed the pair, or the peer broke the protocol, the answer is final only after
    /// the peer has ended, too.
    #[must_use]
    pub fn may_have_arrived(&self, ticket: SendTicket) -> bool {
        self.link.may_have_arrived(ticket)
    }

    /// Returns whether the peer has read all sent messages. `true` also after the end.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.link.is_drained()
    }

    /// Returns why the pair has ended, if it has.
    #[must_use]
    pub fn disconnected(&self) -> Option<Disconnected> {
        self.link.disconnected()
    }

    /// Ends the pair. The peer still receives the contents of the rings, and is then notified of
    /// the end. Has no effect if the pair has ended already.
    pub fn close(&self) {
        if let Ok(link) = self.own() {
            link.end(Disconnected::Closed);
            self.notify_end();
        }
    }

    /// Notifies the peer that this side has ended.
    fn notify_end(&self) {
        stream::shut_down(self.socket.as_fd());
        self.link.wake_peer();
    }

    /// Returns whether the end of the pair must still be reported; `true` once.
    pub(crate) fn take_end_report(&self) -> bool {
        !self.end_reported.swap(true, Ordering::Relaxed)
    }

    fn signal_if(&self, signal: bool) {
        if signal {
            stream::signal(self.socket.as_fd());
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
            .field("disconnected", &self.disconnected())
            .finish_non_exhaustive()
    }
}

/// Messages that leave together; see [`Pair::batch`].
#[must_use = "the peer is woken when the batch is finished"]
pub struct SendBatch<'a> {
    pair: &'a Pair,
    inner: link::Batch<'a>,
}

impl SendBatch<'_> {
    /// Returns the number of the pair.
    #[must_use]
    pub const fn pair_number(&self) -> u64 {
        self.pair.number
    }

    /// Sends a message, as [`Pair::send`] does.
    ///
    /// # Errors
    ///
    /// [`SendError`]: the message was not sent.
    pub fn send(&mut self, id: u64, pieces: &[Bytes]) -> Result<SendTicket, SendError> {
        self.inner.send(id, pieces)
    }

    /// Cancels a call or a response, as [`Pair::cancel`] does.
    pub fn cancel(&mut self, id: u64) {
        self.inner.withdraw(id);
    }

    /// Refuses a request, as [`Pair::refuse`] does.
    ///
    /// # Panics
    ///
    /// If this is the client's side.
    pub fn refuse(&mut self, id: u64, why: Refusal) {
        assert_eq!(self.pair.role(), Role::Server, "only a server refuses");
        self.inner.refuse(id, why);
    }

    /// Ends the batch and wakes the peer if it sleeps.
    ///
    /// # Errors
    ///
    /// [`Disconnected`] if the peer broke the protocol.
    pub fn finish(self) -> Result<(), Disconnected> {
        let Self { pair, inner } = self;
        match inner.finish() {
            Ok(signal) => {
                pair.signal_if(signal);
                Ok(())
            }
            Err(why) => {
                pair.notify_end();
                Err(why)
            }
        }
    }
}
