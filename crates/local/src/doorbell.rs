//! On what does a thread sleep that waits for many pairs?
//!
//! An epoll set with the sockets of all pairs and the listener. Its own descriptor is readable while any of them
//! has something to say, so it can stand beside a UDP socket in one `poll`.
//!
//! There is no word or eventfd that several peers share, although one would do with less: a peer that can
//! write it can also empty it, or block those who write it, and so keep *others* from being heard
//! (docs/adr/0024).

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

/// Descriptors that are looked at in one call.
const BATCH: usize = 64;

/// The set.
#[derive(Debug)]
pub(crate) struct Bell {
    epoll: OwnedFd,
}

impl Bell {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)? })
    }

    /// Adds a descriptor, that rings with `key`.
    pub(crate) fn add(&self, fd: impl AsFd, key: u64) -> Result<(), Errno> {
        let events = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(key), events)
    }

    /// Takes a descriptor out.
    pub(crate) fn remove(&self, fd: impl AsFd) {
        // It may have been taken out before.
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Waits until something rings, at most `time` (`None`: for ever); the keys of what does.
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
            Ok((rung, _)) => {
                rung.iter().for_each(|event| sink(event.data.u64()));
                Ok(rung.len())
            }
            Err(Errno::INTR) => Ok(0),
            Err(errno) => Err(errno),
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
