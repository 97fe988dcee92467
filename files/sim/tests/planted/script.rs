//! Writes histories: one line for each event.

use apus_fs_sim::history::{Event, Happening, Moment, MountId, ObjectHistory};

/// Returns an event between two moments; `until` 0 means that it never returned.
pub(crate) fn event<A>(mount: u32, from: u64, until: u64, action: A) -> Event<Happening<A>> {
    happening(mount, from, until, Happening::Action(action))
}

/// Returns an `fsync`.
pub(crate) fn synced<A>(mount: u32, from: u64, until: u64) -> Event<Happening<A>> {
    happening(mount, from, until, Happening::Synced)
}

/// Returns a crash.
pub(crate) fn crash<A>(mount: u32, at: u64) -> Event<Happening<A>> {
    happening(mount, at, at, Happening::Lost)
}

fn happening<A>(mount: u32, from: u64, until: u64, what: Happening<A>) -> Event<Happening<A>> {
    let returned = (until > 0).then_some(Moment(until));
    Event { mount: MountId(mount), invoked: Moment(from), returned, action: what }
}

/// A history.
pub(crate) type Script<A> = ObjectHistory<A>;
