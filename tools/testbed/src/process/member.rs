//! What does the parent hold of one agent?

use std::io::{self, BufReader, Write};
use std::mem;
use std::net::SocketAddr;
use std::sync::mpsc::Sender;
use std::thread;

use serde_json::Value;

use super::body::{Body, Embodied};
use super::lines::{LONGEST, Order, Report, Task, read_line, write_line};
use super::offset::Exchange;
use crate::clock;
use crate::error::{Doing, Error};

/// Something that an agent said.
pub(super) struct Heard {
    /// The agent's number in its crew.
    pub(super) who: usize,
    /// When the line had come, by this host's clock.
    at: u64,
    /// `None`: its output ended.
    what: io::Result<Option<Report>>,
}

impl Heard {
    /// Whether the agent says itself that it failed, and why.
    pub(super) const fn is_failure_in_words(&self) -> bool {
        matches!(self.what, Ok(Some(Report::Failed(_))))
    }
}

/// One agent of a crew. Dropping it ends it.
pub(super) struct Member {
    name: String,
    /// Its standard input; `None` once it is to end.
    to_agent: Option<Box<dyn Write + Send>>,
    body: Body,
    /// Where it listens, once it is ready.
    pub(super) address: Option<SocketAddr>,
    /// What came of its task.
    pub(super) result: Option<Value>,
    /// What it said about its clock.
    pub(super) exchanges: Vec<Exchange>,
    /// Its output ended: nothing more will be heard.
    pub(super) ended: bool,
}

impl Member {
    /// Hands the task over. What the agent says goes to `heard`, with the number `who`.
    pub(super) fn begin(
        embodied: Embodied,
        task: Task,
        who: usize,
        heard: Sender<Heard>,
    ) -> Result<Self, Error> {
        let Embodied { body, to_agent, from_agent } = embodied;
        thread::spawn(move || {
            let mut lines = BufReader::new(from_agent);
            loop {
                let what = read_line(&mut lines, LONGEST);
                let last = !matches!(what, Ok(Some(_)));
                if heard.send(Heard { who, at: clock::now(), what }).is_err() || last {
                    return;
                }
            }
        });
        let mut member = Self {
            name: task.name.clone(),
            to_agent: Some(to_agent),
            body,
            address: None,
            result: None,
            exchanges: Vec::new(),
            ended: false,
        };
        member.order(&Order::Task(task))?;
        Ok(member)
    }

    pub(super) fn order(&mut self, order: &Order) -> Result<(), Error> {
        let Some(to_agent) = self.to_agent.as_mut() else { return Ok(()) };
        match write_line(&mut **to_agent, order) {
            Ok(()) => Ok(()),
            // It ended; what it said before tells more than a broken pipe.
            Err(error) if gone(&error) => Ok(()),
            Err(error) => Err(error).doing(|| format!("talk to {}", self.name)),
        }
    }

    /// Takes note of something that it said.
    ///
    /// # Errors
    ///
    /// That it failed.
    pub(super) fn hear(&mut self, heard: Heard) -> Result<(), Error> {
        match heard.what {
            Ok(Some(Report::Ready { .. })) if self.address.is_some() => {
                Err(self.failed("ready a second time".to_owned()))
            }
            Ok(Some(Report::Ready { address })) => {
                self.address = Some(address);
                Ok(())
            }
            Ok(Some(Report::Clock { asked, now })) => {
                self.exchanges.push(Exchange { asked, theirs: now, answered: heard.at });
                Ok(())
            }
            Ok(Some(Report::Done(result))) => {
                self.result = Some(result);
                Ok(())
            }
            Ok(Some(Report::Failed(why))) => {
                self.ended = true;
                Err(self.failed(why))
            }
            Ok(Some(Report::Ended { how })) => self.end(|_| how),
            Ok(None) => self.end(Body::how_it_ended),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.end(|_| format!("said something strange: {error}"))
            }
            Err(error) => self.end(|_| format!("was lost: {error}")),
        }
    }

    /// Nothing more will be heard, which is a failure if nothing came of the task.
    fn end(&mut self, how: impl FnOnce(&mut Body) -> String) -> Result<(), Error> {
        if mem::replace(&mut self.ended, true) || self.result.is_some() {
            return Ok(());
        }
        let how = how(&mut self.body);
        Err(self.failed(how))
    }

    pub(super) fn failed(&self, said: String) -> Error {
        Error::Agent { agent: self.name.clone(), said }
    }

    /// Lets it see the end of its input, which ends it sooner or later.
    pub(super) fn hang_up(&mut self) {
        drop(self.to_agent.take());
    }
}

/// Whether an error says that the other side ended.
fn gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

impl Drop for Member {
    fn drop(&mut self) {
        self.hang_up();
        self.body.end_now();
    }
}
