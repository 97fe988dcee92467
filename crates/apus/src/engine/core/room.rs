//! Who waits for room to send, and who tells them that there is some?

use super::Core;
use crate::engine::waiter::{Notice, Waiter};
use std::sync::Arc;

impl Core {
    /// Whether the socket is full.
    pub(crate) fn is_stuck(&self) -> bool {
        !self.transmit.has_room()
    }

    /// How often there has been room to send after a command was refused for lack of it.
    pub(crate) const fn room_changes(&self) -> u64 {
        self.room_changes
    }

    /// Somebody waits for room to send.
    pub(crate) fn enlist_for_room(&mut self, waiter: Arc<Waiter>) {
        self.room.push(waiter);
    }

    /// It does not wait any more.
    pub(crate) fn delist_for_room(&mut self, waiter: &Arc<Waiter>) {
        self.room.retain(|other| !Arc::ptr_eq(other, waiter));
    }

    /// There is room to send: all who wait for it try again.
    pub(crate) fn notify_room(&mut self) {
        self.room_changes += 1;
        // The thread with the turn may wait for room, and is on no list.
        self.check_now = true;
        for waiter in self.room.drain(..) {
            self.wakes.notify(waiter, Notice::Ready);
        }
    }

    /// A call was refused because there are too many, those included whose end nobody has received; tell
    /// when there is room.
    pub(crate) const fn want_fewer_calls(&mut self) {
        self.too_many_calls = true;
    }

    /// A call is over: its end was received, or nobody wants it any more.
    pub(crate) fn call_ended(&mut self) {
        if std::mem::take(&mut self.too_many_calls) {
            self.notify_room();
        }
    }
}
