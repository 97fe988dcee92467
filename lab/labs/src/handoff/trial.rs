//! A trial: requests over one receive path, in a process of its own.

use std::collections::HashMap;
use std::net::UdpSocket;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use apus::PollMode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::socket::{Counts, Order, Socket};
use super::{JOB, Options, product};
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::{Control, Spawner, Task};

/// The way of a message to the thread that waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Path {
    /// The lab's, with a number of receivers.
    Lab(Order, usize),
    /// The product's, with a dedicated engine and a number of receivers.
    Dedicated(usize),
    /// The product's, with a receiver that polls the network itself.
    SelfPolling,
}

impl Path {
    /// Numbers of receivers.
    const RECEIVERS: [usize; 3] = [1, 2, 4];

    /// Returns all of them.
    pub(super) fn all() -> Vec<Self> {
        let lab = |order| Self::RECEIVERS.map(|receivers| Self::Lab(order, receivers));
        [lab(Order::PublishFirst), lab(Order::EnqueueFirst), Self::RECEIVERS.map(Self::Dedicated)]
            .into_iter()
            .flatten()
            .chain([Self::SelfPolling])
            .collect()
    }

    /// As results show it.
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
struct Details {
    path: Path,
    messages: u64,
    poll: PollMode,
}

/// Longest time that a trial may take: a request and its reply take some tens of microseconds, and a busy machine is
/// a hundred times slower.
const LONGEST_REQUEST: Duration = Duration::from_millis(5);

/// Returns one trial in a process of its own.
pub(super) fn start(options: &Options, path: Path, host: &Spawner) -> Result<Counts, Error> {
    let Options { messages, poll, .. } = *options;
    let task = Task {
        name: path.name(),
        core: None,
        bind: None,
        job: JOB.to_owned(),
        details: json!(Details { path, messages, poll }),
    };
    let most = u32::try_from(messages).unwrap_or(u32::MAX);
    host.start(task)?.result(LONGEST_REQUEST.saturating_mul(most))
}

/// Does one trial.
pub(super) fn agent(task: &Task, _control: &Control) -> Result<Value, Error> {
    let malformed = |error| Error::Peer(format!("a malformed task: {error}"));
    let details: Details = serde_json::from_value(task.details.clone()).map_err(malformed)?;
    let Details { path, messages, poll } = details;
    let counts = match path {
        Path::Lab(order, receivers) => lab(order, receivers, messages, poll),
        Path::Dedicated(receivers) => product::trial(Some(receivers), messages, poll),
        Path::SelfPolling => product::trial(None, messages, poll),
    }?;
    Ok(json!(counts))
}

/// The state of a request that a server keeps until its client has acknowledged the response. It has its own lock, as
/// each RPC of the module has.
type Unacknowledged = Mutex<HashMap<u64, Vec<u8>>>;

/// Returns the requests over a UDP socket: one thread takes them from the network, others answer them.
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
                    // A reply that cannot be sent ends the client, which waits for it no longer than it must.
                    let _ = server.send(&id.to_be_bytes());
                }
            });
        }
        scope.spawn(|| dispatch(&server, &socket));
        let asked = ask(&client, messages, &socket);
        // An empty datagram ends the dispatcher, and that the receivers.
        let ended = client.send(&[]).doing(|| "end the server".to_owned());
        if ended.is_err() {
            socket.close();
        }
        asked.and(ended.map(drop))
    })?;
    Ok(socket.counts())
}

/// Takes requests from the network and hands them over; each acknowledges the response before it.
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

/// Sends one request after the other, each when the previous reply has arrived and a receiver waits: between two
/// hosts it has the time to. A message without a waiting thread is not handed over at all.
fn ask(client: &UdpSocket, messages: u64, socket: &Socket) -> Result<(), Error> {
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

/// Spins as long as the policy says, or until `done`.
fn spin(poll: PollMode, done: &dyn Fn() -> bool) {
    let began = Instant::now();
    while !done() && poll.spin_for().is_none_or(|limit| began.elapsed() < limit) {
        std::hint::spin_loop();
    }
}
