//! What do all threads of an endpoint share?

use super::backlog::Backlog;
use super::clock::Clock;
use super::core::Core;
use super::cpu::Cpu;
use super::local::{Path, Receiver};
use super::poll_mode::PollMode;
use super::signal::Signal;
use super::tracer::Tracer;
use crate::overload::{Quotas, Work};
use crate::trace::FreezeTriggers;
use apus_driver::Driver;
use apus_proto::{Config, Instant, Transport};
use apus_trace::keep::Keeping;
use apus_trace::recorder;
use std::io;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// A driver, and what goes with it.
pub(crate) struct Opened {
    pub(crate) driver: Box<dyn Driver>,
    /// Parameters of the protocol, in the profile that the driver wants.
    pub(crate) config: Config,
    /// Where the ids of calls begin, if the driver has a range for them.
    pub(crate) first_id: Option<u64>,
    /// Settings of the way through memory, if there shall be one.
    pub(crate) near: Option<apus_local::LocalConfig>,
}

/// One socket, one instance of the protocol, and those who turn its loop.
pub(crate) struct Shard {
    core: Mutex<Core>,
    /// Where messages come from. Locked by the thread that has the turn, and by nobody else, so
    /// that nobody ever waits for it.
    pub(super) receive: Mutex<Receiver>,
    /// The way through memory to peers of this host.
    path: Option<Path>,
    pub(super) signal: Signal,
    /// When the protocol wants to be called, in its own nanoseconds: what the thread with the turn
    /// looks at while nothing arrives. 0 lets it look under the lock at once.
    due: AtomicU64,
    /// Until when nothing is received, in the same nanoseconds; 0 if it is.
    stopped_until: AtomicU64,
    pub(super) clock: Clock,
    pub(crate) poll: PollMode,
    /// Packets after which a pass of the loop takes no further datagrams from the driver.
    pub(super) receive_quota: usize,
    pub(crate) local_addr: SocketAddr,
    /// Where processor time goes.
    pub(super) cpu: Arc<Cpu>,
    /// What the driver counts.
    pub(crate) counters: Option<Arc<dyn apus_driver::DriverCounters>>,
    /// As long as the endpoint lives, the trace leaves files behind.
    _keeping: Option<Keeping>,
}

/// What a shard does, and what it records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) quotas: Quotas,
    pub(crate) serving: bool,
    pub(crate) max_queueing: Duration,
    pub(crate) triggers: FreezeTriggers,
}

impl Shard {
    /// An instance of the protocol on top of `driver`.
    ///
    /// # Errors
    ///
    /// The system gives no random seed, or no descriptor for the signal.
    pub(crate) fn new(
        opened: Opened,
        poll: PollMode,
        settings: Settings,
        keeping: Option<Keeping>,
    ) -> io::Result<Self> {
        let Settings { quotas, serving, max_queueing, triggers } = settings;
        let Opened { driver, config, first_id, near } = opened;
        let local_addr = driver.local_addr();
        let link_mbps = driver.capabilities().link_mbps;
        let counters = driver.counters();
        let (transmit, receive) = driver.split();
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        let seed = u64::from_ne_bytes(seed);
        let mut transport = Transport::new(config, local_addr.port(), seed);
        if let Some(first_id) = first_id {
            transport.set_first_id(first_id);
        }
        transport.set_serving(serving);
        transport.set_link_rate(link_mbps.unwrap_or(0));
        let clock = Clock::start();
        // Without it the endpoint works all the same, over the network.
        let path = near
            .and_then(|near| Path::open(local_addr, serving, transport.config(), near, seed).ok());
        let backlog = Backlog::new(max_queueing);
        let tracer = Tracer::new(local_addr, triggers);
        let core = Core::new(transport, transmit, clock, quotas, backlog, path.clone(), tracer);
        let cpu = core.cpu.clone();
        Ok(Self {
            core: Mutex::new(core),
            receive: Mutex::new(Receiver::new(receive, path.as_ref())),
            path,
            signal: Signal::new()?,
            due: AtomicU64::new(0),
            stopped_until: AtomicU64::new(0),
            clock,
            poll,
            receive_quota: quotas.of(Work::Receive),
            local_addr,
            cpu,
            counters,
            _keeping: keeping,
        })
    }

    /// Takes the core lock for a call; says since when that took a wait, in ticks of the trace: 0 if it took none.
    pub(crate) fn lock_for_call(&self) -> (Locked<'_>, u64) {
        match self.core.try_lock() {
            Ok(guard) => (Locked { shard: self, guard: Some(guard) }, 0),
            Err(_) => {
                let since = recorder::stamp();
                (self.lock(), since)
            }
        }
    }

    /// Takes the core lock.
    pub(crate) fn lock(&self) -> Locked<'_> {
        // A thread that panicked under the lock has broken an invariant of ours; what it left behind
        // is still memory-safe, and the other threads must be able to end.
        let guard = match self.core.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => self.wait_for_lock(),
        };
        Locked { shard: self, guard: Some(guard) }
    }

    /// Waits for the core lock, and counts that: whoever waits can spare the time for the clock.
    #[cold]
    fn wait_for_lock(&self) -> MutexGuard<'_, Core> {
        let since = std::time::Instant::now();
        let mut guard = self.core.lock().unwrap_or_else(PoisonError::into_inner);
        guard.metrics.lock_misses += 1;
        guard.metrics.lock_miss_nanos += since.elapsed().as_nanos() as u64;
        guard
    }

    /// Greets peers that may be on this host. Makes system calls: no lock is held.
    fn connect(&self, peers: Vec<SocketAddr>) {
        let Some(path) = &self.path else { return };
        for peer in peers {
            let name = path.connect(peer);
            let now = self.clock.now();
            if let Some(local) = &mut self.lock().local {
                local.routes.connecting(peer, name, now);
            }
        }
    }

    /// Whether the way through memory is open.
    pub(crate) const fn has_local_path(&self) -> bool {
        self.path.is_some()
    }

    /// Whether the protocol, or another thread, wants the loop to come under the lock.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due.load(Ordering::Relaxed) <= now.as_nanos()
    }

    /// Whether receiving has stopped because too many requests wait for the application.
    pub(super) fn is_stopped(&self) -> bool {
        let until = self.stopped_until.load(Ordering::Relaxed);
        until > 0 && self.clock.now().as_nanos() < until
    }
}

/// The core, locked. When it is unlocked, what has changed is published: the time of the next timer,
/// and the wake-ups that were decided on, which are carried out after the lock is free.
pub(crate) struct Locked<'a> {
    shard: &'a Shard,
    /// `None` only while it is dropped.
    guard: Option<MutexGuard<'a, Core>>,
}

impl Deref for Locked<'_> {
    type Target = Core;

    fn deref(&self) -> &Core {
        match &self.guard {
            Some(guard) => guard,
            None => unreachable!("the guard goes with its owner"),
        }
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Core {
        match &mut self.guard {
            Some(guard) => guard,
            None => unreachable!("the guard goes with its owner"),
        }
    }
}

impl Locked<'_> {
    /// Tells whoever has the turn when the next timer is due; whether it sleeps for too long and must
    /// be kicked. While the turn is free nobody looks, and whoever takes it publishes anew.
    fn publish_due(&mut self) -> bool {
        if self.role.is_free() {
            return false;
        }
        let due = self.next_due();
        self.shard.due.store(due.as_nanos(), Ordering::Relaxed);
        let stopped = self.backlog.stopped_until().map_or(0, Instant::as_nanos);
        self.shard.stopped_until.store(stopped, Ordering::Relaxed);
        let kick = self.sleeping_until.is_some_and(|until| due < until);
        if kick {
            self.sleeping_until = None;
            self.metrics.kicks += 1;
        }
        kick
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let shard = self.shard;
        let kick = self.publish_due();
        let wakes = self.wakes.take();
        let connects = self.local.as_mut().and_then(|local| local.routes.take_connects());
        self.metrics.wakeups += wakes.as_ref().map_or(0, |wakes| wakes.len() as u64);
        self.guard = None;
        if let Some(wakes) = wakes {
            wakes.wake();
        }
        if kick {
            shard.signal.raise();
        }
        if let Some(peers) = connects {
            shard.connect(peers);
        }
    }
}
