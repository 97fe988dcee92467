//! How does an agent's work reach its parent?

use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::lines::{LONGEST, Order, Report, Task, read_line, write_line};
use super::{Runner, Stop};
use crate::error::{Doing, Error};
use crate::{clock, machine};

/// The way to the parent, which the work and the listener share.
type ToParent = Mutex<Box<dyn Write + Send>>;

/// An agent's line to its parent.
pub struct Control {
    to_parent: Arc<ToParent>,
    begins: Receiver<Begin<Value>>,
    stop: Stop,
    /// Whether the result is known to the parent.
    reported: bool,
}

/// The order to begin: what the parent knew only once all agents were ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begin<T> {
    /// The particulars, as the job understands them: where the others listen, for instance.
    pub details: T,
    /// The common start of all agents, in nanoseconds of this host's [`clock::now`]. It lies in the
    /// future, unless this host or the way to it is slow beyond all measure.
    pub at: u64,
}

impl Control {
    /// Tells the parent that others may come to `address`.
    ///
    /// # Errors
    ///
    /// The parent is gone.
    pub fn ready(&mut self, address: SocketAddr) -> Result<(), Error> {
        say(&self.to_parent, &Report::Ready { address })
    }

    /// Tells the parent the result before the work is over: others may still need this agent. What the work
    /// gives in the end is not told then.
    ///
    /// # Errors
    ///
    /// The parent is gone.
    pub fn report(&mut self, result: Value) -> Result<(), Error> {
        self.reported = true;
        say(&self.to_parent, &Report::Done(result))
    }

    /// Waits for the order to begin. It comes after [`Control::ready`], once.
    ///
    /// # Errors
    ///
    /// The parent asked to stop instead, or is gone; or the details are not a `T`.
    pub fn begin<T: DeserializeOwned>(&mut self) -> Result<Begin<T>, Error> {
        let Ok(Begin { details, at }) = self.begins.recv() else {
            return Err(Error::Peer("stopped before it could begin".to_owned()));
        };
        let details = serde_json::from_value(details)
            .map_err(|error| Error::Peer(format!("an unexpected order to begin: {error}")))?;
        Ok(Begin { details, at })
    }

    /// The parent's request to come to an end.
    #[must_use]
    pub const fn stop(&self) -> &Stop {
        &self.stop
    }
}

fn say(to_parent: &ToParent, report: &Report) -> Result<(), Error> {
    let mut to_parent = to_parent.lock().unwrap_or_else(PoisonError::into_inner);
    write_line(&mut **to_parent, report).doing(|| "report to the parent".to_owned())
}

/// Lives an agent's life: takes the task, does it, reports.
///
/// `orphaned` is called when the parent is gone before it asked to stop.
pub(super) fn live(
    mut from_parent: Box<dyn BufRead + Send>,
    to_parent: Box<dyn Write + Send>,
    runner: Runner,
    orphaned: fn(),
) -> Result<(), Error> {
    let first = read_line(&mut *from_parent, LONGEST).doing(|| "read the task".to_owned())?;
    let Some(Order::Task(task)) = first else {
        return Err(Error::Peer("an agent's first line is its task".to_owned()));
    };
    let (sender, begins) = mpsc::channel();
    let to_parent = Arc::new(Mutex::new(to_parent));
    let listener = Listener {
        // Weak: the parent sees the end of this work even though the listener still listens.
        to_parent: Arc::downgrade(&to_parent),
        begins: Some(sender),
        stop: Stop::default(),
    };
    let stop = listener.stop.clone();
    let mut control = Control { to_parent, begins, stop, reported: false };
    thread::spawn(move || listener.listen(&mut *from_parent, orphaned));
    let report = match run(&task, &mut control, runner) {
        Ok(report) => report,
        Err(error) => Report::Failed(error.to_string()),
    };
    if control.reported {
        return Ok(());
    }
    say(&control.to_parent, &report)
}

fn run(task: &Task, control: &mut Control, runner: Runner) -> Result<Report, Error> {
    if let Some(core) = task.core {
        machine::pin(core)?;
    }
    runner(task, control).map(Report::Done)
}

/// Hears the parent while the work goes on.
struct Listener {
    to_parent: Weak<ToParent>,
    /// `None` once there will be no order to begin any more.
    begins: Option<Sender<Begin<Value>>>,
    stop: Stop,
}

impl Listener {
    /// Waits for the end: of the task, or of the parent.
    fn listen(mut self, from_parent: &mut dyn BufRead, orphaned: fn()) {
        while let Ok(Some(order)) = read_line(from_parent, LONGEST) {
            match order {
                Order::Clock { asked } => {
                    let Some(to_parent) = self.to_parent.upgrade() else { continue };
                    // A parent that is gone is noticed by the next reading.
                    let _ = say(&to_parent, &Report::Clock { asked, now: clock::now() });
                }
                Order::Begin { details, at } => {
                    if let Some(begins) = self.begins.take() {
                        // Work that does not wait for it needs no order to begin.
                        let _ = begins.send(Begin { details, at });
                    }
                }
                Order::Stop => {
                    self.begins = None;
                    self.stop.ask();
                }
                // Only the first line is one; the parent has no second.
                Order::Task(_) => {}
            }
        }
        self.begins = None;
        if !self.stop.is_asked() {
            orphaned();
            self.stop.ask();
        }
    }
}
