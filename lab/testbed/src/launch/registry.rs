//! Registry of the ranks waiting at rank 0 for tasks.
//!
//! A thread of the coordinator accepts connections. A thread per connection performs the handshake
//! and registers the rank. The coordinator removes ranks when it has tasks for them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::handshake::{Assignment, Hello, HelloReply, prepare, read_hello, same_token};
use super::node::local;
use super::ranks::Ranks;
use apus_measure::error::Error;
use apus_measure::process::write_line;

/// Maximum number of connections that have not sent a hello yet. Further connections are closed
/// immediately, and their ranks retry.
const MAX_UNKNOWN: usize = 128;

/// Time limit for writing a line to a rank.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

/// How long to wait for a rank that was connected before. Chosen by us: it reconnects immediately,
/// unless it or its network has failed.
const REJOIN_TIMEOUT: Duration = Duration::from_secs(20);

/// How long the dismissal waits for ranks that are about to reconnect.
const DISMISS_TIMEOUT: Duration = Duration::from_secs(5);

/// Ranks that wait for tasks.
#[derive(Debug)]
pub(super) struct Registry {
    pub(super) ranks: Ranks,
    state: Mutex<RegistryState>,
    changed: Condvar,
    unknown: AtomicUsize,
}

#[derive(Debug, Default)]
struct RegistryState {
    waiting: BTreeMap<u32, WaitingRank>,
    /// All ranks that have ever connected.
    joined: BTreeSet<u32>,
    dismissed: BTreeSet<u32>,
    closing: bool,
    /// Number of rejected connections, and the reason for the last rejection.
    refused: u64,
    last_refused: String,
}

/// A rank that waits for a task.
#[derive(Debug)]
pub(super) struct WaitingRank {
    pub(super) stream: TcpStream,
    pub(super) hello: Hello,
    /// Address of rank 0 that this rank connected to.
    pub(super) reached_at: IpAddr,
}

/// Accepts ranks until the registry is closed.
pub(super) fn accept_ranks(listener: &TcpListener, registry: &Arc<Registry>) {
    loop {
        match listener.accept() {
            Ok((stream, from)) => {
                if registry.unknown.fetch_add(1, Ordering::Relaxed) >= MAX_UNKNOWN {
                    registry.unknown.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let registry = Arc::clone(registry);
                thread::spawn(move || {
                    let registered = registry.register(stream, from);
                    registry.unknown.fetch_sub(1, Ordering::Relaxed);
                    if let Err(problem) = registered {
                        registry.record_rejection(from, &problem.to_string());
                    }
                });
            }
            Err(_) if registry.lock().is_closed() => return,
            // Out of file descriptors, for example; this is temporary.
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
        if registry.lock().is_closed() {
            return;
        }
    }
}

impl RegistryState {
    /// Returns whether no rank is expected any more.
    fn is_closed(&self) -> bool {
        self.closing && self.joined.is_subset(&self.dismissed)
    }
}

impl Registry {
    pub(super) fn new(ranks: Ranks) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            unknown: AtomicUsize::new(0),
            ranks,
        }
    }

    /// Returns the number of ranks that have connected so far.
    pub(super) fn joined(&self) -> usize {
        self.lock().joined.len()
    }

    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Performs the handshake with a connection, and registers the rank if it belongs to the job;
    /// otherwise refuses it.
    ///
    /// # Errors
    ///
    /// The connection failed.
    fn register(&self, mut stream: TcpStream, from: SocketAddr) -> io::Result<()> {
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        let hello = read_hello(&mut stream)?;
        if let Err(why) = self.check(&hello) {
            self.refuse(&stream, from, why);
            return Ok(());
        }
        prepare(&stream).map_err(io::Error::other)?;
        let rank = hello.rank;
        let waiting = WaitingRank { reached_at: local(&stream)?, stream, hello };
        let mut state = self.lock();
        if state.waiting.get(&rank).is_some_and(WaitingRank::is_connected) {
            let why =
                format!("there is a rank {rank} already; has each process a rank of its own?");
            drop(state);
            self.refuse(&waiting.stream, from, why);
            return Ok(());
        }
        write_line(&mut &waiting.stream, &HelloReply::Welcome)?;
        state.joined.insert(rank);
        if state.closing {
            write_line(&mut &waiting.stream, &Assignment::Dismiss)?;
            state.dismissed.insert(rank);
        } else {
            state.waiting.insert(rank, waiting);
        }
        self.changed.notify_all();
        Ok(())
    }

    /// Checks that a rank belongs to the job.
    fn check(&self, hello: &Hello) -> Result<(), String> {
        let Hello { version, token, rank, size, .. } = hello;
        let ours = env!("CARGO_PKG_VERSION");
        let expected = self.ranks.size;
        if !same_token(token, &self.ranks.token) {
            Err("it has another token: is APUS_TOKEN the same in all processes of the job?"
                .to_owned())
        } else if version != ours {
            Err(format!("it is apus {version}, and this is {ours}: use the same in all processes"))
        } else if *size != expected || *rank == 0 || *rank >= expected {
            Err(format!("it is rank {rank} of {size}, and this is rank 0 of {expected}"))
        } else {
            Ok(())
        }
    }

    /// Refuses a rank. The refusal is counted before the rank is notified, so that every later
    /// error of this process mentions it.
    fn refuse(&self, mut stream: &TcpStream, from: SocketAddr, why: String) {
        self.record_rejection(from, &why);
        // Fails only if the rank has disconnected.
        let _ = write_line(&mut stream, &HelloReply::Refused(why));
    }

    fn record_rejection(&self, from: SocketAddr, why: &str) {
        let mut state = self.lock();
        state.refused += 1;
        state.last_refused = format!("{}: {why}", from.ip().to_canonical());
    }

    /// Removes these ranks, once all of them are waiting.
    pub(super) fn take(&self, wanted: RangeInclusive<u32>) -> Result<Vec<WaitingRank>, Error> {
        let began = Instant::now();
        let mut state = self.lock();
        loop {
            state.waiting.retain(|_, waiting| waiting.is_connected());
            let missing: Vec<_> =
                wanted.clone().filter(|rank| !state.waiting.contains_key(rank)).collect();
            if missing.is_empty() {
                break;
            }
            let all_joined_before = missing.iter().all(|rank| state.joined.contains(rank));
            let timeout = self.ranks.timeout.min(if all_joined_before {
                REJOIN_TIMEOUT
            } else {
                Duration::MAX
            });
            let left = timeout.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(self.missing_error(&missing, timeout, &state));
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(wanted.filter_map(|rank| state.waiting.remove(&rank)).collect())
    }

    pub(super) fn take_one(&self, rank: u32) -> Result<WaitingRank, Error> {
        Ok(self.take(rank..=rank)?.remove(0))
    }

    /// Returns the error that some ranks did not connect, with possible reasons.
    fn missing_error(&self, missing: &[u32], timeout: Duration, state: &RegistryState) -> Error {
        let names: Vec<_> = missing.iter().take(8).map(u32::to_string).collect();
        let more = if missing.len() > names.len() { ", ..." } else { "" };
        let refused = match state.refused {
            0 => String::new(),
            number => {
                format!("; refused connections: {number}, the last from {}", state.last_refused)
            }
        };
        let said = format!(
            "not connected to {} within {} s{refused}; were all {} processes started (with srun or mpirun, not \
             in the batch script itself), and can they reach that place? APUS_COORDINATOR=HOST:PORT selects \
             another",
            self.ranks.place(),
            timeout.as_secs(),
            self.ranks.size
        );
        Error::Agent { agent: format!("rank {}{more}", names.join(", ")), said }
    }

    /// Dismisses all ranks, including ranks about to reconnect.
    pub(super) fn dismiss(&self) {
        let until = Instant::now() + DISMISS_TIMEOUT;
        let mut state = self.lock();
        state.closing = true;
        for (rank, waiting) in std::mem::take(&mut state.waiting) {
            // A rank that does not receive it has exited.
            let _ = write_line(&mut &waiting.stream, &Assignment::Dismiss);
            state.dismissed.insert(rank);
        }
        while !state.is_closed() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let joined = state.joined.clone();
                state.dismissed.extend(joined);
                return;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl WaitingRank {
    /// Returns whether the rank is still waiting. A rank that exited has closed its connection; a
    /// waiting rank does not send.
    fn is_connected(&self) -> bool {
        let peeked = self.stream.set_nonblocking(true).and_then(|()| self.stream.peek(&mut [0]));
        let is_open = peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        is_open && self.stream.set_nonblocking(false).is_ok()
    }
}
