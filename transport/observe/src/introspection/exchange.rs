//! Exchanges: one request to several processes at once, and their responses.
//!
//! No call here blocks on one process: a stopped process accepts no connection and no request, and
//! after some requests the queue of its socket is full. All responses share one time limit, so a
//! silent process delays the others by that limit, regardless of the number of silent ones.

use crate::introspection::connection::{self, is_descriptor_limit};
use crate::introspection::process::{Error, Process};
use crate::introspection::process_state::ProcessState;
use apus_local::{Credentials, PeerPolicy};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::process::geteuid;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Returns whether a process listens on its socket.
pub(super) fn is_listening(process: &Process) -> bool {
    match process.connect() {
        Ok(_) => true,
        Err(error) => error.kind() == io::ErrorKind::WouldBlock || is_descriptor_limit(&error),
    }
}

/// Sends a request to all of `processes` and returns their responses, in the same order: first line
/// and body. Processes that have not responded after `limit` are given up.
///
/// If the system refuses further descriptors, the request is sent to the other processes later,
/// with a limit of their own.
pub(super) fn responses(
    processes: &[&Process],
    request: &str,
    limit: Duration,
) -> Vec<Result<Vec<u8>, Error>> {
    let mut responses = Vec::with_capacity(processes.len());
    while responses.len() < processes.len() {
        let mut batch = Vec::new();
        for process in &processes[responses.len()..] {
            let exchange = Exchange::start(process, request);
            if exchange.lacks_descriptors() && !batch.is_empty() {
                break;
            }
            batch.push(exchange);
        }
        receive(&mut batch, limit);
        responses.extend(batch.into_iter().map(Exchange::into_response));
    }
    responses
}

/// A request to a process.
struct Exchange<'a> {
    process: &'a Process,
    state: State,
}

enum State {
    /// The bytes received so far.
    Receiving(UnixStream, Vec<u8>),
    Complete(Vec<u8>),
    Failed(Error),
}

impl<'a> Exchange<'a> {
    /// Connects and sends the request.
    fn start(process: &'a Process, request: &str) -> Self {
        let state = match process.connect() {
            Ok(stream) => {
                let line = format!("{request}\n");
                match send(&stream, line.as_bytes(), SendFlags::NOSIGNAL) {
                    Ok(_) => State::Receiving(stream, Vec::new()),
                    Err(error) => State::Failed(interrupted(process, error.into())),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                State::Failed(silent(process, "it accepts no connection"))
            }
            Err(source) => State::Failed(Error::Absent { pid: process.pid(), source }),
        };
        Self { process, state }
    }

    /// Returns whether the system has refused a descriptor.
    fn lacks_descriptors(&self) -> bool {
        let State::Failed(Error::Absent { source, .. }) = &self.state else { return false };
        is_descriptor_limit(source)
    }

    /// Reads the bytes that have arrived.
    fn read(&mut self) {
        let State::Receiving(stream, bytes) = &mut self.state else { return };
        match stream.read_to_end(bytes) {
            Ok(_) if bytes.is_empty() => {
                self.state = State::Failed(interrupted(self.process, cut()));
            }
            Ok(_) => self.state = State::Complete(std::mem::take(bytes)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => self.state = State::Failed(interrupted(self.process, error)),
        }
    }

    fn into_response(self) -> Result<Vec<u8>, Error> {
        match self.state {
            State::Complete(response) => Ok(response),
            State::Failed(error) => Err(error),
            State::Receiving(..) => Err(silent(self.process, "")),
        }
    }
}

/// Receives until all responses are complete, or `limit` has passed.
fn receive(batch: &mut [Exchange<'_>], limit: Duration) {
    let start = Instant::now();
    loop {
        let is_waiting = |one: &&mut Exchange<'_>| matches!(one.state, State::Receiving(..));
        let mut waiting: Vec<_> = batch.iter_mut().filter(is_waiting).collect();
        if waiting.is_empty() {
            return;
        }
        let rest = limit.saturating_sub(start.elapsed());
        let mut descriptors: Vec<_> = waiting
            .iter()
            .filter_map(|one| match &one.state {
                State::Receiving(stream, _) => Some(PollFd::new(stream, PollFlags::IN)),
                _ => None,
            })
            .collect();
        let timeout = Timespec::try_from(rest).ok();
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        let ready: Vec<_> = descriptors.iter().map(|one| !one.revents().is_empty()).collect();
        drop(descriptors);
        for (exchange, _) in waiting.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
            exchange.read();
        }
        if rest.is_zero() {
            return;
        }
    }
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed")
}

/// The error of a process that closes the connection.
fn interrupted(process: &Process, source: io::Error) -> Error {
    match ProcessState::of(process.pid()) {
        ProcessState::Ended => Error::Ended { pid: process.pid() },
        _ => Error::Unresponsive { pid: process.pid(), source },
    }
}

/// The error of a process that does not respond in time.
fn silent(process: &Process, detail: &str) -> Error {
    let pid = process.pid();
    let detail = match ProcessState::of(pid) {
        ProcessState::Ended => return Error::Ended { pid },
        ProcessState::Stopped => "it is stopped, by a signal or a debugger",
        ProcessState::Running if detail.is_empty() => "it is busy, or waits for a resource",
        ProcessState::Running => detail,
    };
    Error::Unresponsive { pid, source: io::Error::new(io::ErrorKind::TimedOut, detail) }
}

impl Process {
    /// Connects to the process without waiting, and checks that it belongs to the same user; root
    /// may connect to any process.
    pub(super) fn connect(&self) -> io::Result<UnixStream> {
        let stream = connection::open(self.socket())?;
        let peer = Credentials::of_peer(&stream)?;
        if !PeerPolicy::SameUser.allows(peer.uid) && !geteuid().is_root() {
            let text = format!("it is a process of user {}", peer.uid);
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        Ok(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;

    /// A socket that stands for a process; requests are in its queue until the test reads them.
    struct Planted {
        process: Process,
        listener: UnixListener,
        _folder: tempfile::TempDir,
    }

    impl Planted {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let socket = folder.path().join("process.sock");
            let listener = UnixListener::bind(&socket).unwrap();
            let process = Process::at(std::process::id(), socket);
            Self { process, listener, _folder: folder }
        }

        /// Reads a request and responds to it.
        fn respond(&self, response: &str) {
            let (mut stream, _) = self.listener.accept().unwrap();
            let mut request = String::new();
            BufReader::new(&stream).read_line(&mut request).unwrap();
            assert_eq!(request, "metrics\n");
            stream.write_all(response.as_bytes()).unwrap();
        }
    }

    #[test]
    fn silent_processes_do_not_hide_the_others() {
        let planted: Vec<_> = (0..5).map(|_| Planted::new()).collect();
        let mut batch: Vec<_> =
            planted.iter().map(|one| Exchange::start(&one.process, "metrics")).collect();
        for at in [1, 4] {
            planted[at].respond(&format!("response {at}"));
        }
        planted[3].respond("");
        // Not even the first one is waited for.
        receive(&mut batch, Duration::ZERO);
        let responses: Vec<_> = batch.into_iter().map(Exchange::into_response).collect();
        assert_eq!(responses[1].as_ref().unwrap(), b"response 1");
        assert_eq!(responses[4].as_ref().unwrap(), b"response 4");
        for silent in [0, 2, 3] {
            let error = responses[silent].as_ref().unwrap_err();
            assert!(matches!(error, Error::Unresponsive { .. }), "{error}");
        }
    }

    /// A stopped process accepts none of the connections, which fill its queue in time.
    #[test]
    fn a_full_queue_does_not_block() {
        let full = Planted::new();
        rustix::net::listen(&full.listener, 1).unwrap();
        let mut queued = Vec::new();
        let error = loop {
            match full.process.connect() {
                Ok(stream) => queued.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(is_listening(&full.process));
        let response = responses(&[&full.process], "metrics", Duration::MAX).remove(0);
        let error = response.unwrap_err().to_string();
        assert!(error.contains("accepts no connection"), "{error}");
    }
}
