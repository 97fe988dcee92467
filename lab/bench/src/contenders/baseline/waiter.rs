//! Waiting on bare sockets.

use std::os::fd::AsFd;

use apus::PollMode;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use apus_measure::clock;
use apus_measure::process::Stop;

/// Waits for a socket according to a [`PollMode`], until the side must stop.
pub struct Waiter<'a> {
    /// Nanoseconds to spin before sleeping; `None` spins forever.
    spin: Option<u64>,
    stop: &'a Stop,
}

impl<'a> Waiter<'a> {
    /// Returns a waiter for this mode and stop request.
    pub fn new(how: PollMode, stop: &'a Stop) -> Self {
        Self { spin: how.spin_for().map(clock::as_nanoseconds), stop }
    }

    /// Calls `receive` until it succeeds; its flags specify whether it may sleep. Returns `None`
    /// once the side must stop.
    #[inline]
    pub fn receive<T>(
        &self,
        mut receive: impl FnMut(RecvFlags) -> Result<T, Errno>,
    ) -> Result<Option<T>, Errno> {
        let mut sleep_at = None;
        let mut flags = RecvFlags::DONTWAIT;
        if self.spin == Some(0) {
            flags = RecvFlags::empty();
        }
        loop {
            let received = receive(flags);
            if self.stop.is_asked() {
                return Ok(None);
            }
            match received {
                Ok(received) => return Ok(Some(received)),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            if let Some(spin) = self.spin {
                let now = clock::now();
                if now >= *sleep_at.get_or_insert(now + spin) {
                    flags = RecvFlags::empty();
                }
            }
        }
    }

    /// Waits until `socket` is readable or writable, if the mode permits sleeping; the caller then
    /// tries both again. Returns `false` once the side must stop.
    pub(crate) fn either(&self, socket: impl AsFd) -> bool {
        if self.spin.is_some() {
            let mut sockets = [PollFd::new(&socket, PollFlags::IN | PollFlags::OUT)];
            // After an error the caller only tries too early.
            let _ = poll(&mut sockets, None);
        }
        !self.stop.is_asked()
    }
}
