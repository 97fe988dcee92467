//! How does a process answer?
//!
//! One connection at a time, one request each: a line of text. The answer is a line of JSON, `{"ok":true,"bytes":N}` and N bytes behind
//! it, or `{"ok":false,"error":"…"}`. Whoever is slow is hung up on.

use super::{folder, requests};
use crate::engine::signal::Signal;
use apus_local::Credentials;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{SendFlags, send};
use rustix::process::geteuid;
use serde_json::json;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Longest request. Ours: names of requests are shorter.
const MAX_REQUEST: u64 = 256;
/// How long a read or a write may take. Ours: whoever asks waits for the answer, and does nothing else.
const PATIENCE: Duration = Duration::from_secs(2);

/// Listens and answers until it is dropped.
pub(super) struct Service {
    path: PathBuf,
    /// The process that started it. A fork of it has the same memory, but neither the thread nor the socket's name.
    pid: u32,
    stop: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Listens in this user's folder.
    ///
    /// # Errors
    ///
    /// The folder cannot be trusted, the name is taken by a live process, or the system refuses something.
    pub(super) fn start() -> io::Result<Self> {
        let folder = folder::open()?;
        folder::sweep(&folder);
        let pid = std::process::id();
        let path = folder::socket(&folder, pid);
        // A dead process may have had the same number.
        folder::remove_if_dead(&path);
        let listener = UnixListener::bind(&path)?;
        let remove = |error| {
            let _ = std::fs::remove_file(&path);
            error
        };
        listener.set_nonblocking(true).map_err(remove)?;
        let stop = Arc::new(Signal::new().map_err(remove)?);
        let told = stop.clone();
        let name = thread::Builder::new().name("apus-live".to_owned());
        let thread = name.spawn(move || listen(&listener, &told)).map_err(remove)?;
        Ok(Self { path, pid, stop, thread: Some(thread) })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            return;
        }
        let _ = std::fs::remove_file(&self.path);
        self.stop.raise();
        if let Some(thread) = self.thread.take() {
            // If it panicked, its message has been printed.
            let _ = thread.join();
        }
    }
}

fn listen(listener: &UnixListener, stop: &Signal) {
    loop {
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
            // Whoever hangs up, or is hung up on, has no answer.
            Ok((stream, _)) => drop(answer(&stream)),
            // No descriptors: whoever asks will see that nothing comes.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Reads a request and answers it.
fn answer(stream: &UnixStream) -> io::Result<()> {
    let peer = Credentials::of_peer(stream)?;
    if peer.uid != geteuid().as_raw() && peer.uid != 0 {
        return Ok(());
    }
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_REQUEST)).read_line(&mut line)?;
    let (head, body) = match requests::answer(line.trim()) {
        Ok(body) => (json!({ "ok": true, "bytes": body.len() }), body),
        Err(error) => (json!({ "ok": false, "error": error }), Vec::new()),
    };
    write(stream, format!("{head}\n").as_bytes())?;
    write(stream, &body)
}

/// Writes all of it. Whoever hangs up meanwhile must not end this process by SIGPIPE, which programs may have left as it is.
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
