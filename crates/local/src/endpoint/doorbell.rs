//! Doorbell: the descriptor on which a thread sleeps that waits for many pairs.
//!
//! An epoll set with the sockets of all pairs and the listener. Its own descriptor is readable
//! while any of them is ready, so it can be polled together with a UDP socket in one `poll`.
//!
//! Several peers share no word or eventfd, although one of these would need fewer resources: a peer
//! that can write a shared eventfd can also drain it, or block its writers, and so suppress the
//! wake-ups of *other* peers (docs/adr/0011).

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

/// Ready descriptors that one call returns at most.
const BATCH: usize = 64;

/// An epoll set.
#[derive(Debug)]
pub(crate) struct Doorbell {
    epoll: OwnedFd,
}

impl Doorbell {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)? })
    }

    /// Adds a descriptor, which is reported by `key`.
    pub(crate) fn add(&self, fd: impl AsFd, key: u64) -> Result<(), Errno> {
        let events = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(key), events)
    }

    /// Removes a descriptor.
    pub(crate) fn remove(&self, fd: impl AsFd) {
        // It may have been removed before.
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Waits until a descriptor is ready, for up to `time` (`None`: forever), and passes the keys
    /// of ready ones to `sink`.
    pub(crate) fn wait(
        &self,
        time: Option<Duration>,
        mut sink: impl FnMut(u64),
    ) -> Result<usize, Errno> {
        let time = time.map(|time| Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(time.subsec_nanos()),
        });
        let mut events = [const { MaybeUninit::uninit() }; BATCH];
        match epoll::wait(&self.epoll, &mut events, time.as_ref()) {
            Ok((ready, _)) => {
                ready.iter().for_each(|event| sink(event.data.u64()));
                Ok(ready.len())
            }
            Err(Errno::INTR) => Ok(0),
            Err(errno) => Err(errno),
        }
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
