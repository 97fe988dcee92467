//! The streams of a server, by client and number, and the dispatch of clients' steps to them.
//!
//! The numbers of streams and of early steps are bounded; excess is refused with a status.

use super::incoming::RequestPart;
use super::response::Pending;
use super::state::ServerState;
use crate::code::Code;
use crate::envelope::{StreamCommand, StreamHead};
use crate::limits::MAX_AHEAD;
use crate::status::Status;
use bytes::Bytes;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, mpsc};

/// A PULL without a response yet.
pub(super) struct Pull {
    pub(super) number: u32,
    pub(super) pending: Pending,
}

/// Receivers of a stream's steps.
#[derive(Clone)]
struct Stream {
    parts: Option<mpsc::Sender<RequestPart>>,
    pulls: mpsc::Sender<Pull>,
    cancel: Arc<Notify>,
}

/// The streams of a server.
pub(super) struct Streams {
    table: Mutex<Table>,
    max_streams: usize,
    max_streams_per_host: usize,
    state: Arc<ServerState>,
}

struct Table {
    next: u64,
    streams: HashMap<(SocketAddr, u64), Stream>,
    per_host: HashMap<IpAddr, usize>,
}

/// A live stream: the steps that its task receives. Dropping this value removes the stream.
pub(super) struct Opened {
    table: Arc<Streams>,
    peer: SocketAddr,
    pub(super) id: u64,
    pub(super) pulls: mpsc::Receiver<Pull>,
    pub(super) cancel: Arc<Notify>,
}

impl Streams {
    pub(super) fn new(
        max_streams: usize,
        max_streams_per_host: usize,
        state: Arc<ServerState>,
    ) -> Self {
        let (streams, per_host) = (HashMap::new(), HashMap::new());
        let table = Mutex::new(Table { next: fastrand::u64(..), streams, per_host });
        Self { table, max_streams, max_streams_per_host, state }
    }

    /// Opens a stream for a client. With `parts`, its PUSHes are sent there.
    pub(super) fn open(
        self: &Arc<Self>,
        peer: SocketAddr,
        parts: Option<mpsc::Sender<RequestPart>>,
    ) -> Result<Opened, Status> {
        let mut table = self.lock();
        let of_host = table.per_host.get(&peer.ip()).copied().unwrap_or(0);
        if table.streams.len() >= self.max_streams || of_host >= self.max_streams_per_host {
            let message = "the server has as many streams as it may have; end some";
            return Err(Status::not_executed(Code::ResourceExhausted, message));
        }
        let id = table.next;
        table.next = id.wrapping_add(1);
        let (sender, pulls) = mpsc::channel(MAX_AHEAD as usize);
        let cancel = Arc::new(Notify::new());
        let stream = Stream { parts, pulls: sender, cancel: cancel.clone() };
        table.streams.insert((peer, id), stream);
        *table.per_host.entry(peer.ip()).or_default() += 1;
        Ok(Opened { table: self.clone(), peer, id, pulls, cancel })
    }

    /// Handles a step of a client.
    pub(super) async fn step(
        &self,
        peer: SocketAddr,
        head: StreamHead,
        data: Bytes,
        request: apus::tokio::Request,
    ) {
        let echo = match head.command {
            StreamCommand::Push { number, .. } | StreamCommand::Pull { number } => number,
            StreamCommand::Cancel => 0,
        };
        let pending = Pending::new(request, echo, self.state.clone());
        let Some(stream) = self.lock().streams.get(&(peer, head.stream)).cloned() else {
            let message =
                "the server has no such stream: it has ended, or the server was restarted";
            return pending.fail(Status::new(Code::Aborted, message)).await;
        };
        match (head.command, stream.parts) {
            (StreamCommand::Cancel, _) => {
                stream.cancel.notify_one();
                pending.accept().await;
            }
            (StreamCommand::Pull { number }, _) => {
                let sent = stream.pulls.try_send(Pull { number, pending });
                refuse(sent, |pull| pull.pending).await;
            }
            (StreamCommand::Push { number, end }, Some(parts)) => {
                let sent = parts.try_send(RequestPart { number, end, data, pending });
                refuse(sent, |part| part.pending).await;
            }
            (StreamCommand::Push { .. }, None) => {
                let message = "the request has ended already";
                pending.fail(Status::new(Code::InvalidArgument, message)).await;
            }
        }
    }

    /// Returns the number of streams.
    pub(super) fn len(&self) -> usize {
        self.lock().streams.len()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers a step that its stream did not accept.
async fn refuse<T>(
    sent: Result<(), mpsc::error::TrySendError<T>>,
    pending: impl FnOnce(T) -> Pending,
) {
    match sent {
        Ok(()) => {}
        Err(mpsc::error::TrySendError::Full(step)) => {
            let message = format!("more than {MAX_AHEAD} steps of the stream are outstanding");
            pending(step).fail(Status::new(Code::ResourceExhausted, message)).await;
        }
        // The handler reads no more of the request: the client may stop sending.
        Err(mpsc::error::TrySendError::Closed(step)) => {
            let message = "the handler takes no more of the request";
            pending(step).fail(Status::new(Code::Cancelled, message)).await;
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let mut table = self.table.lock();
        table.streams.remove(&(self.peer, self.id));
        if let Some(count) = table.per_host.get_mut(&self.peer.ip()) {
            *count -= 1;
            if *count == 0 {
                table.per_host.remove(&self.peer.ip());
            }
        }
    }
}
