//! A mailbox: passes requests of other threads to a thread that sleeps on descriptors.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

/// A queue whose descriptor is readable while letters may be in it.
#[derive(Debug)]
pub(crate) struct Mailbox<T> {
    letters: Mutex<VecDeque<T>>,
    event: OwnedFd,
}

impl<T> Mailbox<T> {
    /// Returns an empty mailbox.
    ///
    /// # Errors
    ///
    /// The system grants no descriptor.
    pub(crate) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { letters: Mutex::default(), event })
    }

    /// Adds a letter and wakes the thread that owns the mailbox.
    pub(crate) fn send(&self, letter: T) {
        self.letters().push_back(letter);
        // Fails only if the counter is full: then the descriptor is readable anyway.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Takes all letters. The descriptor is readable again with the next one.
    pub(crate) fn take(&self) -> VecDeque<T> {
        let mut letters = self.letters();
        if !letters.is_empty() {
            // Under the lock: a letter that is sent meanwhile raises the event again.
            let _ = rustix::io::read(&self.event, &mut [0; 8]);
        }
        std::mem::take(&mut letters)
    }

    /// Every state of the queue between two calls is valid, so the state after a panic is valid,
    /// too.
    fn letters(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> AsFd for Mailbox<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    fn is_readable<T>(mailbox: &Mailbox<T>) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(mailbox, PollFlags::IN)], Some(&at_once)).unwrap() == 1
    }

    #[test]
    fn the_descriptor_is_readable_while_there_are_letters() {
        let mailbox = Mailbox::new().unwrap();
        assert!(!is_readable(&mailbox) && mailbox.take().is_empty());
        mailbox.send(1);
        mailbox.send(2);
        assert!(is_readable(&mailbox));
        assert_eq!(mailbox.take(), [1, 2]);
        assert!(!is_readable(&mailbox));
        mailbox.send(3);
        assert!(is_readable(&mailbox));
    }
}
