//! Rotation: reads keys and certificates again when their files change, and says which handshakes have failed.

use super::handle::SealHandle;
use super::refusals::RefusalLog;
use apus_seal::Negotiator;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between two checks of the files. Chosen by us: five system calls in it, and a rotation by a timer or an orchestrator is not in a
/// hurry.
pub const WATCH_INTERVAL: Duration = Duration::from_secs(2);

/// Checks of the files after which peers are checked again although nothing has changed: certificates expire. A minute.
const CHECKS_PER_RECHECK: u32 = 30;

/// A thread that watches files for as long as this value lives.
#[derive(Debug)]
pub struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts the thread `apus-keys`. `reload` is called every `interval`, and returns what is used from then on, or why what is in the
    /// files cannot be used: that is passed to `warn`, and what was used is kept. So are lines about clients whose handshakes have failed.
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
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
