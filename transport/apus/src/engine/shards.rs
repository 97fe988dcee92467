//! The shards of an endpoint: which one a thread uses, and how it receives messages of all.
//!
//! Each thread has a *home*: the shard that it calls through and waits at. A message is received at
//! home first, and stolen from another shard if that has a surplus
//! ([`Siblings`](crate::engine::handoff::Siblings)).
//!
//! A serving endpoint has one socket per shard at one port, and the system assigns each client to
//! one of them. Calls need separate ports: otherwise the system would give the response to any of
//! the shards. So a serving endpoint with several shards opens the same number of additional ones,
//! its *callers*, when it makes its first call.

use crate::engine::poll::{Served, WaitTarget};
use crate::engine::shard::{Locked, Shard};
use crate::engine::waiting::PollMode;
use crate::error::{BindError, Closed};
use apus_process::{ForeignProcess, Owned};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// A shard with the runner of its loop.
pub(crate) type Running = (Arc<Shard>, Runner);

/// Runner of a shard's loop while no waiting thread runs it.
pub(crate) enum Runner {
    /// A dedicated thread.
    Thread(JoinHandle<()>),
    /// The background poller of the process.
    Background(Served),
    /// A task of a runtime.
    #[cfg_attr(not(feature = "tokio"), expect(dead_code, reason = "tasks need tokio"))]
    Task,
}

impl Runner {
    /// Returns when the loop of the shard, which is closed, is not running any more.
    pub(crate) fn end(self) {
        match self {
            // If the engine panicked, the panic has been printed already; other threads must still
            // be able to end.
            Self::Thread(thread) => drop(thread.join()),
            Self::Background(served) => drop(served),
            Self::Task => {}
        }
    }
}

/// Opens the callers of an endpoint that serves.
pub(crate) type OpenCallers = Box<dyn Fn() -> Result<Vec<Running>, BindError> + Send + Sync>;

/// All shards of an endpoint.
pub(crate) struct Shards {
    /// Distinguishes this endpoint from others of the process.
    id: u64,
    /// Shards that receive requests; they also make calls, unless there are callers.
    first: Box<[Arc<Shard>]>,
    callers: Option<Callers>,
    /// The home of the next thread.
    next_home: AtomicUsize,
    runners: Owned<Mutex<Vec<Runner>>>,
}

struct Callers {
    opened: OnceLock<Box<[Arc<Shard>]>>,
    /// Held while they are opened.
    open: Mutex<OpenCallers>,
}

/// A home that a thread has got.
#[derive(Clone, Copy, Debug)]
struct Home {
    endpoint: u64,
    index: usize,
    /// Whether messages of other shards have precedence the next time.
    others_first: bool,
}

/// Number of homes that a thread remembers. Chosen by us: threads use few endpoints with several
/// shards. A home that is forgotten is drawn again.
const MAX_HOMES: usize = 8;

thread_local! {
    static HOMES: RefCell<SmallVec<[Home; 2]>> = RefCell::default();
}

/// A message with its shard.
pub(crate) type AtShard<'a, T> = (&'a Arc<Shard>, T);

/// Result of a receive: the locked shard of the message, and the message. `None` if the time is up
/// or the endpoint is closed.
pub(crate) type Received<'a, T> = (&'a Arc<Shard>, Locked<'a>, Option<T>);

impl Shards {
    /// Returns the shards `first`, and callers that are opened by `callers` when they are needed.
    pub(crate) fn new(first: Vec<Running>, callers: Option<OpenCallers>) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let (first, runners): (Vec<_>, Vec<_>) = first.into_iter().unzip();
        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            first: first.into(),
            callers: callers
                .map(|open| Callers { opened: OnceLock::new(), open: Mutex::new(open) }),
            next_home: AtomicUsize::new(0),
            runners: Owned::new(Mutex::new(runners)),
        }
    }

    /// Checks that the caller is in the process that opened the endpoint: a child of a fork uses no
    /// shard.
    ///
    /// # Errors
    ///
    /// The caller is in a child of that process.
    #[inline]
    pub(crate) fn check_process(&self) -> Result<(), ForeignProcess> {
        self.runners.owner().check()
    }

    /// Returns the first shard, which has the endpoint's address. Its locks are only for the
    /// process that opened it.
    pub(crate) fn main(&self) -> &Arc<Shard> {
        &self.first[0]
    }

    /// Returns all shards that have been opened; none in a child of the process that opened them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Shard>> {
        let is_current = self.runners.owner().is_current();
        let first = if is_current { &self.first[..] } else { &[] };
        let callers = self.callers.as_ref().filter(|_| is_current);
        let callers = callers.and_then(|callers| callers.opened.get());
        first.iter().chain(callers.into_iter().flatten())
    }

    /// Returns the shard with this index.
    pub(crate) fn get(&self, index: u16) -> Option<&Arc<Shard>> {
        self.all().nth(usize::from(index))
    }

    /// Returns the shard whose requests the calling thread receives.
    ///
    /// # Errors
    ///
    /// The caller is in a child of the process that opened the endpoint.
    #[inline]
    pub(crate) fn home(&self) -> Result<&Arc<Shard>, Closed> {
        self.check_process()?;
        Ok(self.own_home())
    }

    /// As [`Shards::home`], for a caller that has checked the process.
    #[inline]
    fn own_home(&self) -> &Arc<Shard> {
        match &*self.first {
            [only] => only,
            first => &first[self.remembered(|home| home.index)],
        }
    }

    /// Returns the shard for the calling thread's calls and their completions.
    ///
    /// # Errors
    ///
    /// The caller is in a child of the process that opened the endpoint, or the endpoint serves
    /// with several shards, and the system refuses the sockets for its calls.
    #[inline]
    pub(crate) fn caller(&self) -> Result<&Arc<Shard>, Closed> {
        self.check_process()?;
        let Some(callers) = &self.callers else { return Ok(self.own_home()) };
        let opened = match callers.opened.get() {
            Some(opened) => opened,
            None => self.open_callers(callers)?,
        };
        Ok(&opened[self.remembered(|home| home.index)])
    }

    /// Returns the shards that the calling thread uses, as far as they have been opened; none in a
    /// child of the process that opened them.
    pub(crate) fn opened_homes(&self) -> SmallVec<[&Shard; 2]> {
        if self.check_process().is_err() {
            return SmallVec::new();
        }
        let callers = self.callers.as_ref().and_then(|callers| callers.opened.get());
        let caller = callers.map(|opened| &*opened[self.remembered(|home| home.index)]);
        std::iter::once(&**self.own_home()).chain(caller).collect()
    }

    #[cold]
    fn open_callers<'a>(&self, callers: &'a Callers) -> Result<&'a [Arc<Shard>], Closed> {
        let open = callers.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = callers.opened.get() {
            return Ok(opened);
        }
        {
            let core = self.main().lock();
            if core.is_closed() {
                return Err(core.closed_error());
            }
        }
        let failed = |error| Closed::Driver(Arc::new(io::Error::other(error)));
        let (shards, runners): (Vec<_>, Vec<_>) = (*open)().map_err(failed)?.into_iter().unzip();
        self.runners.lock().unwrap_or_else(PoisonError::into_inner).extend(runners);
        let opened = callers.opened.get_or_init(|| shards.into());
        // The endpoint may have been closed before these existed.
        let core = self.main().lock();
        let closed = core.is_closed().then(|| core.closed_error());
        drop(core);
        if let Some(why) = closed {
            opened.iter().for_each(|shard| shard.lock().close(why.clone()));
        }
        Ok(opened)
    }

    /// Passes the home of the calling thread to `use_it`.
    fn remembered<T>(&self, use_it: impl FnOnce(&mut Home) -> T) -> T {
        HOMES.with_borrow_mut(|homes| {
            let known = homes.iter().position(|home| home.endpoint == self.id);
            let at = known.unwrap_or_else(|| {
                if homes.len() >= MAX_HOMES {
                    homes.remove(0);
                }
                let index = self.next_home.fetch_add(1, Ordering::Relaxed) % self.first.len();
                homes.push(Home { endpoint: self.id, index, others_first: false });
                homes.len() - 1
            });
            use_it(&mut homes[at])
        })
    }

    /// Waits for a message at `home`, or steals one from another shard.
    pub(crate) fn receive<'a, W: WaitTarget>(
        &'a self,
        home: &'a Arc<Shard>,
        target: &W,
        poll: Option<PollMode>,
        deadline: Option<Instant>,
    ) -> Received<'a, W::Output> {
        let poll = poll.unwrap_or(home.poll_mode());
        if home.sibling().is_none() {
            let (core, output) = home.wait_in_mode(home.lock(), target, poll, deadline);
            return (home, core, output);
        }
        if self.is_turn_of_others(home, target)
            && let Some(stolen) = self.steal(home, target)
        {
            return stolen;
        }
        loop {
            let (mut core, output) = home.wait_in_mode(home.lock(), target, poll, deadline);
            if output.is_some() {
                core.note_own_take();
                core.pass_steal_request_on(target.kinds());
            }
            if output.is_some() {
                return (home, core, output);
            }
            let closed = core.is_closed();
            core.take_steal_request(target.kinds());
            drop(core);
            if closed {
                self.close_like(home);
            }
            if let Some(stolen) = self.steal(home, target) {
                return stolen;
            }
            if closed {
                return (home, home.lock(), None);
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return (home, home.lock(), None);
            }
        }
    }

    /// Closes all shards because `home` is closed, so that the completions of all calls can be
    /// received.
    fn close_like(&self, home: &Shard) {
        let why = home.lock().closed_error();
        self.all().for_each(|shard| shard.lock().close(why.clone()));
    }

    /// Steals a message from another shard than `home`.
    pub(crate) fn steal<'a, W: WaitTarget>(
        &'a self,
        home: &Shard,
        target: &W,
    ) -> Option<Received<'a, W::Output>> {
        for index in home.sibling()?.surpluses(target.kinds()) {
            let Some(other) = self.all().nth(index) else { continue };
            let mut core = other.lock();
            if let Some(stolen) = core.steal(target) {
                return Some((other, core, Some(stolen)));
            }
        }
        None
    }

    /// Returns whether to steal before a receive at `home`. If other shards have a surplus for
    /// long, every second message is taken from them: no shard waits forever.
    pub(crate) fn is_turn_of_others<W: WaitTarget>(&self, home: &Shard, target: &W) -> bool {
        home.has_to_steal(target)
            && self.remembered(|home| {
                home.others_first = !home.others_first;
                !home.others_first
            })
    }

    /// Steals a message for a task if other shards have precedence, even if messages wait at
    /// `home`.
    #[cfg(feature = "tokio")]
    pub(crate) fn steal_in_turn<'a, W: WaitTarget>(
        &'a self,
        home: &Shard,
        target: &W,
    ) -> Option<AtShard<'a, W::Output>> {
        if !self.is_turn_of_others(home, target) {
            return None;
        }
        let (shard, _, output) = self.steal(home, target)?;
        output.map(|output| (shard, output))
    }

    /// Steals a message for a task whose wait at `home` has ended without one.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed.
    #[cfg(feature = "tokio")]
    pub(crate) fn comply<'a, W: WaitTarget>(
        &'a self,
        home: &Shard,
        target: &W,
    ) -> Result<Option<AtShard<'a, W::Output>>, Closed> {
        let mut core = home.lock();
        let closed = core.is_closed().then(|| core.closed_error());
        core.take_steal_request(target.kinds());
        drop(core);
        if closed.is_some() {
            self.close_like(home);
        }
        let stolen = self.steal(home, target);
        match (stolen.and_then(|(shard, _, output)| Some((shard, output?))), closed) {
            (None, Some(why)) => Err(why),
            (stolen, _) => Ok(stolen),
        }
    }

    /// Takes a message for a task that does not wait, at `home` or from another shard.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed, and no message is left.
    #[cfg(feature = "tokio")]
    pub(crate) fn try_receive<'a, W: WaitTarget>(
        &'a self,
        home: &'a Arc<Shard>,
        target: &W,
    ) -> Result<Option<AtShard<'a, W::Output>>, Closed> {
        if let Some(stolen) = self.steal_in_turn(home, target) {
            return Ok(Some(stolen));
        }
        match home.try_take(target) {
            Ok(Some(output)) => Ok(Some((home, output))),
            Ok(None) | Err(_) => self.comply(home, target),
        }
    }

    /// Returns the number of shards whose sockets have this endpoint's address.
    pub(crate) fn count(&self) -> usize {
        self.first.len()
    }

    /// Closes all shards, and waits until none of their loops is running. Does nothing in a child
    /// of the process that opened them.
    pub(crate) fn end(&self) {
        if self.check_process().is_err() {
            return;
        }
        self.main().lock().close(Closed::ShutDown);
        let runners =
            std::mem::take(&mut *self.runners.lock().unwrap_or_else(PoisonError::into_inner));
        runners.into_iter().for_each(Runner::end);
    }
}
