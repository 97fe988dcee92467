//! A trial: requests over one receive path, in a fresh process.

use std::collections::HashMap;
use std::net::UdpSocket;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use apus::PollMode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::options::HandoffOptions;
use super::product;
use super::socket::{Counts, Order, Socket};
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::{Control, Spawner, Task};

/// The kind of task that [`agent`] does.
pub(crate) const JOB: &str = "lab handoff";

/// The path of a message to the thread that waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Path {
    /// The lab's path, with a number of receivers.
    Lab(Order, usize),
    /// apus with a dedicated engine and a number of receivers.
    Dedicated(usize),
    /// apus with a receiver that polls the network itself.
    SelfPolling,
}

impl Path {
    /// Numbers of receivers.
    const RECEIVERS: [usize; 3] = [1, 2, 4];

    /// Returns all paths, in the order of the report.
    pub(super) fn all() -> Vec<Self> {
        let lab = |order| Self::RECEIVERS.map(|receivers| Self::Lab(order, receivers));
        [lab(Order::PublishFirst), lab(Order::EnqueueFirst), Self::RECEIVERS.map(Self::Dedicated)]
            .into_iter()
            .flatten()
            .chain([Self::SelfPolling])
            .collect()
    }

    /// Returns the name in results.
    pub(super) fn name(self) -> String {
        match self {
            Self::Lab(Order::PublishFirst, receivers) => {
                format!("publish-first receivers={receivers}")
            }
            Self::Lab(Order::EnqueueFirst, receivers) => {
                format!("enqueue-first receivers={receivers}")
            }
            Self::Dedicated(receivers) => format!("apus receivers={receivers}"),
            Self::SelfPolling => "apus self-polling".to_owned(),
        }
    }
}

/// The details of an agent's task.
#[derive(Debug, Serialize, Deserialize)]
struct TrialTask {
    path: Path,
    messages: u64,
    poll: PollMode,
}

/// Longest time per request: a request and its reply take some tens of microseconds, a hundred
/// times more on a busy machine.
const LONGEST_REQUEST: Duration = Duration::from_millis(5);

/// Runs one trial in a fresh process.
pub(super) fn start(options: &HandoffOptions, path: Path, host: &Spawner) -> Result<Counts, Error> {
    let HandoffOptions { messages, poll, .. } = *options;
    let task = Task {
        name: path.name(),
        core: None,
        bind: None,
        job: JOB.to_owned(),
        details: json!(TrialTask { path, messages, poll }),
    };
    let most = u32::try_from(messages).unwrap_or(u32::MAX);
    host.start(task)?.result(LONGEST_REQUEST.saturating_mul(most))
}

/// Runs one trial in an agent.
pub(crate) fn agent(task: &Task, _control: &Control) -> Result<Value, Error> {
    let malformed = |error| Error::Peer(format!("a malformed task: {error}"));
    let details: TrialTask = serde_json::from_value(task.details.clone()).map_err(malformed)?;
    let TrialTask { path, messages, poll } = details;
    let counts = match path {
        Path::Lab(order, receivers) => lab(order, receivers, messages, poll),
        Path::Dedicated(receivers) => product::trial(Some(receivers), messages, poll),
        Path::SelfPolling => product::trial(None, messages, poll),
    }?;
    Ok(json!(counts))
}

/// Requests that a server keeps until their clients have acknowledged the responses. They have
/// their own lock, like each RPC of the module.
type Unacknowledged = Mutex<HashMap<u64, Vec<u8>>>;

/// Sends requests over a UDP socket: one thread takes them from the network, others answer them.
/// Returns the counters of the receive path.
fn lab(order: Order, receivers: usize, messages: u64, poll: PollMode) -> Result<Counts, Error> {
    let open = || UdpSocket::bind("127.0.0.1:0").doing(|| "open a UDP socket".to_owned());
    let (server, client) = (open()?, open()?);
    let connect = |one: &UdpSocket, other: &UdpSocket| one.connect(other.local_addr()?);
    connect(&server, &client)
        .and_then(|()| connect(&client, &server))
        .doing(|| "connect".to_owned())?;
    let socket = Socket::new(order, receivers);
    thread::scope(|scope| {
        for receiver in 0..receivers {
            let (socket, server) = (&socket, &server);
            scope.spawn(move || {
                while let Some(id) = socket.receive(receiver, &|notified| spin(poll, notified)) {
                    // A lost reply ends the client after its timeout.
                    let _ = server.send(&id.to_be_bytes());
                }
            });
        }
        scope.spawn(|| dispatch(&server, &socket));
        let asked = call(&client, messages, &socket);
        // An empty datagram ends the dispatcher, which ends the receivers.
        let ended = client.send(&[]).doing(|| "end the server".to_owned());
        if ended.is_err() {
            socket.close();
        }
        asked.and(ended.map(drop))
    })?;
    Ok(socket.counts())
}

/// Takes requests from the network and hands them over; each acknowledges the previous response.
fn dispatch(server: &UdpSocket, socket: &Socket) {
    let kept = Unacknowledged::default();
    let lock = || kept.lock().unwrap_or_else(PoisonError::into_inner);
    let mut packet = [0; 64];
    while let Ok(length @ 1..) = server.recv(&mut packet) {
        let id = u64::from_be_bytes(*packet.first_chunk().unwrap_or(&[0; 8]));
        lock().insert(id, packet[..length].to_vec());
        socket.deliver(id, || drop(lock().remove(&id.wrapping_sub(1))));
    }
    socket.close();
}

/// Sends one request after another, each when the previous reply has arrived and a receiver waits.
/// Between two hosts there is time for that; here a message without a waiting thread would not be
/// handed over at all.
fn call(client: &UdpSocket, messages: u64, socket: &Socket) -> Result<(), Error> {
    let lost = Some(Duration::from_secs(10));
    client.set_read_timeout(lost).doing(|| "set a timeout".to_owned())?;
    let (mut request, mut reply) = ([0; 64], [0; 8]);
    for id in 1..=messages {
        request[..8].copy_from_slice(&id.to_be_bytes());
        while !socket.is_awaited() {
            thread::yield_now();
        }
        client.send(&request).doing(|| "send a request".to_owned())?;
        client.recv(&mut reply).doing(|| format!("receive the reply to request {id}"))?;
    }
    Ok(())
}

/// Spins for the time of the poll mode, or until `done`.
fn spin(poll: PollMode, done: &dyn Fn() -> bool) {
    let began = Instant::now();
    while !done() && poll.spin_for().is_none_or(|limit| began.elapsed() < limit) {
        std::hint::spin_loop();
    }
}
