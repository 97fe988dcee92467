//! How does a task turn the loop, and how do tasks wait?
//!
//! One task of the runtime has the turn for good. It works until there is nothing to do, and is polled
//! again when the driver's descriptor is readable, a timer is due, or somebody kicks. All other tasks
//! wait to be told; their commands are carried out, and their packets sent, where they are polled.

use super::core::WaitKind;
use super::descriptor::{ARRIVAL, readable};
use super::poll_loop::{Arrivals, Pass};
use super::shard::Shard;
use super::signal::Woken;
use super::wait_target::{Closing, WaitTarget};
use super::waiter::{Notice, SLEEPS_ON_NETWORK, Waiter};
use apus_proto::Instant;
use apus_trace::{Event, recorder};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};

/// Passes after which other tasks get a chance.
const PASSES_PER_POLL: usize = 16;

/// What the task that turns the loop sleeps on.
struct Sources {
    driver: AsyncFd<OwnedFd>,
    signal: AsyncFd<OwnedFd>,
    /// What local peers ring.
    doorbell: Option<AsyncFd<OwnedFd>>,
    /// The runtime's own timers are exact to a millisecond, the pacer needs microseconds.
    timer: AsyncFd<OwnedFd>,
}

/// Starts the task. Must be called within a runtime.
///
/// # Errors
///
/// The system or the runtime refuses a descriptor.
pub(crate) fn start(shard: &Arc<Shard>) -> io::Result<()> {
    let taken = shard.lock().role.take();
    debug_assert!(taken, "the endpoint is new");
    let (driver, doorbell) = {
        let mut receiver = shard.receive.lock().unwrap_or_else(PoisonError::into_inner);
        let (driver, doorbell) = receiver.descriptors();
        (
            driver.try_clone_to_owned()?,
            doorbell.map(|doorbell| doorbell.try_clone_to_owned()).transpose()?,
        )
    };
    let timer =
        timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    let sources = Sources {
        driver: readable(driver)?,
        doorbell: doorbell.map(readable).transpose()?,
        signal: readable(shard.signal.as_fd().try_clone_to_owned()?)?,
        timer: readable(timer)?,
    };
    // The guard goes in from outside: a runtime may end before it has polled the task once.
    tokio::spawn(run(CloseOnDrop(shard.clone()), sources));
    Ok(())
}

/// Turns the loop until the endpoint is closed.
async fn run(guard: CloseOnDrop, sources: Sources) {
    let shard = &guard.0;
    loop {
        let idle = shard.work();
        if shard.lock().closed.is_some() {
            return;
        }
        if !idle {
            tokio::task::yield_now().await;
        } else if let Some(sleep) = shard.announce_sleep() {
            recorder::record(Event::Sleep, SLEEPS_ON_NETWORK, 0);
            let woken = sources.sleep(shard, sleep).await;
            recorder::record(Event::Wake, SLEEPS_ON_NETWORK, 0);
            shard.end_sleep(woken);
        }
    }
}

/// Closes the endpoint when the task ends before it: with the runtime, or by a panic. Nobody else would
/// turn the loop, and those who wait, perhaps in another runtime, would do so for ever.
struct CloseOnDrop(Arc<Shard>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        let mut core = self.0.lock();
        if core.closed.is_none() {
            let error = io::Error::other("the runtime that turned the endpoint's loop has ended");
            core.close(crate::error::Closed::Driver(error.into()));
        }
    }
}

impl Shard {
    /// Turns the loop for a while; whether there is nothing left to do.
    fn work(&self) -> bool {
        let mut receiver = self.receive.lock().unwrap_or_else(PoisonError::into_inner);
        // The clock is looked at in each round: a task does not spin.
        let mut rounds = super::poll_loop::ROUNDS_PER_CHECK - 1;
        for _ in 0..PASSES_PER_POLL {
            match self.pass(&mut receiver, Arrivals::Poll, &mut rounds) {
                Pass::Worked(mut core, _) => {
                    let none = core.finish_pass(&Closing, WaitKind::Polled);
                    debug_assert!(none.is_none(), "the task wants nothing");
                }
                Pass::Idle => return true,
                Pass::Broken(error) => {
                    self.lock().close(crate::error::Closed::Driver(error.into()));
                    return true;
                }
            }
            rounds = super::poll_loop::ROUNDS_PER_CHECK - 1;
        }
        false
    }

    /// Says until when the task sleeps; `None` if there is something to do at once.
    fn announce_sleep(&self) -> Option<Sleep> {
        let mut receiver = self.receive.lock().unwrap_or_else(PoisonError::into_inner);
        if !receiver.prepare_to_sleep() {
            return None;
        }
        let mut core = self.lock();
        // While the socket is full, look again soon: tasks are not woken by a socket that has room.
        let now = core.clock.now();
        core.sleeps_for_room = core.is_stuck();
        let again = if core.sleeps_for_room { now + STUCK } else { Instant::NEVER };
        // While receiving has stopped, what arrives is no reason to wake up.
        let stopped = core.backlog.stopped_until().filter(|until| *until > now);
        let until = core.next_due().min(again).min(stopped.unwrap_or(again));
        if until <= now {
            core.sleeps_for_room = false;
            receiver.awake(Woken::default());
            return None;
        }
        core.sleeping_until = Some(until);
        core.check_now = false;
        core.count_sleep();
        Some(Sleep { until, receiving: stopped.is_none() })
    }

    /// The task is awake again.
    fn end_sleep(&self, woken: Woken) {
        self.receive.lock().unwrap_or_else(PoisonError::into_inner).awake(woken);
        let mut core = self.lock();
        core.sleeping_until = None;
        core.sleeps_for_room = false;
    }
}

/// How long the task sleeps, and whether it wakes up when packets arrive.
#[derive(Clone, Copy, Debug)]
struct Sleep {
    until: Instant,
    receiving: bool,
}

/// Pause before a full socket is tried again. Ours: what 1 MiB of send buffer lasts at 40 Gbit/s.
const STUCK: Duration = Duration::from_micros(200);

impl Sources {
    /// Sleeps until something happens; what did.
    async fn sleep(&self, shard: &Shard, Sleep { until, receiving }: Sleep) -> Woken {
        let mut woken = Woken::default();
        let now = shard.clock.now();
        if until < Instant::NEVER && self.set_timer((until - now).as_nanos() as u64).is_err() {
            // Without a timer the loop must go round.
            tokio::task::yield_now().await;
            return Woken::UNKNOWN;
        }
        tokio::select! {
            ready = self.driver.ready(ARRIVAL), if receiving => {
                woken.driver = true;
                clear(ready);
            }
            ready = self.rung(), if receiving => {
                woken.doorbell = true;
                clear(ready);
            }
            ready = self.signal.readable() => {
                woken.signal = true;
                shard.signal.lower();
                clear(ready);
            }
            ready = self.timer.readable() => {
                let mut count = [0; 8];
                let _ = rustix::io::read(self.timer.get_ref(), &mut count);
                clear(ready);
            }
        }
        woken
    }

    /// Waits until local peers ring.
    async fn rung(&self) -> io::Result<AsyncFdReadyGuard<'_, OwnedFd>> {
        match &self.doorbell {
            Some(doorbell) => doorbell.readable().await,
            None => std::future::pending().await,
        }
    }

    fn set_timer(&self, nanos: u64) -> io::Result<()> {
        // A value of 0 would switch the timer off.
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

/// The descriptor will be read until nothing is left; wake again for what comes after that.
fn clear(ready: io::Result<AsyncFdReadyGuard<'_, OwnedFd>>) {
    if let Ok(mut ready) = ready {
        ready.clear_ready();
    }
}

/// Waits until something can be taken; gives `None` if the endpoint is closed. May be dropped at any
/// time.
pub(crate) struct WaitFor<'a, W: WaitTarget> {
    shard: &'a Arc<Shard>,
    want: W,
    /// Once it waits.
    waiter: Option<Arc<Waiter>>,
}

impl<'a, W: WaitTarget> WaitFor<'a, W> {
    pub(crate) const fn new(shard: &'a Arc<Shard>, want: W) -> Self {
        Self { shard, want, waiter: None }
    }
}

impl<W: WaitTarget + Unpin> Future for WaitFor<'_, W> {
    type Output = Option<W::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let polled = if this.waiter.is_some() { recorder::stamp() } else { 0 };
        let mut core = this.shard.lock();
        let Some(waiter) = &this.waiter else {
            if let Some(output) = core.take(&this.want, WaitKind::None) {
                return Poll::Ready(Some(output));
            }
            if core.closed.is_some() {
                return Poll::Ready(None);
            }
            core.transmit_held_back();
            let waiter = Arc::new(Waiter::task(context.waker()));
            this.want.enlist(&mut core, waiter.clone());
            this.waiter = Some(waiter);
            return Poll::Pending;
        };
        match waiter.notice() {
            None => {
                waiter.renew(context.waker());
                Poll::Pending
            }
            Some(told) => {
                debug_assert_eq!(told, Notice::Ready, "tasks are no candidates for the turn");
                let name = waiter.name();
                this.waiter = None;
                Poll::Ready(core.take_notified(&this.want, WaitKind::Slept, (name, polled)))
            }
        }
    }
}

impl<W: WaitTarget> Drop for WaitFor<'_, W> {
    fn drop(&mut self) {
        let Some(waiter) = self.waiter.take() else { return };
        let mut core = self.shard.lock();
        if waiter.notice().is_some() {
            self.want.refuse(&mut core);
        } else {
            self.want.delist(&mut core, &waiter);
        }
    }
}
