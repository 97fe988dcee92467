//! Doorbell: the descriptor of a thread that waits for many pairs.
//!
//! An epoll set with the sockets of all pairs and the listener. Its own descriptor is readable
//! while any of them is ready, so it can be polled together with a UDP socket in one `poll`.
//!
//! Several peers share no word or eventfd, although one of these would need fewer resources: a peer
//! that can write a shared eventfd can also drain it, or block its writers, and so suppress the
//! wake-ups of *other* peers (docs/adr/0011).

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use apus_process::Descriptor;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

/// Ready descriptors that one call returns at most.
const BATCH: usize = 64;

/// An epoll set.
#[derive(Debug)]
pub(crate) struct Doorbell {
    epoll: Descriptor,
}

impl Doorbell {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self { epoll: Descriptor::new(epoll::create(epoll::CreateFlags::CLOEXEC)?) })
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
    /// of ready ones to `sink`, and whether the other end of each may have gone.
    pub(crate) fn wait(
        &self,
        time: Option<Duration>,
        mut sink: impl FnMut(u64, bool),
    ) -> Result<usize, Errno> {
        let time = time.map(|time| Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(time.subsec_nanos()),
        });
        let mut events = [const { MaybeUninit::uninit() }; BATCH];
        match epoll::wait(&self.epoll, &mut events, time.as_ref()) {
            Ok((ready, _)) => {
                let gone =
                    epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
                ready.iter().for_each(|event| {
                    let epoll::Event { flags, data } = *event;
                    sink(data.u64(), flags.intersects(gone));
                });
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    #[test]
    fn only_the_end_of_a_peer_is_reported_as_such() {
        let (mut socket, mut peer) = UnixStream::pair().unwrap();
        let doorbell = Doorbell::new().unwrap();
        doorbell.add(&socket, 7).unwrap();
        let reported = || {
            let mut all = Vec::new();
            doorbell.wait(Some(Duration::ZERO), |key, gone| all.push((key, gone))).unwrap();
            all
        };
        assert_eq!(reported(), []);
        peer.write_all(&[1]).unwrap();
        assert_eq!(reported(), [(7, false)]);
        // The ring is pending until its signal is read.
        peer.shutdown(Shutdown::Both).unwrap();
        assert_eq!(reported(), [(7, true)]);
        socket.read_exact(&mut [0]).unwrap();
        assert_eq!(reported(), [(7, true)]);
    }
}
