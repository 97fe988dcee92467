//! The background poller: runs the loops of shards while no application thread does.
//!
//! When every waiting thread has its message, the poll role is free, and no thread sends grants,
//! acks and resends. The background poller checks at intervals whether the role has been free since
//! its last check. If so, it takes the role, does the due work, and from then on *watches* the
//! shard: the role is free for every thread, and the background poller wakes when a packet arrives
//! or a timer is due, and takes the role if no thread has done so by then.
//!
//! It does not disturb unloaded calls: a thread that waits again within the interval, or at a
//! watched shard, finds the role free. Nor does it disturb loaded ones: a check takes the core lock
//! only if it may take the role. The state that it reads without the lock may lag by one change of
//! the role, which the next check finds.
//!
//! One thread serves all shards of the process. It starts with the first one and ends with the last
//! one.
//!
//! Each watched shard has an epoll set of its own in the common one, which exists only while it is
//! watched: a packet calls every set that holds its socket, 2.5 to 5.2 % of a round trip. Decisions
//! and alternatives are in ADR 6.

use super::watch_set::WatchSet;
use crate::engine::handoff::RoleState;
use crate::engine::shard::Shard;
use crate::engine::waiting::{Alarm, Signal};
use crate::refusal::Named;
use apus_process::{Descriptor, Owner, PerProcess};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use slab::Slab;
use std::collections::BTreeSet;
use std::io;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two checks. Chosen by us: well below the 5 ms after which a peer requests missing
/// bytes.
const INTERVAL: Duration = Duration::from_millis(2);

/// Time between two checks after one that found the endpoint busy. A check takes the processor from
/// the polling thread: with 500 checks a second one call in a hundred took 10 µs longer. Chosen by
/// us: two checks in 12 ms are rare enough. If the application suddenly stops calling and computes,
/// the background poller is late by this time once, which costs its peers a RESEND or two.
const BUSY_INTERVAL: Duration = Duration::from_millis(10);

/// Changes of the poll role in one interval that make an endpoint count as busy. A call makes two
/// of them.
const BUSY_CHANGES: u64 = 40;

/// Number of consecutive checks that find the role taken, after which the shard is not checked
/// until the role has been free for an interval.
const CHECKS_BEFORE_SLEEP: u32 = 50;

/// Number of times that the loop of one shard is run in a row while others wait.
const TURNS_IN_A_ROW: u32 = 4;

/// Events that one call of the system returns at most.
const BATCH: usize = 64;

/// Keys of the poller's own descriptors; the keys of slots follow.
const STOP: u64 = 0;
const CLOCK: u64 = 1;
const FIRST: u64 = 2;

/// The poller of this process, while there are shards. A child of a fork has none.
static CURRENT: PerProcess<Mutex<Option<Arc<Poller>>>> = PerProcess::new(Mutex::default);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A shard that the background poller serves, until this is dropped.
pub(crate) struct Served {
    poller: Arc<Poller>,
    slot: usize,
}

/// Has the background poller serve `shard`.
///
/// # Errors
///
/// The system grants no further thread or descriptor.
pub(crate) fn start(shard: &Arc<Shard>) -> io::Result<Served> {
    let alarm = Arc::new(Alarm::new()?);
    let mut current = locked(CURRENT.get());
    let poller = match &*current {
        Some(poller) => poller.clone(),
        None => current.insert(Poller::start()?).clone(),
    };
    let member = Member {
        shard: Arc::downgrade(shard),
        watch_set: None,
        alarm: alarm.clone(),
        at: None,
        watching: false,
        seen: 0,
        checks_taken: 0,
        interval: INTERVAL,
    };
    match poller.add(member) {
        Ok(slot) => {
            shard.lock().polling().set_alarm(alarm);
            Ok(Served { poller, slot })
        }
        Err(error) => {
            poller.end_if_idle(current);
            Err(error)
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // A child of a fork owns neither the thread nor the locks.
        if self.poller.owner.is_current() {
            let current = locked(CURRENT.get());
            self.poller.remove(self.slot);
            self.poller.end_if_idle(current);
        }
    }
}

/// The thread, and the shards that it serves.
struct Poller {
    owner: Owner,
    epoll: Descriptor,
    /// Rings when the next shard is due.
    clock: Alarm,
    stop: Signal,
    members: Mutex<Members>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Members {
    slots: Slab<Member>,
    /// When each shard is due that waits for a time.
    due: BTreeSet<(Instant, usize)>,
    /// Current setting of the clock.
    clock_at: Option<Instant>,
}

/// A shard, with the background poller's state for it.
struct Member {
    shard: Weak<Shard>,
    /// Wake sources of a leader, while the shard is watched.
    watch_set: Option<WatchSet>,
    /// Rings when the role has been free for an interval, and when the shard is closed.
    alarm: Arc<Alarm>,
    /// When it is due.
    at: Option<Instant>,
    /// Whether it is watched; other threads may have taken the role since.
    watching: bool,
    /// Number of changes of the role at the last check.
    seen: u64,
    /// Checks in a row that found the role taken.
    checks_taken: u32,
    interval: Duration,
}

impl Poller {
    fn start() -> io::Result<Arc<Self>> {
        let poller = Arc::new(Self {
            owner: Owner::current(),
            epoll: Descriptor::new(
                epoll::create(epoll::CreateFlags::CLOEXEC).named("epoll_create")?,
            ),
            clock: Alarm::new()?,
            stop: Signal::new()?,
            members: Mutex::default(),
            thread: Mutex::default(),
        });
        let Self { epoll, stop, clock, .. } = &*poller;
        epoll::add(epoll, stop, EventData::new_u64(STOP), EventFlags::IN)?;
        epoll::add(epoll, clock, EventData::new_u64(CLOCK), EventFlags::IN)?;
        let name = std::thread::Builder::new().name("apus-background".into());
        let thread = name.spawn({
            let poller = poller.clone();
            move || poller.run()
        });
        let thread = thread.named("start a thread (clone)")?;
        *locked(&poller.thread) = Some(thread);
        Ok(poller)
    }

    /// Adds a shard, which is checked after an interval. Returns its slot.
    fn add(&self, mut member: Member) -> io::Result<usize> {
        let mut members = locked(&self.members);
        let at = Instant::now() + INTERVAL;
        member.at = Some(at);
        let slot = members.slots.vacant_key();
        let rings = EventData::new_u64(FIRST + 2 * slot as u64 + 1);
        epoll::add(&self.epoll, &*member.alarm, rings, EventFlags::IN)?;
        members.slots.insert(member);
        members.due.insert((at, slot));
        members.set_clock(&self.clock);
        Ok(slot)
    }

    /// Removes a shard. Returns when its loop is not running any more.
    fn remove(&self, slot: usize) {
        let mut members = locked(&self.members);
        let member = members.slots.remove(slot);
        if let Some(at) = member.at {
            members.due.remove(&(at, slot));
        }
        if let Some(set) = member.watch_set {
            set.close(&self.epoll);
        }
        // Fails for none that was added.
        let _ = epoll::delete(&self.epoll, &*member.alarm);
    }

    /// Ends the thread if there is no shard.
    fn end_if_idle(self: &Arc<Self>, mut current: MutexGuard<'_, Option<Arc<Self>>>) {
        if !locked(&self.members).slots.is_empty() {
            return;
        }
        if current.as_ref().is_some_and(|poller| Arc::ptr_eq(poller, self)) {
            *current = None;
        }
        drop(current);
        self.stop.raise();
        let thread = locked(&self.thread).take();
        // If it panicked, the panic has been printed already.
        let _ = thread.map(JoinHandle::join);
    }

    fn run(&self) {
        let mut events = [const { MaybeUninit::uninit() }; BATCH];
        loop {
            let ready = match epoll::wait(&self.epoll, &mut events, None) {
                Ok((ready, _)) => ready,
                Err(Errno::INTR) => continue,
                // epoll_wait(2) fails only for wrong arguments.
                Err(_) => return,
            };
            for event in ready {
                match event.data.u64() {
                    STOP => return,
                    CLOCK => self.clock.clear(),
                    key => self.turn(((key - FIRST) / 2) as usize, key % 2 == 1),
                }
            }
            let now = Instant::now();
            loop {
                let first = locked(&self.members).due.first().copied();
                let Some((_, slot)) = first.filter(|(at, _)| *at <= now) else { break };
                self.turn(slot, false);
            }
            locked(&self.members).set_clock(&self.clock);
        }
    }

    /// Does the due work for the shard in this slot. `rung`: because of its alarm.
    fn turn(&self, slot: usize, rung: bool) {
        let mut members = locked(&self.members);
        let Members { slots, due, .. } = &mut *members;
        // An event may be of a shard that has been removed.
        let Some(member) = slots.get_mut(slot) else { return };
        if let Some(at) = member.at.take() {
            due.remove(&(at, slot));
        }
        if rung {
            member.alarm.clear();
        }
        if let Some(shard) = member.shard.upgrade() {
            member.turn(&shard, rung);
        }
        if member.watching {
            let key = FIRST + 2 * slot as u64;
            let set = member.watch_set.as_mut();
            if set.is_none_or(|set| set.arm(&self.epoll, key).is_err()) {
                // Checked again soon instead.
                member.at = Some(Instant::now() + INTERVAL);
            }
        } else if let Some(set) = member.watch_set.take() {
            set.close(&self.epoll);
        }
        due.extend(member.at.map(|at| (at, slot)));
    }
}

impl Members {
    /// Sets the clock to the time of the shard that is due next.
    fn set_clock(&mut self, clock: &Alarm) {
        let next = self.due.first().map(|(at, _)| *at);
        if let Some(at) = next
            && self.clock_at != next
        {
            clock.set(at.saturating_duration_since(Instant::now()));
        }
        self.clock_at = next;
    }
}

impl Member {
    /// Runs the loop of the shard, if no thread has had the poll role since the last turn. `rung`:
    /// its alarm has rung.
    fn turn(&mut self, shard: &Arc<Shard>, rung: bool) {
        let role = shard.role_state();
        if !rung && !self.needs_lock(role) {
            self.watching = false;
            self.check_again(role);
            return;
        }
        let mut core = shard.lock();
        if core.is_closed() {
            self.watching = false;
            return;
        }
        let polling = core.polling();
        let taken = if std::mem::take(&mut self.watching) {
            polling.is_watched() && polling.take_role()
        } else {
            // If the alarm has rung because the role was free, it has been free since it was set.
            self.seen = polling.take_free_since().unwrap_or(self.seen);
            polling.take_role_in_background(self.seen)
        };
        if taken {
            core.counters().keeper_turns += 1;
            // The thread that holds messages back is busy with something else.
            core.transmit_held_back();
            drop(core);
            self.lead(shard);
            return;
        }
        let sleeps = self.check_again(polling.role_state());
        polling.set_wake_after(sleeps.then_some(INTERVAL));
    }

    /// Returns whether a check that finds `role` needs the core lock: to take the role, or to sleep
    /// until it is free. A loaded shard needs it at few checks. Its lock is held most of the time,
    /// so that each would be a miss, and its leader, whose core this thread may have taken, waits
    /// for it afterwards.
    const fn needs_lock(&self, role: RoleState) -> bool {
        let may_take = !role.taken && role.changes == self.seen;
        may_take || (role.taken && self.checks_taken.saturating_add(1) >= CHECKS_BEFORE_SLEEP)
    }

    /// Notes that a check has found `role`, and when the next one is. Returns whether it is when
    /// the role has been free for an interval.
    fn check_again(&mut self, role: RoleState) -> bool {
        // After a long interval the number of changes tells little about its end, so the next
        // interval is short.
        let busy = self.interval == INTERVAL && role.changes - self.seen >= BUSY_CHANGES;
        self.interval = if busy { BUSY_INTERVAL } else { INTERVAL };
        self.checks_taken = if role.taken { self.checks_taken.saturating_add(1) } else { 0 };
        let sleeps = self.checks_taken >= CHECKS_BEFORE_SLEEP;
        self.seen = role.changes;
        self.at = (!sleeps).then(|| Instant::now() + self.interval);
        sleeps
    }

    /// Runs the loop with the poll role until no work is left, and then watches the shard; or until
    /// another thread waits for the role, or other shards have waited long enough.
    fn lead(&mut self, shard: &Arc<Shard>) {
        self.checks_taken = 0;
        self.interval = INTERVAL;
        // All reasons for which it was raised are checked now.
        shard.signal().lower();
        shard.receiver().take_over(shard.clock());
        for _ in 0..TURNS_IN_A_ROW {
            let idle = shard.work();
            let is_wanted = {
                let mut core = shard.lock();
                core.is_closed() || core.polling().is_role_wanted()
            };
            if is_wanted {
                self.leave(shard, INTERVAL);
                return;
            }
            if idle && self.watch(shard) {
                return;
            }
        }
        self.leave(shard, Duration::ZERO);
    }

    /// Passes the poll role on, or frees it, and checks after `time`.
    fn leave(&mut self, shard: &Shard, time: Duration) {
        let mut core = shard.lock();
        core.pass_role();
        self.seen = core.polling().changes();
        self.at = Some(Instant::now() + time);
    }

    /// Frees the poll role and watches the shard. Returns `false` if there is something to do.
    fn watch(&mut self, shard: &Shard) -> bool {
        if self.watch_set.is_none() {
            // Before the role is free: its next owner keeps the receiver.
            self.watch_set = WatchSet::open(shard).ok();
        }
        let Some((sleep, mut core, mut receiver)) = shard.prepare_sleep() else { return false };
        if core.is_closed() || core.polling().is_role_wanted() {
            receiver.take_over(shard.clock());
            return false;
        }
        core.watch_until(sleep.until);
        core.polling().set_wake_after(Some(INTERVAL));
        self.seen = core.polling().changes();
        let left =
            (sleep.until < apus_proto::Instant::NEVER).then(|| sleep.until - shard.clock().now());
        self.at = left.map(|left| Instant::now() + left);
        self.watching = sleep.receiving;
        // First: a thread that takes the role does not wait for it.
        drop(receiver);
        true
    }
}

#[cfg(test)]
#[cfg(not(apus_loom))]
mod tests {
    use super::*;
    use crate::EndpointBuilder;

    fn member() -> Member {
        Member {
            shard: Weak::new(),
            watch_set: None,
            alarm: Arc::new(Alarm::new().unwrap()),
            at: None,
            watching: false,
            seen: 7,
            checks_taken: 0,
            interval: INTERVAL,
        }
    }

    /// Found by counting: nearly all misses of the core lock under load were caused by these
    /// checks.
    #[test]
    fn a_check_needs_the_core_lock_only_to_take_the_role_or_to_sleep() {
        let mut member = member();
        let role = |taken, changes| RoleState { taken, changes };
        assert!(member.needs_lock(role(false, 7)), "it has been free since the last check");
        assert!(!member.needs_lock(role(false, 9)), "a thread has had it meanwhile");
        assert!(!member.needs_lock(role(true, 7)) && !member.needs_lock(role(true, 8)));
        for _ in 1..CHECKS_BEFORE_SLEEP {
            assert!(!member.needs_lock(role(true, 8)));
            assert!(!member.check_again(role(true, 8)) && member.at.is_some());
        }
        assert!(member.needs_lock(role(true, 8)), "the leader is asked to set the alarm");
        assert!(member.check_again(role(true, 8)) && member.at.is_none());
    }

    #[test]
    fn the_state_of_the_role_is_read_without_the_core_lock() {
        let server = EndpointBuilder::default().bind("127.0.0.1:0").unwrap();
        let shard = server.shard();
        // With the poll role no other thread changes its state.
        while !shard.lock().polling().take_role() {
            std::thread::yield_now();
        }
        let locked = shard.lock();
        let (taken, changes) = (shard.role_state().taken, shard.role_state().changes);
        assert!(taken);
        drop(locked);
        shard.lock().pass_role();
        assert!(shard.role_state().changes > changes);
    }

    /// Found by a profile: each packet calls the sets that its socket is in.
    #[test]
    fn no_set_has_the_socket_while_a_thread_leads() {
        let server = EndpointBuilder::default().bind("127.0.0.1:0").unwrap();
        let shard = server.shard();
        let poller = locked(CURRENT.get()).clone().unwrap();
        let wait_until_set = |is_open| loop {
            let members = locked(&poller.members);
            let of_shard =
                |member: &&Member| std::ptr::eq(member.shard.as_ptr(), &raw const **shard);
            let (_, member) = members.slots.iter().find(|(_, m)| of_shard(m)).unwrap();
            if member.watch_set.is_some() == is_open {
                break;
            }
            drop(members);
            std::thread::yield_now();
        };
        wait_until_set(true);
        while !shard.lock().polling().take_role() {
            std::thread::yield_now();
        }
        let remote = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        remote.send_to(b"wakes the background poller", server.local_addr()).unwrap();
        wait_until_set(false);
        shard.lock().pass_role();
        wait_until_set(true);
    }
}
