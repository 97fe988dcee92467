//! The service thread: accepts connections and responds to requests.
//!
//! It serves one connection at a time, with one request each: a line of text. The response is a
//! line of JSON, `{"ok":true,"bytes":N}` followed by N bytes, or `{"ok":false,"error":"…"}`. Slow
//! clients are disconnected.

use crate::introspection::{folder, requests};
use apus_local::{Credentials, PeerPolicy};
use apus_process::{Descriptor, Owner};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::{SendFlags, send};
use serde_json::json;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Longest request in bytes. Chosen by us: longer than the name of any request.
const MAX_REQUEST: u64 = 256;
/// Longest time for a read or a write. Chosen by us: clients block until they have the response.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The user that may inspect every process.
const ROOT: u32 = 0;

/// Listens and responds until it is dropped.
pub(crate) struct Service {
    path: PathBuf,
    /// The process that started it. A fork has a copy of this value, but owns neither the thread
    /// nor the socket.
    owner: Owner,
    /// An eventfd, written when the thread must end.
    stop: Arc<Descriptor>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Starts to listen in this user's folder.
    ///
    /// # Errors
    ///
    /// The folder cannot be trusted, a live process has the name, or the system refuses a resource.
    pub(crate) fn start() -> io::Result<Self> {
        let folder = folder::open()?;
        folder::remove_stale(&folder);
        let path = folder::socket(&folder, std::process::id());
        // A dead process may have had the same id.
        folder::remove_if_dead(&path);
        let listener = Descriptor::new(UnixListener::bind(&path)?);
        let remove = |error| {
            let _ = std::fs::remove_file(&path);
            error
        };
        listener.set_nonblocking(true).map_err(remove)?;
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        let stop = Arc::new(Descriptor::new(event.map_err(|error| remove(error.into()))?));
        let stopped = stop.clone();
        let mut reserve = Reserve::default();
        reserve.fill(&stop);
        let name = thread::Builder::new().name("apus-live".to_owned());
        let thread = name.spawn(move || listen(&listener, &stopped, reserve)).map_err(remove)?;
        Ok(Self { path, owner: Owner::current(), stop, thread: Some(thread) })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if !self.owner.is_current() {
            std::mem::forget(self.thread.take());
            return;
        }
        let _ = std::fs::remove_file(&self.path);
        // Fails only if the counter is full, and then the thread wakes anyway.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // If it panicked, the panic has been printed.
            let _ = thread.join();
        }
    }
}

fn listen(listener: &UnixListener, stop: &Descriptor, mut reserve: Reserve) {
    loop {
        reserve.fill(stop);
        let mut fds = [PollFd::new(listener, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        if !fds[1].revents().is_empty() {
            return;
        }
        if fds[0].revents().is_empty() {
            continue;
        }
        match listener.accept() {
            // An error concerns this client alone: it has disconnected or is too slow.
            Ok((stream, _)) => drop(serve(&stream)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // No descriptors: a process that lacks them is the one to be inspected.
            Err(_) => match reserve.release().then(|| listener.accept()) {
                Some(Ok((stream, _))) => drop(serve(&stream)),
                // Another thread was faster; the client waits in the queue of the socket.
                Some(Err(_)) | None => thread::sleep(Duration::from_millis(100)),
            },
        }
    }
}

/// Descriptors kept in reserve, so that a process without free ones can be inspected: one for the
/// client, one for the files that a response is made from.
#[derive(Debug, Default)]
struct Reserve([Option<Descriptor>; 2]);

impl Reserve {
    /// Fills the reserve with copies of `any` descriptor, as far as the system grants them.
    fn fill(&mut self, any: &Descriptor) {
        for place in self.0.iter_mut().filter(|place| place.is_none()) {
            *place = any.try_clone().ok();
        }
    }

    /// Releases the reserve. Returns whether there was one.
    fn release(&mut self) -> bool {
        let had = self.0[0].is_some();
        self.0 = Default::default();
        had
    }
}

/// Reads a request and responds to it.
fn serve(stream: &UnixStream) -> io::Result<()> {
    let peer = Credentials::of_peer(stream)?;
    if !PeerPolicy::Users(vec![ROOT]).allows(peer.uid) {
        return Ok(());
    }
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_REQUEST)).read_line(&mut line)?;
    let (head, body) = match requests::respond(line.trim()) {
        Ok(body) => (json!({ "ok": true, "bytes": body.len() }), body),
        Err(error) => (json!({ "ok": false, "error": error }), Vec::new()),
    };
    write(stream, format!("{head}\n").as_bytes())?;
    write(stream, &body)
}

/// Writes all bytes. `send` instead of `write`: a client that disconnects must not raise SIGPIPE,
/// which ends a program that does not ignore it.
fn write(stream: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match send(stream, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
