//! State shared by the shards of an endpoint.
//!
//! A message is received by a thread of its home shard, without a write to this state. Threads of
//! other shards *steal* a message if the home shard's threads are not about to receive it; these
//! messages are its *surplus*. Each shard publishes the length of its surplus and the number of its
//! waiting threads, in a separate cache line, and reads the lines of the others.
//!
//! A thread that is about to wait announces that it is idle and then reads the surpluses of other
//! shards; a shard publishes its surplus and then reads which shards have idle threads. Both sides
//! have a fence between the two steps.
//!
//! # Invariants
//!
//! - **STEAL-1** If a shard has a surplus and a thread of another shard waits, the thread sees the
//!   surplus before it sleeps, or the shard sees the thread and asks it to steal
//!   (`Core::request_steal`).
//! - **STEAL-2** A thread never holds the core locks of two shards.

use super::sync::{AtomicU32, Ordering, fence};
use apus_hostgroup::Board;
use apus_proto::{Instant, Neighbours, Published, Transport};
use std::ops::{Index, IndexMut};
use std::sync::{Arc, OnceLock, Weak};

/// The kinds of messages that any thread may receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Request,
    Completion,
}

impl MessageKind {
    /// All kinds, by index.
    pub(crate) const ALL: [Self; 2] = [Self::Request, Self::Completion];
}

/// One value for each kind of message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByKind<T>([T; 2]);

impl<T> ByKind<T> {
    /// Returns the values that `value` has for the kinds.
    pub(crate) fn new(value: impl FnMut(MessageKind) -> T) -> Self {
        Self(MessageKind::ALL.map(value))
    }
}

impl<T> Index<MessageKind> for ByKind<T> {
    type Output = T;

    #[inline]
    fn index(&self, kind: MessageKind) -> &T {
        &self.0[kind as usize]
    }
}

impl<T> IndexMut<MessageKind> for ByKind<T> {
    #[inline]
    fn index_mut(&mut self, kind: MessageKind) -> &mut T {
        &mut self.0[kind as usize]
    }
}

/// Values that one shard publishes. Aligned to two cache lines, which processors fetch together.
#[derive(Debug)]
#[repr(align(128))]
struct Line {
    /// Messages that other shards may steal.
    surplus: ByKind<AtomicU32>,
    /// Threads and tasks that wait for a message.
    idle: ByKind<AtomicU32>,
}

impl Default for Line {
    fn default() -> Self {
        let zeros = || ByKind::new(|_| AtomicU32::new(0));
        Self { surplus: zeros(), idle: zeros() }
    }
}

/// The lines of all shards of an endpoint.
#[derive(Debug)]
pub(crate) struct Siblings<S> {
    lines: Box<[Line]>,
    /// Link use of the shards.
    board: Board,
    /// Shards that have been opened, by index.
    shards: Box<[OnceLock<Weak<S>>]>,
}

/// A shard's place among its siblings.
#[derive(Debug)]
pub(crate) struct Sibling<S> {
    all: Arc<Siblings<S>>,
    index: usize,
}

impl<S> Siblings<S> {
    /// Returns the lines of `count` shards.
    pub(crate) fn new(count: usize) -> Arc<Self> {
        Arc::new(Self {
            lines: std::iter::repeat_with(Line::default).take(count).collect(),
            board: Board::new(count),
            shards: std::iter::repeat_with(OnceLock::new).take(count).collect(),
        })
    }

    /// Returns the place of the shard with this index.
    pub(crate) fn place(self: &Arc<Self>, index: usize) -> Sibling<S> {
        Sibling { all: self.clone(), index }
    }
}

impl<S> Sibling<S> {
    /// Returns the index of the shard.
    pub(crate) const fn index(&self) -> usize {
        self.index
    }

    /// Notes that the shard is open.
    pub(crate) fn open(&self, shard: &Arc<S>) {
        // A place is taken once.
        let _ = self.all.shards[self.index].set(Arc::downgrade(shard));
    }

    fn line(&self) -> &Line {
        &self.all.lines[self.index]
    }

    /// Returns the indices of the other shards, starting with the next one.
    fn others(&self) -> impl Iterator<Item = usize> + use<S> {
        (self.index + 1..self.all.lines.len()).chain(0..self.index)
    }

    /// Returns the shard with this index, if it is open.
    pub(crate) fn shard(&self, index: usize) -> Option<Arc<S>> {
        self.all.shards[index].get()?.upgrade()
    }

    /// Returns all other open shards.
    pub(crate) fn other_shards(&self) -> impl Iterator<Item = Arc<S>> {
        self.others().filter_map(|index| self.shard(index))
    }

    /// Announces that a thread or task of this shard waits for messages of these kinds, until the
    /// result is dropped.
    pub(crate) fn idle(&self, kinds: &'static [MessageKind]) -> Idle<'_> {
        for kind in kinds {
            self.line().idle[*kind].fetch_add(1, Ordering::Relaxed);
        }
        // STEAL-1: before the surpluses of others are read.
        fence(Ordering::SeqCst);
        Idle { line: self.line(), kinds }
    }

    /// Publishes the length of this shard's surplus. Returns by how much it has grown.
    pub(crate) fn publish_surplus(&self, kind: MessageKind, surplus: usize) -> u32 {
        let published = &self.line().surplus[kind];
        let surplus = u32::try_from(surplus).unwrap_or(u32::MAX);
        // Written under the core lock of this shard only.
        let before = published.load(Ordering::Relaxed);
        if surplus != before {
            published.store(surplus, Ordering::Relaxed);
        }
        let more = surplus.saturating_sub(before);
        if more > 0 {
            // STEAL-1: before the idle threads of others are read.
            fence(Ordering::SeqCst);
        }
        more
    }

    /// Returns the indices of other shards with a surplus of one of these kinds.
    pub(crate) fn surpluses(&self, kinds: &'static [MessageKind]) -> impl Iterator<Item = usize> {
        let has = |line: &Line, kind: MessageKind| line.surplus[kind].load(Ordering::Relaxed) > 0;
        self.others()
            .filter(move |index| kinds.iter().any(|kind| has(&self.all.lines[*index], *kind)))
    }

    /// Returns the indices of other shards with idle threads or tasks.
    pub(crate) fn idle_others(&self, kind: MessageKind) -> impl Iterator<Item = usize> {
        self.others()
            .filter(move |index| self.all.lines[*index].idle[kind].load(Ordering::Relaxed) > 0)
    }

    /// Publishes this shard's link use.
    pub(crate) fn publish_link_use(&self, now: Instant, published: &Published<'_>) {
        self.all.board.publish(self.index, now, published);
    }

    /// Exchanges the lengths arriving at this shard and at the others, if it is time.
    pub(crate) fn exchange_lengths(&self, now: Instant, transport: &mut Transport) {
        self.all.board.exchange_lengths(self.index, now, transport);
    }

    /// Calls `use_neighbours` with the link use of the other shards.
    pub(crate) fn neighbours(&self, use_neighbours: impl FnOnce(&Neighbours<'_>)) {
        self.all.board.read(self.index, use_neighbours);
    }
}

/// A thread or task that waits for a message.
#[derive(Debug)]
pub(crate) struct Idle<'a> {
    line: &'a Line,
    kinds: &'static [MessageKind],
}

impl Drop for Idle<'_> {
    fn drop(&mut self) {
        for kind in self.kinds {
            self.line.idle[*kind].fetch_sub(1, Ordering::Relaxed);
        }
        // Before the surpluses are read for the last time.
        fence(Ordering::SeqCst);
    }
}
