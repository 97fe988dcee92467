//! Rotation: rereads keys and certificates when their files change, and logs failed handshakes.

use super::handle::SealHandle;
use super::refusals::RefusalLog;
use apus_process::Owner;
use apus_seal::Negotiator;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Interval between two checks of the files. Chosen by us: a check costs five system calls, and
/// rotations by a timer or an orchestrator are not urgent.
pub const WATCH_INTERVAL: Duration = Duration::from_secs(2);

/// Number of checks, a minute's worth, after which peers are checked even if no file has changed,
/// because certificates expire.
const CHECKS_PER_RECHECK: u32 = 30;

/// A thread that watches files while this value lives.
#[derive(Debug)]
pub struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    owner: Owner,
}

impl Watch {
    /// Starts the thread `apus-keys`. It calls `reload` every `interval`, which returns the
    /// negotiator to use from then on, or the reason why the files cannot be used. The reason is
    /// passed to `warn`, and the present negotiator stays. Log lines about clients whose handshakes
    /// failed are passed to `warn` as well.
    ///
    /// # Errors
    ///
    /// The system refuses the thread.
    pub fn start(
        handle: Arc<SealHandle>,
        interval: Duration,
        mut reload: impl FnMut() -> Option<Result<Arc<dyn Negotiator>, String>> + Send + 'static,
        warn: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = thread::Builder::new().name("apus-keys".into()).spawn(move || {
            let (mut checks, mut refusals) = (0, RefusalLog::default());
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                checks += 1;
                match reload() {
                    Some(Ok(negotiator)) => {
                        handle.replace_negotiator(negotiator);
                    }
                    Some(Err(reason)) => warn(&reason),
                    None if checks % CHECKS_PER_RECHECK == 0 => {
                        handle.recheck();
                    }
                    None => {}
                }
                refusals.lines(handle.take_refusals()).iter().for_each(|line| warn(line));
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread), owner: Owner::current() })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.owner.is_current() {
            // A child of a fork has no such thread: it can neither end it nor detach it.
            std::mem::forget((self.stop.take(), self.thread.take()));
            return;
        }
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
