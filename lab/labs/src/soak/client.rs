//! A client: keeps calls to every server outstanding, and checks and records their ends.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use apus::trace::saved_files;
use apus::{CallOptions, Closed, Completion, Endpoint};
use serde::{Deserialize, Serialize};

use super::heap;
use super::ledger::{ClientPages, Ending, Ledger};
use super::message::{Call, lengths};
use super::signals;
use super::transport::Transport;
use apus_testbed::clock;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::{Control, Stop};

/// Time within which a call must end. A pause of a process is longer.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// Time to wait for the end of the last calls. Chosen by us: five times their timeout, so that even
/// on a busy machine only a call that never ends is still outstanding.
const LAST_CALLS: Duration = Duration::from_secs(10);

/// Calls outstanding to each server.
const OUTSTANDING: usize = 16;

/// Time without calls to a server after a failure: some failures are immediate, and would repeat by
/// the million.
const AFTER_FAILURE: Duration = Duration::from_millis(10);

/// Longest wait for a completion between two checks for the stop order.
const WAIT: Duration = Duration::from_millis(10);

/// The instructions for a client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ClientTask {
    pub(super) transport: Transport,
    pub(super) ledger: PathBuf,
    pub(super) life: u32,
    pub(super) seed: u64,
    pub(super) at: Ipv4Addr,
    pub(super) servers: Vec<SocketAddr>,
    pub(super) traces: Option<PathBuf>,
}

/// The report of a client at its end.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ClientReport {
    /// Calls without an end.
    pub(super) never_ended: u64,
    /// Calls that went through shared memory.
    pub(super) through_memory: u64,
    /// Time traces written.
    pub(super) traces: u64,
    /// Why the last trace was not written.
    pub(super) trace_problem: Option<String>,
}

/// Calls to one server.
struct Lane {
    server: SocketAddr,
    pages: ClientPages,
    outstanding: usize,
    /// Time before which no call is sent.
    not_before: Instant,
}

struct Client<'a> {
    task: &'a ClientTask,
    endpoint: Endpoint,
    lanes: Vec<Lane>,
    /// The server and the content of each outstanding call.
    calls: HashMap<u64, (usize, Call)>,
    next: u64,
}

/// Calls until it is stopped.
pub(super) fn drive(task: &ClientTask, control: &mut Control) -> Result<ClientReport, Error> {
    control.end_with_parent()?;
    signals::ignore_interrupts()?;
    let endpoint = task.transport.open(task.at, 0, false, task.traces.as_deref())?;
    let ledger = Ledger::at(&task.ledger);
    heap::record(&ledger, task.life).doing(|| "record the heap".to_owned())?;
    let lane = |(index, server): (usize, &SocketAddr)| {
        let pages = ledger.client(task.life, index).doing(|| "write the ledger".to_owned())?;
        Ok(Lane { server: *server, pages, outstanding: 0, not_before: Instant::now() })
    };
    let lanes = task.servers.iter().enumerate().map(lane).collect::<Result<_, Error>>()?;
    control.ready(endpoint.local_addr())?;
    let mut client = Client { task, endpoint, lanes, calls: HashMap::new(), next: 0 };
    client.run(control.stop())?;
    let saved = saved_files();
    Ok(ClientReport {
        never_ended: client.calls.len() as u64,
        through_memory: client.endpoint.metrics().engine.local_calls,
        traces: saved.files,
        trace_problem: saved.problem,
    })
}

impl Client<'_> {
    fn run(&mut self, stop: &Stop) -> Result<(), Error> {
        while !stop.is_asked() {
            for lane in 0..self.lanes.len() {
                self.send(lane)?;
            }
            self.receive()?;
        }
        let stopped = Instant::now();
        while !self.calls.is_empty() && stopped.elapsed() < LAST_CALLS {
            self.receive()?;
        }
        Ok(())
    }

    /// Sends calls to a server until enough are outstanding.
    fn send(&mut self, index: usize) -> Result<(), Error> {
        let task = self.task;
        while self.lanes[index].outstanding < OUTSTANDING
            && self.lanes[index].not_before <= Instant::now()
        {
            let number = self.next;
            self.next += 1;
            let least = task.transport.shortest_reply();
            let (length, reply) = lengths(task.seed, task.life, number, least);
            let call = Call { client: task.life, number, reply };
            let server = self.lanes[index].server;
            let options = CallOptions::new().timeout(CALL_TIMEOUT);
            match self.endpoint.send_with(server, call.request(length), number, options) {
                Ok(_) => {
                    self.lanes[index].outstanding += 1;
                    self.calls.insert(number, (index, call));
                }
                Err(error) => self.end(index, number, Ending::unsent(&error))?,
            }
        }
        Ok(())
    }

    /// Takes completions, after a wait for the first.
    fn receive(&mut self) -> Result<(), Error> {
        let closed = |error: Closed| Error::endpoint("wait for replies".to_owned(), error);
        let mut next = self.endpoint.recv_completion_timeout(WAIT).map_err(closed)?;
        while let Some(Completion { cookie, result, .. }) = next {
            let Some((lane, call)) = self.calls.remove(&cookie) else {
                return Err(Error::Peer(format!("call {cookie} ended a second time")));
            };
            self.lanes[lane].outstanding -= 1;
            let ending = match result {
                Ok(reply) if call.is_reply(&reply) => Ending::Answered,
                Ok(_) => Ending::WrongReply,
                Err(error) => Ending::of_call(&error),
            };
            self.end(lane, call.number, ending)?;
            next = self.endpoint.try_recv_completion().map_err(closed)?;
        }
        Ok(())
    }

    fn end(&mut self, lane: usize, number: u64, ending: Ending) -> Result<(), Error> {
        let lane = &mut self.lanes[lane];
        if matches!(ending, Ending::Failed { .. }) {
            lane.not_before = Instant::now() + AFTER_FAILURE;
        }
        lane.pages.end(number, ending, clock::now()).doing(|| "write the ledger".to_owned())
    }
}
