//! The poll role, the leader's sleep, and the background poller's alarm.

use crate::engine::handoff::{PollRole, RoleState, Waiter, WakeList};
use crate::engine::waiting::Alarm;
use apus_proto::Instant;
use std::sync::Arc;
use std::time::Duration;

/// The poll role, and the leader's state that other threads need.
#[derive(Debug, Default)]
pub(crate) struct Polling {
    role: PollRole,
    /// While the leader sleeps in the kernel: until when.
    sleeping_until: Option<Instant>,
    /// Whether the sleeping leader wakes when the full socket has room.
    sleeps_for_room: bool,
    /// Whether the leader must take the core lock in its next round, whatever the time.
    check_requested: bool,
    /// Whether the background poller watches the shard: then the poll role is free.
    watched: bool,
    /// Whether the leader polls once, and then receives its message.
    polls_once: bool,
    background: Background,
}

/// Wake sources of the background poller.
#[derive(Debug, Default)]
struct Background {
    /// `None` if there is no background poller.
    alarm: Option<Arc<Alarm>>,
    /// While the background poller sleeps without a time limit: how long the poll role must have
    /// been free before it wakes.
    wake_after: Option<Duration>,
    /// The number of changes of the poll role when the alarm was set.
    free_since: Option<u64>,
}

impl Polling {
    /// Takes the poll role if it is free. Returns whether it was. The background poller then
    /// watches the shard no longer.
    pub(crate) fn take_role(&mut self) -> bool {
        let taken = self.role.take();
        if taken && std::mem::take(&mut self.watched) {
            self.end_sleep();
        }
        taken
    }

    /// Has the background poller, which has the poll role, watch the shard until `until`: the role
    /// is free for every thread, and the background poller wakes in its place.
    pub(crate) fn watch_until(&mut self, until: Instant, wakes: &mut WakeList) {
        let passed = self.role.pass(wakes);
        debug_assert!(!passed, "no thread waits");
        self.watched = true;
        self.begin_sleep(until);
    }

    /// Returns whether the background poller watches the shard.
    pub(crate) const fn is_watched(&self) -> bool {
        self.watched
    }

    /// Returns the state of the poll role.
    pub(crate) const fn role_state(&self) -> RoleState {
        self.role.state()
    }

    /// Returns whether no thread has the poll role.
    pub(crate) const fn is_free(&self) -> bool {
        self.role.is_free()
    }

    /// Takes the poll role for a single poll, if it is free. Returns whether it was.
    pub(crate) fn take_role_once(&mut self) -> bool {
        self.polls_once = self.take_role();
        self.polls_once
    }

    /// Notes that the single poll is over.
    pub(crate) const fn end_single_poll(&mut self) {
        self.polls_once = false;
    }

    /// Returns whether a thread that receives messages has left the poll role, or polls once: the
    /// messages that wait may be for it.
    pub(crate) const fn is_left(&self) -> bool {
        (self.role.is_free() && !self.watched) || self.polls_once
    }

    /// Returns whether a thread waits for the poll role.
    pub(crate) const fn is_role_wanted(&self) -> bool {
        self.role.is_wanted()
    }

    /// Adds a waiting thread that takes the poll role when it is passed on.
    pub(crate) fn follow(&mut self, waiter: Arc<Waiter>) {
        self.role.add_follower(waiter);
    }

    /// Removes a thread that does not wait any more.
    pub(crate) fn unfollow(&mut self, waiter: &Arc<Waiter>) {
        self.role.remove_follower(waiter);
    }

    /// Passes the poll role to a follower, or frees it; then the background poller is woken after a
    /// while. Returns whether a follower has the role.
    pub(crate) fn pass_role(&mut self, wakes: &mut WakeList) -> bool {
        let passed = self.role.pass(wakes);
        if !passed && let Some(after) = self.background.wake_after.take() {
            self.background.free_since = Some(self.role.changes());
            self.wake_background_poller(after);
        }
        passed
    }

    /// Has the leader take the core lock in its next round.
    pub(crate) const fn request_check(&mut self) {
        self.check_requested = true;
    }

    /// Requests a check if `condition` holds.
    pub(crate) const fn request_check_if(&mut self, condition: bool) {
        self.check_requested |= condition;
    }

    /// Notes that the leader has checked.
    pub(crate) const fn checked(&mut self) {
        self.check_requested = false;
    }

    /// Returns whether the leader must take the core lock in its next round.
    pub(crate) const fn is_check_requested(&self) -> bool {
        self.check_requested
    }

    /// Announces that the leader sleeps until `until`.
    pub(crate) const fn begin_sleep(&mut self, until: Instant) {
        self.sleeping_until = Some(until);
    }

    /// Sets whether the leader, while it sleeps, wakes when the full socket has room. Then it need
    /// not try the socket at intervals.
    pub(crate) const fn set_sleeps_for_room(&mut self, sleeps_for_room: bool) {
        self.sleeps_for_room = sleeps_for_room;
    }

    /// Returns whether the sleeping leader wakes when the full socket has room.
    pub(crate) const fn sleeps_for_room(&self) -> bool {
        self.sleeps_for_room
    }

    /// Notes that the leader is awake.
    pub(crate) const fn end_sleep(&mut self) {
        self.sleeping_until = None;
        self.sleeps_for_room = false;
    }

    /// Returns whether the leader sleeps for longer than until `due`, and must be woken; once.
    pub(crate) fn must_wake_leader(&mut self, due: Instant) -> bool {
        let must_wake = self.sleeping_until.is_some_and(|until| due < until);
        if must_wake {
            self.sleeping_until = None;
        }
        must_wake
    }

    /// Sets the alarm of the background poller.
    pub(crate) fn set_alarm(&mut self, alarm: Arc<Alarm>) {
        self.background.alarm = Some(alarm);
    }

    /// Takes the poll role for the background poller, if no thread has had it since its number of
    /// changes was `seen`. Returns whether it did.
    pub(crate) fn take_role_in_background(&mut self, seen: u64) -> bool {
        self.is_free() && self.role.changes() == seen && self.take_role()
    }

    /// Returns the number of times that the poll role has changed hands.
    pub(crate) const fn changes(&self) -> u64 {
        self.role.changes()
    }

    /// Returns the number of changes when the alarm was set because the poll role was free; once.
    pub(crate) const fn take_free_since(&mut self) -> Option<u64> {
        self.background.free_since.take()
    }

    /// Sets for how long the poll role must be free before the background poller is woken; `None`
    /// if it wakes without an alarm.
    pub(crate) const fn set_wake_after(&mut self, wake_after: Option<Duration>) {
        self.background.wake_after = wake_after;
    }

    /// Wakes the background poller, which then ends: the endpoint is closed.
    pub(crate) fn close(&mut self) {
        self.background.wake_after = None;
        self.wake_background_poller(Duration::ZERO);
    }

    fn wake_background_poller(&self, after: Duration) {
        if let Some(alarm) = &self.background.alarm {
            alarm.set(after);
        }
    }
}
