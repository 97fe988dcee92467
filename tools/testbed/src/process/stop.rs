//! How does a server that waits for packets learn that it is over?

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

/// Asks a server to come to an end. Clones are the same request.
///
/// A server that spins looks at [`Stop::is_asked`] whenever it finds nothing to do. One that sleeps
/// in the kernel is woken by what it left with [`Stop::wake_with`], a packet to itself for instance;
/// a timeout on its socket would cost time in every round trip that is measured.
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
    /// Whether it is over.
    #[inline]
    #[must_use]
    pub fn is_asked(&self) -> bool {
        // Relaxed: nothing else is read because of it.
        self.shared.asked.load(Ordering::Relaxed)
    }

    /// It is over.
    pub fn ask(&self) {
        self.shared.asked.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// What wakes the server up if it sleeps. Called once or more often after [`Stop::ask`], at once
    /// if that was before.
    pub fn wake_with(&self, wake: impl Fn() + Send + 'static) {
        // The lock orders this after or before `ask`'s `wake`: the flag or the function is seen.
        *self.shared.wake.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(wake));
        if self.is_asked() {
            self.wake();
        }
    }

    /// Sleeps until it is over, in place of what was left with [`Stop::wake_with`] before.
    pub fn wait(&self) {
        let (wakes, woken) = mpsc::channel();
        self.wake_with(move || {
            // It may be asked twice.
            let _ = wakes.send(());
        });
        // Fails when the request itself is gone.
        let _ = woken.recv();
    }

    fn wake(&self) {
        let wake = self.shared.wake.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wake) = &*wake {
            wake();
        }
    }
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
    fn asking_wakes_whoever_sleeps() {
        let (wakes, woken) = mpsc::channel();
        let stop = Stop::default();
        stop.wake_with(move || wakes.send(()).unwrap());
        assert!(!stop.is_asked() && woken.try_recv().is_err());
        stop.clone().ask();
        assert!(stop.is_asked() && woken.try_recv().is_ok());
    }

    #[test]
    fn who_waits_sleeps_until_somebody_asks() {
        let stop = Stop::default();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| stop.wait());
            stop.ask();
            waiter.join().unwrap();
        });
        stop.wait();
    }

    #[test]
    fn who_prepares_to_sleep_too_late_is_woken_at_once() {
        let (wakes, woken) = mpsc::channel();
        let stop = Stop::default();
        stop.ask();
        stop.wake_with(move || wakes.send(()).unwrap());
        assert!(woken.try_recv().is_ok());
    }
}
