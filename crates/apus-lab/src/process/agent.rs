//! What does the parent hold of an agent?

use std::io::{self, BufReader, Write};
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::body::{Body, Embodied};
use super::lines::{Order, Report, Task, read_line, write_line};
use crate::error::{Doing, Error};

/// How long an agent may take to be ready, or to report after it was stopped. Ours: a hundred times
/// what it takes on a busy machine; this only ends what would hang for ever.
const PATIENCE: Duration = Duration::from_secs(20);

/// A side of an experiment at work. Dropping it ends it.
pub struct Agent {
    name: String,
    /// Its standard input; `None` once it is to end.
    to_agent: Option<Box<dyn Write + Send>>,
    /// What it said; disconnected at its end.
    reports: Receiver<io::Result<Report>>,
    body: Body,
}

impl Agent {
    /// Hands the task over.
    pub(super) fn begin(embodied: Embodied, task: Task) -> Result<Self, Error> {
        let Embodied { body, to_agent, from_agent } = embodied;
        let (sender, reports) = mpsc::channel();
        thread::spawn(move || {
            let mut lines = BufReader::new(from_agent);
            while let Some(report) = read_line(&mut lines).transpose() {
                let broken = report.is_err();
                if sender.send(report).is_err() || broken {
                    return;
                }
            }
        });
        let mut agent = Self { name: task.name.clone(), to_agent: Some(to_agent), reports, body };
        agent.order(&Order::Task(task))?;
        Ok(agent)
    }

    /// Waits until the agent is ready and tells where it listens.
    ///
    /// # Errors
    ///
    /// It failed instead.
    pub fn address(&mut self) -> Result<SocketAddr, Error> {
        match self.hear(PATIENCE)? {
            Report::Ready { address } => Ok(address),
            Report::Failed(why) => Err(self.failed(why)),
            Report::Done(_) => Err(self.failed("done before it was ready".to_owned())),
        }
    }

    /// Asks the agent to come to an end, and waits for its result.
    ///
    /// # Errors
    ///
    /// It failed instead.
    pub fn stop<T: DeserializeOwned>(mut self) -> Result<T, Error> {
        self.order(&Order::Stop)?;
        self.result(Duration::ZERO)
    }

    /// Waits for the result of an agent that comes to an end by itself after about `duration`.
    ///
    /// # Errors
    ///
    /// It failed instead, or takes far longer than that.
    pub fn result<T: DeserializeOwned>(mut self, duration: Duration) -> Result<T, Error> {
        match self.hear(duration + PATIENCE)? {
            Report::Done(value) => serde_json::from_value(value)
                .map_err(|error| self.failed(format!("an unexpected result: {error}"))),
            Report::Failed(why) => Err(self.failed(why)),
            Report::Ready { .. } => Err(self.failed("ready a second time".to_owned())),
        }
    }

    fn order(&mut self, order: &Order) -> Result<(), Error> {
        let to_agent = self.to_agent.as_mut().expect("taken in drop only");
        match write_line(&mut **to_agent, order) {
            Ok(()) => Ok(()),
            // It ended; what it said before tells more than a broken pipe.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(error).doing(|| format!("talk to {}", self.name)),
        }
    }

    fn hear(&mut self, patience: Duration) -> Result<Report, Error> {
        match self.reports.recv_timeout(patience) {
            Ok(Ok(report)) => Ok(report),
            Ok(Err(error)) => Err(self.failed(format!("said something strange: {error}"))),
            Err(RecvTimeoutError::Timeout) => {
                Err(self.failed(format!("no answer for {} s", patience.as_secs())))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let how = self.body.how_it_ended();
                Err(self.failed(how))
            }
        }
    }

    fn failed(&self, said: String) -> Error {
        Error::Agent { agent: self.name.clone(), said }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.to_agent.take());
        self.body.end_now();
    }
}
