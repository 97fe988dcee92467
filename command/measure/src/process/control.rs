//! Agent's connection to its parent.

use std::io::{self, BufRead, Write};
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;

use rustix::process::{Signal, set_parent_process_death_signal};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::protocol::{AgentMessage, MAX_LINE, ParentMessage, Task, read_line, write_line};
use super::stop::Stop;
use crate::error::{Doing, Error};
use crate::{clock, machine};

/// The work of a [`Task`]; returns its result.
pub type Runner = fn(&Task, &mut Control) -> Result<Value, Error>;

/// A kind of task and the function that does it.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Value of [`Task::job`].
    pub name: &'static str,
    /// The work.
    pub run: Runner,
}

/// Runs the job named by the task.
///
/// # Errors
///
/// Errors of the work, or no job has the name.
pub fn run_job(jobs: &[Job], task: &Task, control: &mut Control) -> Result<Value, Error> {
    match jobs.iter().find(|job| job.name == task.job) {
        Some(job) => (job.run)(task, control),
        None => Err(Error::Peer(format!("no job is named `{}`", task.job))),
    }
}

/// Output to the parent, shared by the work and the listener.
type ToParent = Mutex<Box<dyn Write + Send>>;

/// Connection of an agent's work to its parent.
pub struct Control {
    to_parent: Arc<ToParent>,
    prepares: Receiver<Value>,
    begins: Receiver<Begin<Value>>,
    stop: Stop,
    /// Whether the parent has the result.
    reported: bool,
}

/// The order to start, with details that exist only when all agents are ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begin<T> {
    /// Parameters defined by the job, for example the addresses of the others.
    pub details: T,
    /// Common start of all agents, in nanoseconds of this host's [`clock::now`]. It is in the
    /// future unless this host or the path to it is extremely slow.
    pub at: u64,
}

impl Control {
    /// Reports to the parent that others may connect to `address`.
    ///
    /// # Errors
    ///
    /// The parent has ended.
    pub fn ready(&mut self, address: SocketAddr) -> Result<(), Error> {
        send(&self.to_parent, &AgentMessage::Ready { address })
    }

    /// Reports the result to the parent before the work ends, because others may still need this
    /// agent. The work's return value is then not reported.
    ///
    /// # Errors
    ///
    /// The parent has ended.
    pub fn report(&mut self, result: Value) -> Result<(), Error> {
        self.reported = true;
        send(&self.to_parent, &AgentMessage::Done(result))
    }

    /// Waits for the order to prepare for the start, for example by connecting to the others. It
    /// arrives once, after [`Control::ready`], if the parent calls
    /// [`Crew::prepare`](super::Crew::prepare). The agent replies with [`Control::prepared`].
    ///
    /// # Errors
    ///
    /// The parent requested a stop instead, or has ended; or the details are not a `T`.
    pub fn prepare<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        let Ok(details) = self.prepares.recv() else { return Err(stopped()) };
        serde_json::from_value(details)
            .map_err(|error| Error::Peer(format!("an unexpected order to prepare: {error}")))
    }

    /// Reports to the parent that the agent can start.
    ///
    /// # Errors
    ///
    /// The parent has ended.
    pub fn prepared(&mut self) -> Result<(), Error> {
        send(&self.to_parent, &AgentMessage::Prepared)
    }

    /// Waits for the order to start. It arrives once, after [`Control::ready`].
    ///
    /// # Errors
    ///
    /// The parent requested a stop instead, or has ended; or the details are not a `T`.
    pub fn begin<T: DeserializeOwned>(&mut self) -> Result<Begin<T>, Error> {
        let Ok(Begin { details, at }) = self.begins.recv() else { return Err(stopped()) };
        let details = serde_json::from_value(details)
            .map_err(|error| Error::Peer(format!("an unexpected order to begin: {error}")))?;
        Ok(Begin { details, at })
    }

    /// Ends this process (SIGKILL) when the thread that started it ends, even while the process is
    /// paused ([`Agent::pause`](super::Agent::pause)): a paused process cannot detect the end of
    /// its input.
    ///
    /// # Errors
    ///
    /// The system refuses it.
    pub fn end_with_parent(&self) -> Result<(), Error> {
        let set = set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from);
        set.doing(|| "end with the parent".to_owned())
    }

    /// Returns the parent's request to stop.
    #[must_use]
    pub const fn stop(&self) -> &Stop {
        &self.stop
    }
}

fn stopped() -> Error {
    Error::Peer("stopped before it could begin".to_owned())
}

fn send(to_parent: &ToParent, report: &AgentMessage) -> Result<(), Error> {
    let mut to_parent = to_parent.lock().unwrap_or_else(PoisonError::into_inner);
    write_line(&mut **to_parent, report).doing(|| "report to the parent".to_owned())
}

/// Runs an agent: reads the task, does the work, reports the result.
///
/// `orphaned` is called if the parent ends without a stop request.
pub(super) fn run_agent(
    mut from_parent: Box<dyn BufRead + Send>,
    to_parent: Box<dyn Write + Send>,
    runner: Runner,
    orphaned: fn(),
) -> Result<(), Error> {
    let first = read_line(&mut *from_parent, MAX_LINE).doing(|| "read the task".to_owned())?;
    let Some(ParentMessage::Task(task)) = first else {
        return Err(Error::Peer("an agent's first line is its task".to_owned()));
    };
    let (prepare, prepares) = mpsc::channel();
    let (begin, begins) = mpsc::channel();
    let to_parent = Arc::new(Mutex::new(to_parent));
    let listener = Listener {
        // Weak, so that the parent sees the end of the output although the listener still reads.
        to_parent: Arc::downgrade(&to_parent),
        orders: Some((prepare, begin)),
        stop: Stop::default(),
    };
    let stop = listener.stop.clone();
    let mut control = Control { to_parent, prepares, begins, stop, reported: false };
    thread::spawn(move || listener.listen(&mut *from_parent, orphaned));
    let report = match run(&task, &mut control, runner) {
        Ok(report) => report,
        Err(error) => AgentMessage::Failed(error.to_string()),
    };
    if control.reported {
        return Ok(());
    }
    send(&control.to_parent, &report)
}

fn run(task: &Task, control: &mut Control, runner: Runner) -> Result<AgentMessage, Error> {
    if let Some(core) = task.core {
        machine::pin(core)?;
    }
    runner(task, control).map(AgentMessage::Done)
}

/// Reads the parent's messages while the work runs.
struct Listener {
    to_parent: Weak<ToParent>,
    /// Orders to prepare and to start; `None` once none can follow.
    orders: Option<(Sender<Value>, Sender<Begin<Value>>)>,
    stop: Stop,
}

impl Listener {
    /// Reads until the parent closes the agent's input.
    fn listen(mut self, from_parent: &mut dyn BufRead, orphaned: fn()) {
        while let Ok(Some(order)) = read_line(from_parent, MAX_LINE) {
            match order {
                ParentMessage::Clock { asked } => {
                    let Some(to_parent) = self.to_parent.upgrade() else { continue };
                    // The next read detects a parent that has ended.
                    let _ = send(&to_parent, &AgentMessage::Clock { asked, now: clock::now() });
                }
                ParentMessage::Prepare(details) => {
                    if let Some((prepares, _)) = &self.orders {
                        // Work that does not wait for the order ignores it.
                        let _ = prepares.send(details);
                    }
                }
                ParentMessage::Begin { details, at } => {
                    if let Some((_, begins)) = self.orders.take() {
                        // As above.
                        let _ = begins.send(Begin { details, at });
                    }
                }
                ParentMessage::Stop => {
                    self.orders = None;
                    self.stop.ask();
                }
                // Only the first line is a task; the parent never sends a second task.
                ParentMessage::Task(_) => {}
            }
        }
        self.orders = None;
        if !self.stop.is_asked() {
            orphaned();
            self.stop.ask();
        }
    }
}
