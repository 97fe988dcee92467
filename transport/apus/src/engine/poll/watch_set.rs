//! Wake sources of a leader, as one descriptor that the background poller waits for.
//!
//! A packet that arrives at a socket calls all sets that the socket is in, whether or not anything
//! waits for them: 2.5 to 5.2 % of the samples of a short round trip (lab/log,
//! 2026-11-28). So there is a set while the shard is watched, and none while a thread leads.

use crate::engine::shard::Shard;
use crate::engine::waiting::Descriptors;
use crate::refusal::Named;
use apus_process::Descriptor;
use rustix::event::epoll::{self, EventData, EventFlags};
use std::io;
use std::os::fd::AsFd;

/// An epoll set of the wake sources of a leader: the driver, the signal, the doorbell of local
/// peers.
pub(crate) struct WatchSet {
    set: Descriptor,
    /// Whether it was added to the poller's set.
    is_added: bool,
}

impl WatchSet {
    /// Opens the set of `shard`. Waits for the shard's receiver, which the owner of the poll role
    /// has.
    ///
    /// # Errors
    ///
    /// The system grants no descriptor, or no memory.
    pub(crate) fn open(shard: &Shard) -> io::Result<Self> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).named("epoll_create")?;
        let set = Descriptor::new(set);
        let mut receiver = shard.receiver();
        let Descriptors { driver, bulk, doorbell } = receiver.descriptors();
        let data = EventData::new_u64(0);
        epoll::add(&set, shard.signal(), data, EventFlags::IN)?;
        for fd in [Some(driver), bulk, doorbell].into_iter().flatten() {
            epoll::add(&set, fd, data, EventFlags::IN)?;
        }
        Ok(Self { set, is_added: false })
    }

    /// Has `poller`, an epoll set, report `key` once when something wakes.
    ///
    /// # Errors
    ///
    /// The system grants no memory.
    pub(crate) fn arm(&mut self, poller: impl AsFd, key: u64) -> io::Result<()> {
        let (data, once) = (EventData::new_u64(key), EventFlags::IN | EventFlags::ONESHOT);
        if self.is_added {
            epoll::modify(poller, &self.set, data, once)?;
        } else {
            epoll::add(poller, &self.set, data, once)?;
            self.is_added = true;
        }
        Ok(())
    }

    /// Closes the set, which may be in `poller`.
    pub(crate) fn close(self, poller: impl AsFd) {
        if self.is_added {
            // A fork may have it open, so that closing it is not enough.
            let _ = epoll::delete(poller, &self.set);
        }
    }
}
