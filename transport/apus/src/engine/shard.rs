//! A shard: what all threads of an endpoint share.

use crate::engine::clock::Clock;
use crate::engine::core::{Core, CoreParts, StealAsks, UnlockActions};
use crate::engine::cpu::Cpu;
use crate::engine::handoff::{MessageKind, RoleState, Sibling};
use crate::engine::paths::local::Path;
use crate::engine::paths::receive::Receiver;
use crate::engine::state::{Backlog, CallTimeout, Response};
use crate::engine::tracer::Tracer;
use crate::engine::waiting::{PollMode, Signal};
use crate::error::{CallError, Closed};
use crate::overload::{Quotas, Work};
use crate::security::Sealing;
use crate::trace::FreezeTriggers;
use crate::warning;
use apus_driver::{Capabilities, Driver, DriverCounters};
use apus_hostgroup::{HostGroup, HostPlace};
use apus_process::{Owned, Owner};
use apus_proto::{Config, FailureKind, Instant, Transport};
use apus_socket::EndedNeighbours;
use apus_trace::auto_save::AutoSave;
use apus_trace::recorder;
use bytes::Bytes;
use std::io;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// A driver with its companions.
pub(crate) struct DriverSetup {
    pub(crate) driver: Box<dyn Driver>,
    /// Parameters of the protocol, in the profile that the driver needs.
    pub(crate) config: Config,
    /// The id of the first call, if the driver has a range for ids.
    pub(crate) first_id: Option<u64>,
    /// Settings of the shared-memory path; `None` if there is none.
    pub(crate) local: Option<apus_local::LocalConfig>,
    /// Answers for endpoints of this host that have ended, over raw IP.
    pub(crate) ended: Option<EndedNeighbours>,
    /// Seals the driver's packets.
    pub(crate) sealing: Sealing,
}

/// Settings of a shard and of its recording.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) quotas: Quotas,
    pub(crate) serving: bool,
    pub(crate) max_queueing: Duration,
    /// Timeout of calls without a deadline.
    pub(crate) call_timeout: Duration,
    pub(crate) triggers: FreezeTriggers,
    /// The group of transports that share the host's link.
    pub(crate) host_group: Option<Arc<HostGroup>>,
}

/// One socket, one instance of the protocol, and one loop.
///
/// It belongs to the process that opened it. A child of a fork must not take its locks, which
/// threads of the parent may hold: each entry checks [`Shard::owner`] first, and what has a lock or
/// a shared resource is [`Owned`].
pub(crate) struct Shard {
    core: Owned<Mutex<Core>>,
    /// Source of packets and messages. Locked by the leader alone, so that no thread waits for it.
    receiver: Owned<Mutex<Receiver>>,
    /// The shared-memory path to peers of this host.
    path: Owned<Option<Path>>,
    signal: Signal,
    published: Published,
    clock: Clock,
    poll: PollMode,
    /// Timeout of calls without a deadline.
    call_timeout: Duration,
    /// Number of packets after which a pass of the loop takes no further datagrams from the driver.
    receive_quota: usize,
    local_addr: SocketAddr,
    /// Sampled processor time.
    cpu: Arc<Cpu>,
    driver_counters: Owned<Option<Arc<dyn DriverCounters>>>,
    /// Seals the driver's packets.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "nothing is sealed without it"))]
    sealing: Owned<Sealing>,
    /// Has traces written to files for as long as the endpoint lives.
    _auto_save: Owned<Option<AutoSave>>,
    /// Answers for endpoints of this host that have ended, for as long as this one lives.
    _ended: Option<EndedNeighbours>,
    /// `None` if it is the only shard of its endpoint.
    sibling: Option<Sibling<Self>>,
}

/// Values that threads read without the core lock: the leader while no packet arrives, and the
/// background poller. Times are in nanoseconds of the engine's clock.
#[derive(Debug, Default)]
struct Published {
    /// When the loop must take the core lock; 0: at once.
    due: AtomicU64,
    /// End of the current stop of receiving; 0 if receiving is not stopped.
    stopped_until: AtomicU64,
    /// The [`RoleState`], as a word.
    role: AtomicU64,
}

impl Shard {
    /// Default timeout of calls without a deadline.
    pub(crate) const CALL_TIMEOUT: Duration = CallTimeout::DEFAULT;

    /// Starts an instance of the protocol over the driver of `opened`.
    ///
    /// # Errors
    ///
    /// The system grants no random seed, or no descriptor for the signal.
    pub(crate) fn new(
        opened: DriverSetup,
        poll: PollMode,
        settings: Settings,
        auto_save: Option<AutoSave>,
        sibling: Option<Sibling<Self>>,
    ) -> io::Result<Self> {
        let Settings { quotas, serving, max_queueing, call_timeout, triggers, host_group } =
            settings;
        let DriverSetup { driver, config, first_id, local, ended, sealing } = opened;
        let local_addr = driver.local_addr();
        let Capabilities { link_mbps, receive_buffer, spray_ports, .. } = driver.capabilities();
        // If the system refuses a driver the ports, it does not receive sprayed packets either.
        let config = config.to_builder().spray_ports(spray_ports as u64).build();
        let config = config.map_err(io::Error::other)?;
        let driver_counters = driver.counters();
        let (transmit, receive) = driver.split();
        let mut seed = [0; 16];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        let seed = u128::from_ne_bytes(seed);
        let mut transport = Transport::new(config, local_addr.port(), seed);
        if let Some(first_id) = first_id {
            transport.set_first_id(first_id);
        }
        transport.set_serving(serving);
        transport.set_receive_buffer(receive_buffer);
        transport.set_link_rate(link_mbps.unwrap_or(0));
        let clock = Clock::start();
        transport.set_birth(clock.now());
        // If the system refuses it, the endpoint works without shared memory.
        let path =
            local.and_then(|local| Path::open(local_addr, serving, transport.config(), local).ok());
        let cpu = Arc::<Cpu>::default();
        let mut core = Core::new(CoreParts {
            transport,
            transmit,
            host: host_group.map(HostPlace::new).transpose()?,
            clock,
            quotas,
            backlog: Backlog::new(max_queueing),
            call_timeout: CallTimeout::new(call_timeout),
            local: path.clone(),
            tracer: Tracer::new(local_addr, triggers),
            cpu: cpu.clone(),
        });
        if path.as_ref().is_some_and(Path::is_name_taken) {
            core.counters().local_names_taken += 1;
            warning::print(format_args!(
                "another process has the name of {local_addr} for peers of this host: their calls go over the network \
                 (`apus doctor` explains)"
            ));
        }
        let receiver = Receiver::new(receive, receive_buffer, path.as_ref().map(Path::local));
        Ok(Self {
            core: Owned::new(Mutex::new(core)),
            receiver: Owned::new(Mutex::new(receiver)),
            path: Owned::new(path),
            signal: Signal::new()?,
            published: Published::default(),
            clock,
            poll,
            call_timeout,
            receive_quota: quotas.of(Work::Receive),
            local_addr,
            cpu,
            driver_counters: Owned::new(driver_counters),
            sealing: Owned::new(sealing),
            _auto_save: Owned::new(auto_save),
            _ended: ended,
            sibling,
        })
    }

    /// Returns the process that may use it.
    #[inline]
    pub(crate) const fn owner(&self) -> Owner {
        self.core.owner()
    }

    /// Returns the shard's place among the shards of its endpoint; `None` if it is the only one.
    pub(crate) const fn sibling(&self) -> Option<&Sibling<Self>> {
        self.sibling.as_ref()
    }

    /// Asks idle threads of other shards to steal messages of this one.
    fn ask_siblings(&self, asks: StealAsks) {
        let Some(sibling) = &self.sibling else { return };
        for kind in MessageKind::ALL {
            let mut left = asks[kind];
            for other in sibling.idle_others(kind).filter_map(|index| sibling.shard(index)) {
                while left > 0 && other.lock().request_steal(kind) {
                    left -= 1;
                }
            }
        }
    }

    /// Closes the other shards of the endpoint.
    fn close_siblings(&self, why: &Closed) {
        for other in self.sibling.iter().flat_map(Sibling::other_shards) {
            other.lock().close(why.clone());
        }
    }

    /// Takes the core lock for a call. Also returns since when the thread has waited for it, in
    /// ticks of the trace; 0 if it has not.
    #[inline]
    pub(crate) fn lock_for_call(&self) -> (Locked<'_>, u64) {
        match self.core.try_lock() {
            Ok(guard) => (Locked { shard: self, guard: Some(guard) }, 0),
            Err(_) => {
                let since = recorder::stamp();
                (self.lock(), since)
            }
        }
    }

    /// Returns the result of an ended call. If the driver's failure has ended it, that is the
    /// cause.
    pub(crate) fn result_of(&self, response: Response) -> Result<Bytes, CallError> {
        response.into_result().map_err(|error| {
            if error.kind == FailureKind::ShutDown
                && let why @ Closed::Driver(_) = self.lock().closed_error()
            {
                return CallError::Interrupted { why, execution: error.execution };
            }
            CallError::Failed(error)
        })
    }

    /// Takes the core lock.
    pub(crate) fn lock(&self) -> Locked<'_> {
        debug_assert!(self.owner().is_current(), "a child of a fork locks nothing");
        // A thread that panicked under the lock has broken an invariant. The state is still
        // memory-safe, and the other threads must be able to end.
        let guard = match self.core.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => self.wait_for_lock(),
        };
        Locked { shard: self, guard: Some(guard) }
    }

    /// Waits for the core lock, and counts that: a thread that waits has the time to read the
    /// clock.
    #[cold]
    fn wait_for_lock(&self) -> MutexGuard<'_, Core> {
        let since = std::time::Instant::now();
        let mut guard = self.core.lock().unwrap_or_else(PoisonError::into_inner);
        let counters = guard.counters();
        counters.lock_misses += 1;
        counters.lock_miss_nanos += since.elapsed().as_nanos() as u64;
        guard
    }

    /// Takes the lock of the receive path. The caller has the poll role.
    pub(crate) fn receiver(&self) -> MutexGuard<'_, Receiver> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects to peers that may be on this host. Makes system calls: the caller holds no lock.
    fn connect(&self, peers: Vec<SocketAddr>) {
        let Some(path) = &*self.path else { return };
        for peer in peers {
            let start = path.connect(peer);
            self.lock().connecting(peer, start, self.clock.now());
        }
    }

    /// Returns the timeout of calls without a deadline.
    pub(crate) const fn call_timeout(&self) -> Duration {
        self.call_timeout
    }

    /// Returns whether the shared-memory path is open.
    pub(crate) fn has_local_path(&self) -> bool {
        self.path.is_some()
    }

    /// Returns the address of the socket.
    pub(crate) const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Returns the counters of the driver, if it has any.
    pub(crate) fn driver_counters(&self) -> Vec<(&'static str, u64)> {
        self.driver_counters.as_ref().map_or_else(Vec::new, |counters| counters.all())
    }

    /// Returns the sealing of the driver's packets.
    #[cfg(feature = "tls")]
    pub(crate) fn sealing(&self) -> &Sealing {
        &self.sealing
    }

    pub(crate) const fn poll_mode(&self) -> PollMode {
        self.poll
    }

    pub(crate) const fn receive_quota(&self) -> usize {
        self.receive_quota
    }

    pub(crate) const fn clock(&self) -> Clock {
        self.clock
    }

    pub(crate) const fn signal(&self) -> &Signal {
        &self.signal
    }

    pub(crate) fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    /// Returns whether the protocol, or another thread, needs the leader to take the core lock.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.published.due.load(Ordering::Relaxed) <= now.as_nanos()
    }

    /// Returns the state of the poll role when the core lock was last released.
    pub(crate) fn role_state(&self) -> RoleState {
        RoleState::from_word(self.published.role.load(Ordering::Relaxed))
    }

    /// Returns whether receiving is stopped because too many requests wait for the application.
    pub(crate) fn is_stopped(&self) -> bool {
        let until = self.published.stopped_until.load(Ordering::Relaxed);
        until > 0 && self.clock.now().as_nanos() < until
    }
}

/// The core, locked. When it is unlocked, the time of the next timer is published, and then,
/// without the lock, notified threads are woken and connections to local peers are made.
pub(crate) struct Locked<'a> {
    shard: &'a Shard,
    /// `None` only during the drop.
    guard: Option<MutexGuard<'a, Core>>,
}

impl Deref for Locked<'_> {
    type Target = Core;

    #[inline]
    fn deref(&self) -> &Core {
        match &self.guard {
            Some(guard) => guard,
            None => unreachable!("the guard is dropped with its owner"),
        }
    }
}

impl DerefMut for Locked<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Core {
        match &mut self.guard {
            Some(guard) => guard,
            None => unreachable!("the guard is dropped with its owner"),
        }
    }
}

impl Locked<'_> {
    /// Returns the index of the shard within its endpoint.
    #[inline]
    pub(crate) fn shard_index(&self) -> u16 {
        self.shard.sibling.as_ref().map_or(0, |sibling| sibling.index() as u16)
    }

    /// Unlocks, and does the remaining work that needs no lock. Not inlined: most commands leave
    /// none.
    #[inline(never)]
    fn unlock_and_act(&mut self, must_wake_leader: bool) {
        let shard = self.shard;
        let UnlockActions { wakes, connects } = self.take_unlock_actions();
        self.publish_link_use(shard.sibling());
        let (mut asks, mut closed) = (StealAsks::default(), None);
        if let Some(sibling) = &shard.sibling {
            asks = self.publish_to_siblings(sibling);
            closed = self.take_close();
        }
        self.guard = None;
        if let Some(wakes) = wakes {
            wakes.wake();
        }
        if must_wake_leader {
            shard.signal.raise();
        }
        if let Some(peers) = connects {
            shard.connect(peers);
        }
        if asks != StealAsks::default() {
            shard.ask_siblings(asks);
        }
        if let Some(why) = closed {
            shard.close_siblings(&why);
        }
    }
}

impl Published {
    /// Publishes the state of the poll role, and the time at which the leader must take the core
    /// lock. Returns whether the leader sleeps for longer than that and must be woken. While the
    /// poll role is free, and the background poller does not watch, no thread reads that time, and
    /// a thread that takes the role publishes it again.
    fn publish(&self, core: &mut Core) -> bool {
        let polling = core.polling();
        self.role.store(polling.role_state().to_word(), Ordering::Relaxed);
        if polling.is_free() && !polling.is_watched() {
            return false;
        }
        let due = core.next_due();
        let stopped = core.stopped_until().map_or(0, Instant::as_nanos);
        self.due.store(due.as_nanos(), Ordering::Relaxed);
        self.stopped_until.store(stopped, Ordering::Relaxed);
        core.must_wake_leader(due)
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let shard = self.shard;
        let Some(core) = self.guard.as_deref_mut() else { return };
        let must_wake_leader = shard.published.publish(core);
        if shard.sibling.is_some() || core.has_unlock_actions() {
            return self.unlock_and_act(must_wake_leader);
        }
        self.guard = None;
        if must_wake_leader {
            shard.signal.raise();
        }
    }
}
