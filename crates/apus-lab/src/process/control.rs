//! How does an agent's work reach its parent?

use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::thread;

use super::lines::{Order, Report, Task, read_line, write_line};
use super::{Runner, Stop};
use crate::error::{Doing, Error};
use crate::machine;

/// An agent's line to its parent.
pub struct Control {
    to_parent: Box<dyn Write + Send>,
    stop: Stop,
}

impl Control {
    /// Tells the parent that clients may come to `address`.
    ///
    /// # Errors
    ///
    /// The parent is gone.
    pub fn ready(&mut self, address: SocketAddr) -> Result<(), Error> {
        self.say(&Report::Ready { address })
    }

    /// The parent's request to come to an end.
    #[must_use]
    pub const fn stop(&self) -> &Stop {
        &self.stop
    }

    fn say(&mut self, report: &Report) -> Result<(), Error> {
        write_line(&mut *self.to_parent, report).doing(|| "report to the parent".to_owned())
    }
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
    let first = read_line(&mut *from_parent).doing(|| "read the task".to_owned())?;
    let Some(Order::Task(task)) = first else {
        return Err(Error::Peer("an agent's first line is its task".to_owned()));
    };
    let mut control = Control { to_parent, stop: Stop::default() };
    let stop = control.stop.clone();
    thread::spawn(move || listen(&mut *from_parent, &stop, orphaned));
    let report = match run(&task, &mut control, runner) {
        Ok(report) => report,
        Err(error) => Report::Failed(error.to_string()),
    };
    control.say(&report)
}

fn run(task: &Task, control: &mut Control, runner: Runner) -> Result<Report, Error> {
    if let Some(core) = task.core {
        machine::pin(core)?;
    }
    runner(task, control).map(Report::Done)
}

/// Waits for the end: of the task, or of the parent.
fn listen(from_parent: &mut dyn BufRead, stop: &Stop, orphaned: fn()) {
    while let Ok(Some(order)) = read_line(from_parent) {
        if let Order::Stop = order {
            stop.ask();
        }
    }
    if !stop.is_asked() {
        orphaned();
        stop.ask();
    }
}
