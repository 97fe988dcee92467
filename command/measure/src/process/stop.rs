//! Stop request for a server that waits for packets.

use std::fmt;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use rustix::net::{Shutdown, shutdown};

use crate::error::{Doing, Error};

/// A stop request to a server. Clones share one request.
///
/// A spinning server checks [`Stop::is_asked`] whenever it is idle. A server that sleeps in the
/// kernel is woken by the function it registered with [`Stop::wake_with`], which may, for example,
/// send it a packet. A timeout on its socket would lengthen every measured round trip.
#[derive(Clone, Default)]
pub struct Stop {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    asked: AtomicBool,
    wake: Mutex<Option<Box<dyn Fn() + Send>>>,
}

impl Stop {
    /// Returns whether the server must stop.
    #[inline]
    #[must_use]
    pub fn is_asked(&self) -> bool {
        // Relaxed: no other memory is read because of it.
        self.shared.asked.load(Ordering::Relaxed)
    }

    /// Requests the server to stop.
    pub fn ask(&self) {
        self.shared.asked.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Registers the function that wakes the server if it sleeps. It is called once or more after
    /// [`Stop::ask`], or at once if [`Stop::ask`] was called before.
    pub fn wake_with(&self, wake: impl Fn() + Send + 'static) {
        // The lock orders this call before or after the `wake` in `ask`: one of them sees the
        // other's write.
        *self.shared.wake.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(wake));
        if self.is_asked() {
            self.wake();
        }
    }

    /// Sleeps until [`Stop::ask`] is called. Replaces the function registered with
    /// [`Stop::wake_with`].
    pub fn wait(&self) {
        let (wakes, woken) = mpsc::channel();
        self.wake_with(move || {
            // Fails on a second call, when no thread receives anymore.
            let _ = wakes.send(());
        });
        // Fails if the request itself is dropped.
        let _ = woken.recv();
    }

    fn wake(&self) {
        let wake = self.shared.wake.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wake) = &*wake {
            wake();
        }
    }
}

/// Lets [`Stop::ask`] wake a thread that sleeps in a call on `socket`: the call then returns no
/// data or an error.
///
/// # Errors
///
/// The process has no descriptors left.
pub fn wake_on_stop(socket: &impl AsFd, stop: &Stop) -> Result<(), Error> {
    let socket = socket.as_fd().try_clone_to_owned().doing(|| "duplicate a socket".to_owned())?;
    stop.wake_with(move || wake(&socket));
    Ok(())
}

/// Wakes a thread that sleeps in a call on `socket`. The socket is unusable afterwards.
pub fn wake(socket: &impl AsFd) {
    // For a datagram socket without a peer this fails with "not connected" but wakes the thread;
    // Linux does so on purpose (`inet_shutdown`).
    let _ = shutdown(socket, Shutdown::Both);
}

impl fmt::Debug for Stop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Stop").field(&self.is_asked()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_request_wakes_a_sleeping_server() {
        let (wakes, woken) = mpsc::channel();
        let stop = Stop::default();
        stop.wake_with(move || wakes.send(()).unwrap());
        assert!(!stop.is_asked() && woken.try_recv().is_err());
        stop.clone().ask();
        assert!(stop.is_asked() && woken.try_recv().is_ok());
    }

    #[test]
    fn wait_sleeps_until_a_request() {
        let stop = Stop::default();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| stop.wait());
            stop.ask();
            waiter.join().unwrap();
        });
        stop.wait();
    }

    #[test]
    fn a_wake_function_registered_after_the_request_is_called_at_once() {
        let (wakes, woken) = mpsc::channel();
        let stop = Stop::default();
        stop.ask();
        stop.wake_with(move || wakes.send(()).unwrap());
        assert!(woken.try_recv().is_ok());
    }
}
