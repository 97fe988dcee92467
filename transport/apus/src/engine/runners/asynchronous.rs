//! The async engine: a task of a tokio runtime runs the loop, and tasks wait.
//!
//! One task of the runtime has the poll role for the life of the endpoint. In turns with the other
//! tasks of the runtime it sends the messages that they have left to it and receives; when no
//! packet has arrived for a while ([`CooperativeSpin`]), it sleeps until the driver's descriptor is
//! readable, a timer is due, or the signal is raised. All other tasks wait until they are notified.
//!
//! A task that makes a call or replies on the thread that is about to run the loop's task leaves
//! its packets to it, so that the packets of several tasks leave together. Otherwise, and in the
//! main future of a runtime, they leave at once (ENGINE-4).

use super::event_loop::Sleep;
use crate::engine::handoff::{Idle, Notice, SLEEPS_ON_NETWORK, Waiter};
use crate::engine::poll::{LoopState, Pass, UntilClosed, WaitTarget};
use crate::engine::shard::Shard;
use crate::engine::state::WaitKind;
use crate::engine::waiting::{
    ARRIVAL, CooperativeSpin, Descriptors, PollMode, WakeReasons, readable,
};
use crate::error::Closed;
use crate::refusal::Named;
use apus_process::Descriptor;
use apus_proto::Instant;
use apus_trace::{Event, recorder};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};
use tokio::runtime::{Handle, RuntimeFlavor};

/// Descriptors that the task of the loop sleeps on.
struct Sources {
    driver: AsyncFd<Descriptor>,
    /// The driver's for packets that may wait. They wake the task as others do.
    bulk: Option<AsyncFd<Descriptor>>,
    signal: AsyncFd<Descriptor>,
    /// The doorbell of local peers.
    doorbell: Option<AsyncFd<Descriptor>>,
    /// A timer of the system: the runtime's own timers are exact to a millisecond, and the pacer
    /// needs microseconds.
    timer: AsyncFd<Descriptor>,
}

/// Starts the task. The caller is in a runtime.
///
/// # Errors
///
/// The system or the runtime refuses a descriptor.
pub(crate) fn start(shard: &Arc<Shard>) -> io::Result<()> {
    let taken = shard.lock().polling().take_role();
    debug_assert!(taken, "the endpoint is new");
    let (driver, bulk, doorbell) = {
        let mut receiver = shard.receiver();
        let Descriptors { driver, bulk, doorbell } = receiver.descriptors();
        let owned = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map(Descriptor::new);
        (owned(driver)?, bulk.map(owned).transpose()?, doorbell.map(owned).transpose()?)
    };
    let timer =
        timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC);
    let timer = timer.named("timerfd_create")?;
    let sources = Sources {
        driver: readable(driver)?,
        bulk: bulk.map(readable).transpose()?,
        doorbell: doorbell.map(readable).transpose()?,
        signal: readable(Descriptor::new(shard.signal().as_fd().try_clone_to_owned()?))?,
        timer: readable(Descriptor::new(timer))?,
    };
    // The guard is made here: a runtime may end before it has polled the task once.
    tokio::spawn(run(CloseOnDrop(shard.clone()), sources));
    Ok(())
}

/// Runs the loop until the endpoint is closed.
async fn run(guard: CloseOnDrop, sources: Sources) {
    let shard = &guard.0;
    let mut spin = CooperativeSpin::new(shard.poll_mode());
    let is_alone = Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread;
    // In a child of a fork the runtime may poll this task as well.
    while shard.owner().is_current() {
        match shard.turn(spin.polls()) {
            Turn::Closed => return,
            Turn::Worked => {
                spin.restart();
                // The woken tasks run first, and their messages leave before the runtime polls the
                // system for events. With several threads this would wake another one.
                if is_alone {
                    run_others().await;
                    // A task that sleeps at once yields by that.
                    if shard.begin_turn() || shard.poll_mode().sleeps_at_once() {
                        continue;
                    }
                }
                tokio::task::yield_now().await;
                continue;
            }
            Turn::Idle if spin.go_on() => {
                tokio::task::yield_now().await;
                continue;
            }
            Turn::Idle => {}
        }
        if let Some(sleep) = shard.announce_sleep() {
            recorder::record(Event::Sleep, SLEEPS_ON_NETWORK, 0);
            let reasons = sources.sleep(shard, sleep).await;
            recorder::record(Event::Wake, SLEEPS_ON_NETWORK, 0);
            if !shard.owner().is_current() {
                return;
            }
            shard.end_sleep(reasons);
        }
    }
}

/// Lets ready tasks run, but not the runtime's work in between: its main future, timers and events.
async fn run_others() {
    let mut ran = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut ran, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Closes the endpoint when the task ends before it: with the runtime, or by a panic. No other task
/// would run the loop, and tasks that wait, possibly in another runtime, would do so forever.
struct CloseOnDrop(Arc<Shard>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        if !self.0.owner().is_current() {
            return;
        }
        let mut core = self.0.lock();
        if !core.is_closed() {
            let error = io::Error::other("the runtime that ran the endpoint's loop has ended");
            core.close(Closed::Driver(error.into()));
        }
    }
}

/// Result of a turn of the task that runs the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Something arrived or was due.
    Worked,
    /// No work was done.
    Idle,
    /// The endpoint is closed.
    Closed,
}

/// Number of passes after which the task yields to others.
const PASSES_PER_TURN: usize = 16;

impl Shard {
    /// Sends messages that other tasks have left to the task that runs the loop. Returns whether
    /// there were any. The caller has the poll role.
    fn begin_turn(&self) -> bool {
        self.lock().begin_turn()
    }

    /// Runs the loop until packets have arrived and the socket is empty, for a number of passes at
    /// most, or until no packet has arrived in `polls` passes. The caller has the poll role.
    fn turn(&self, polls: usize) -> Turn {
        {
            let mut core = self.lock();
            if core.is_closed() {
                return Turn::Closed;
            }
            let _ = core.begin_turn();
        }
        let mut receiver = self.receiver();
        let mut idle = 0;
        // Each pass checks the timers: a round of the runtime may take long.
        let mut state = LoopState::new(PollMode::Block, true);
        let mut turn = Turn::Idle;
        for _ in 0..PASSES_PER_TURN {
            match self.pass(&mut receiver, &mut state) {
                Pass::Worked { mut core, .. } => {
                    let none = core.finish_pass(&UntilClosed, WaitKind::Polled);
                    debug_assert!(none.is_none(), "the task waits for no message");
                    turn = Turn::Worked;
                    if !core.has_more_to_do() && !receiver.may_have_more() {
                        break;
                    }
                }
                Pass::Idle if turn == Turn::Worked => break,
                Pass::Idle => {
                    idle += 1;
                    if idle >= polls {
                        break;
                    }
                }
                Pass::Broken(error) => {
                    self.lock().close(Closed::Driver(error.into()));
                    return Turn::Closed;
                }
            }
            state.check_next();
        }
        turn
    }

    /// Takes `target` if it is available, for a task that does not wait. Otherwise, sends messages
    /// held back, as before a wait.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed, and no message is left.
    pub(crate) fn try_take<W: WaitTarget>(&self, target: &W) -> Result<Option<W::Output>, Closed> {
        let mut core = self.lock();
        if let Some(output) = core.take(target, WaitKind::None) {
            return Ok(Some(output));
        }
        core.transmit_held_back();
        if core.is_closed() { Err(core.closed_error()) } else { Ok(None) }
    }

    /// Announces the task's sleep, and returns its duration; `None` if there is something to do at
    /// once.
    fn announce_sleep(&self) -> Option<Sleep> {
        let (sleep, mut core, _receiver) = self.prepare_sleep()?;
        core.end_turns();
        core.polling().begin_sleep(sleep.until);
        Some(sleep)
    }

    /// Ends the task's sleep, for these reasons.
    fn end_sleep(&self, reasons: WakeReasons) {
        self.receiver().finish_sleep(reasons, self.clock().now());
        self.lock().polling().end_sleep();
    }
}

impl Sources {
    /// Sleeps until an event occurs. Returns the reasons of the wake-up.
    async fn sleep(&self, shard: &Shard, Sleep { until, receiving }: Sleep) -> WakeReasons {
        let mut reasons = WakeReasons::default();
        let now = shard.clock().now();
        if until < Instant::NEVER && self.set_timer((until - now).as_nanos() as u64).is_err() {
            // Without a timer the loop must keep running.
            tokio::task::yield_now().await;
            return WakeReasons::UNKNOWN;
        }
        tokio::select! {
            ready = self.driver.ready(ARRIVAL), if receiving => {
                reasons.driver = true;
                clear(ready);
            }
            ready = readable_if_any(self.bulk.as_ref()), if receiving => {
                reasons.driver = true;
                clear(ready);
            }
            ready = readable_if_any(self.doorbell.as_ref()), if receiving => {
                reasons.doorbell = true;
                clear(ready);
            }
            ready = self.signal.readable() => {
                reasons.signal = true;
                shard.signal().lower();
                clear(ready);
            }
            ready = self.timer.readable() => {
                let mut count = [0; 8];
                let _ = rustix::io::read(self.timer.get_ref(), &mut count);
                clear(ready);
            }
        }
        reasons
    }

    fn set_timer(&self, nanos: u64) -> io::Result<()> {
        // A value of 0 would disable the timer.
        let nanos = nanos.clamp(1, 86_400_000_000_000);
        let it_value = Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as i64,
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}

/// Waits until the descriptor is readable, if there is one.
async fn readable_if_any(
    fd: Option<&AsyncFd<Descriptor>>,
) -> io::Result<AsyncFdReadyGuard<'_, Descriptor>> {
    match fd {
        Some(fd) => fd.readable().await,
        None => std::future::pending().await,
    }
}

/// Clears the readiness of a descriptor: it will be read until it is empty, and later events wake
/// the task again.
fn clear(ready: io::Result<AsyncFdReadyGuard<'_, Descriptor>>) {
    if let Ok(mut ready) = ready {
        ready.clear_ready();
    }
}

/// Waits until a target can be taken; `None` if the endpoint is closed, or the task is asked to
/// steal from other shards. May be dropped at any time.
pub(crate) struct WaitFor<'a, W: WaitTarget> {
    shard: &'a Arc<Shard>,
    target: W,
    /// `None` until it waits.
    waiter: Option<Arc<Waiter>>,
    /// While it waits, if there are other shards to steal from.
    idle: Option<Idle<'a>>,
}

impl<'a, W: WaitTarget> WaitFor<'a, W> {
    pub(crate) const fn new(shard: &'a Arc<Shard>, target: W) -> Self {
        Self { shard, target, waiter: None, idle: None }
    }
}

impl<W: WaitTarget + Unpin> Future for WaitFor<'_, W> {
    type Output = Option<W::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if !this.shard.owner().is_current() {
            // The caller reports it.
            return Poll::Ready(None);
        }
        let polled = if this.waiter.is_some() { recorder::stamp() } else { 0 };
        let mut core = this.shard.lock();
        let Some(waiter) = &this.waiter else {
            if let Some(output) = core.take(&this.target, WaitKind::None) {
                return Poll::Ready(Some(output));
            }
            if core.is_closed() {
                return Poll::Ready(None);
            }
            core.before_task_waits();
            // STEAL-1: announce first, then read the surplus of the others.
            this.idle = this.shard.sibling().map(|sibling| sibling.idle(this.target.kinds()));
            if core.is_steal_requested(this.target.kinds()) || this.shard.has_to_steal(&this.target)
            {
                return Poll::Ready(None);
            }
            let waiter = Arc::new(Waiter::task(context.waker()));
            this.target.enlist(&mut core, waiter.clone());
            this.waiter = Some(waiter);
            return Poll::Pending;
        };
        match waiter.notice() {
            None => {
                waiter.renew(context.waker());
                Poll::Pending
            }
            Some(Notice::Steal) => {
                this.waiter = None;
                Poll::Ready(None)
            }
            Some(notice) => {
                debug_assert_eq!(notice, Notice::Ready, "tasks are no followers");
                let name = waiter.name();
                this.waiter = None;
                Poll::Ready(core.take_notified(&this.target, WaitKind::Slept, (name, polled)))
            }
        }
    }
}

impl<W: WaitTarget> Drop for WaitFor<'_, W> {
    fn drop(&mut self) {
        let Some(waiter) = self.waiter.take() else { return };
        if !self.shard.owner().is_current() {
            return;
        }
        let mut core = self.shard.lock();
        match waiter.notice() {
            None => self.target.delist(&mut core, &waiter),
            Some(Notice::Steal) => core.decline_to_steal(self.target.kinds()),
            Some(_) => self.target.give_back(&mut core),
        }
    }
}
