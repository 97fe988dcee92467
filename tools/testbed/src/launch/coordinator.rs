//! What does the first rank do?
//!
//! It listens. Ranks that come and know the token wait in its lobby; a task takes one of them out, and it
//! comes back at once, to be there for the next one. Rank 0 is a node as well: its agents are children of its
//! own.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::Shutdown;

use super::greeting::{Answer, Assignment, Greeting, prepare, read_greeting, same_token};
use super::node::{host_name, local};
use super::{Ranks, placed};
use crate::error::{Doing, Error};
use crate::process::{Crew, Embodied, Task, no_remedy, write_line};

/// The most connections that have not said yet who they are; more are closed at once, and ranks try again.
const MOST_UNKNOWN: usize = 128;

/// How long a line to a rank may take to leave.
const WRITING: Duration = Duration::from_secs(20);

/// How long a rank that was here before is awaited. Ours: it comes back at once, unless it or its network is
/// gone.
const RETURN: Duration = Duration::from_secs(20);

/// How long the end waits for ranks that are on their way back.
const FAREWELL: Duration = Duration::from_secs(5);

/// Rank 0 of the processes that a launcher started. Dropping it dismisses the others.
#[derive(Debug)]
pub struct Coordinator {
    program: OsString,
    lobby: Arc<Lobby>,
    /// Where ranks come to, and who lets them in; `None` if there is only one.
    door: Option<(TcpListener, JoinHandle<()>)>,
}

/// Where ranks wait.
#[derive(Debug)]
struct Lobby {
    ranks: Ranks,
    inside: Mutex<Inside>,
    changed: Condvar,
    unknown: AtomicUsize,
}

#[derive(Debug, Default)]
struct Inside {
    waiting: BTreeMap<u32, Waiting>,
    /// All that ever came.
    came: BTreeSet<u32>,
    dismissed: BTreeSet<u32>,
    closing: bool,
    /// How many were turned away, and the last of them.
    refused: u64,
    last_refused: String,
}

/// A rank that waits for a task.
#[derive(Debug)]
struct Waiting {
    stream: TcpStream,
    greeting: Greeting,
    /// The address at which it found rank 0.
    found_at: IpAddr,
}

impl Coordinator {
    /// Opens the lobby.
    pub(super) fn listen(ranks: Ranks, program: OsString) -> Result<Self, Error> {
        let place = ranks.place();
        let lobby = Arc::new(Lobby {
            inside: Mutex::default(),
            changed: Condvar::new(),
            unknown: AtomicUsize::new(0),
            ranks,
        });
        if lobby.ranks.size == 1 {
            return Ok(Self { program, lobby, door: None });
        }
        let listener = listen(&lobby.ranks).doing(|| {
            format!("listen for the other ranks at {place}; APUS_COORDINATOR=HOST:PORT says another place")
        })?;
        let door = listener.try_clone().doing(|| format!("listen at {place}"))?;
        let inside = Arc::clone(&lobby);
        let porter = thread::spawn(move || let_in(&door, &inside));
        Ok(Self { program, lobby, door: Some((listener, porter)) })
    }

    /// Number of ranks, this one included.
    pub(super) fn nodes(&self) -> usize {
        self.lobby.ranks.size as usize
    }

    /// Where it listens for the others; `None` if there are none.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.door.as_ref().and_then(|(listener, _)| listener.local_addr().ok())
    }

    /// How many ranks have come so far, this one included.
    #[must_use]
    pub fn here(&self) -> usize {
        self.lobby.lock().came.len() + 1
    }

    /// Starts an agent for each task, the first one here, each on the next one of the first `nodes` ranks.
    /// Waits for ranks that are not here yet.
    pub(super) fn start(&self, nodes: usize, tasks: Vec<Task>) -> Result<Crew, Error> {
        let others = self.lobby.take(1..=last(nodes.min(tasks.len())))?;
        let ranks = &self.lobby.ranks;
        let bind = ranks.bind.unwrap_or_else(|| {
            let found_at = others.iter().map(|other| other.found_at);
            found_at
                .clone()
                .find(|at| !at.is_loopback())
                .or_else(|| found_at.min())
                .unwrap_or(Ipv4Addr::LOCALHOST.into())
        });
        can_meet(bind, &others)?;
        let mut others = others.into_iter();
        let bodies = (0..nodes).cycle().zip(tasks).map(|(rank, task)| match rank {
            0 => {
                let task = placed(task, &format!("{} (rank 0)", host_name()), bind);
                let body = Embodied::process(&[], &self.program, no_remedy());
                (body.doing(|| format!("start {}", task.name)), task)
            }
            // Who has a task already comes again at once.
            _ => match others.next().map_or_else(|| self.lobby.take_one(last(rank + 1)), Ok) {
                Ok(waiting) => handed_to(&waiting, task),
                Err(error) => (Err(error), task),
            },
        });
        Crew::begin_all(bodies)
    }
}

/// The last of so many ranks.
fn last(nodes: usize) -> u32 {
    u32::try_from(nodes.saturating_sub(1)).expect("not more than there are ranks")
}

/// The agent of a rank that waited for this task.
fn handed_to(waiting: &Waiting, task: Task) -> (Result<Embodied, Error>, Task) {
    let Greeting { rank, host, bind, .. } = &waiting.greeting;
    let task = placed(task, &format!("{host} (rank {rank})"), *bind);
    let body = Embodied::connection(&waiting.stream);
    (body.doing(|| format!("talk to {}", task.name)), task)
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        let Some((listener, porter)) = self.door.take() else { return };
        self.lobby.dismiss();
        // Wakes the porter. What fails here would have failed before.
        let _ = rustix::net::shutdown(&listener, Shutdown::Both);
        let _ = porter.join();
    }
}

/// Whether all can reach each other, as far as addresses tell.
fn can_meet(first: IpAddr, others: &[Waiting]) -> Result<(), Error> {
    let others = others.iter().map(|other| (other.greeting.rank, other.greeting.bind));
    let binds: Vec<_> = [(0, first)].into_iter().chain(others).collect();
    let loopback = binds.iter().find(|(_, bind)| bind.is_loopback());
    let outside = binds.iter().find(|(_, bind)| !bind.is_loopback());
    let (Some((rank, bind)), Some((other, at))) = (loopback, outside) else { return Ok(()) };
    Err(Error::Agent {
        agent: format!("rank {rank}"),
        said: format!(
            "would listen at {bind}, where rank {other} at {at} cannot reach it: set APUS_BIND there to \
             an address that the others reach, or APUS_COORDINATOR to one of rank 0's"
        ),
    })
}

/// Listens where the others will come: everywhere, unless they are all on this host. Not at the
/// coordinator's name: a host may know itself by an address that no other can use, or not yet at all.
fn listen(ranks: &Ranks) -> io::Result<TcpListener> {
    let port = ranks.port;
    if let Ok(address) = ranks.coordinator.parse::<IpAddr>()
        && address.is_loopback()
    {
        return TcpListener::bind((address, port));
    }
    TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
        // No IPv6 here.
        _ => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)),
    })
}

/// Lets ranks in until the lobby closes.
fn let_in(door: &TcpListener, lobby: &Arc<Lobby>) {
    loop {
        match door.accept() {
            Ok((stream, from)) => {
                if lobby.unknown.fetch_add(1, Ordering::Relaxed) >= MOST_UNKNOWN {
                    lobby.unknown.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let lobby = Arc::clone(lobby);
                thread::spawn(move || {
                    let met = lobby.meet(stream);
                    lobby.unknown.fetch_sub(1, Ordering::Relaxed);
                    if let Err(problem) = met {
                        lobby.turned_away(from, &problem.to_string());
                    }
                });
            }
            Err(_) if lobby.lock().closed() => return,
            // No more file descriptors, for instance; that passes.
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
        if lobby.lock().closed() {
            return;
        }
    }
}

impl Inside {
    /// Whether nobody is expected any more.
    fn closed(&self) -> bool {
        self.closing && self.came.is_subset(&self.dismissed)
    }
}

impl Lobby {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears who somebody is, and lets it wait if it belongs here.
    fn meet(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_write_timeout(Some(WRITING))?;
        let greeting = read_greeting(&mut stream)?;
        if let Err(why) = self.check(&greeting) {
            write_line(&mut stream, &Answer::Refused(why.clone()))?;
            return Err(io::Error::other(why));
        }
        prepare(&stream).map_err(io::Error::other)?;
        let rank = greeting.rank;
        let waiting = Waiting { found_at: local(&stream)?, stream, greeting };
        let mut inside = self.lock();
        if inside.waiting.get(&rank).is_some_and(Waiting::is_there) {
            let why =
                format!("there is a rank {rank} already; has each process a rank of its own?");
            write_line(&mut &waiting.stream, &Answer::Refused(why.clone()))?;
            return Err(io::Error::other(why));
        }
        write_line(&mut &waiting.stream, &Answer::Welcome)?;
        inside.came.insert(rank);
        if inside.closing {
            write_line(&mut &waiting.stream, &Assignment::Dismiss)?;
            inside.dismissed.insert(rank);
        } else {
            inside.waiting.insert(rank, waiting);
        }
        self.changed.notify_all();
        Ok(())
    }

    /// Whether somebody belongs here.
    fn check(&self, greeting: &Greeting) -> Result<(), String> {
        let Greeting { version, token, rank, size, .. } = greeting;
        let ours = env!("CARGO_PKG_VERSION");
        let expected = self.ranks.size;
        if !same_token(token, &self.ranks.token) {
            Err("its token is another: is APUS_TOKEN the same in all processes of the job?"
                .to_owned())
        } else if version != ours {
            Err(format!("it is apus {version}, and this is {ours}: use the same in all processes"))
        } else if *size != expected || *rank == 0 || *rank >= expected {
            Err(format!("it is rank {rank} of {size}, and this is rank 0 of {expected}"))
        } else {
            Ok(())
        }
    }

    fn turned_away(&self, from: SocketAddr, why: &str) {
        let mut inside = self.lock();
        inside.refused += 1;
        inside.last_refused = format!("{}: {why}", from.ip().to_canonical());
    }

    /// Takes these ranks out, once all of them are here.
    fn take(&self, wanted: RangeInclusive<u32>) -> Result<Vec<Waiting>, Error> {
        let began = Instant::now();
        let mut inside = self.lock();
        loop {
            inside.waiting.retain(|_, waiting| waiting.is_there());
            let missing: Vec<_> =
                wanted.clone().filter(|rank| !inside.waiting.contains_key(rank)).collect();
            if missing.is_empty() {
                break;
            }
            let only_left = missing.iter().all(|rank| inside.came.contains(rank));
            let patience = self.ranks.patience.min(if only_left { RETURN } else { Duration::MAX });
            let left = patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(self.missed(&missing, patience, &inside));
            }
            let waited = self.changed.wait_timeout(inside, left);
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(wanted.filter_map(|rank| inside.waiting.remove(&rank)).collect())
    }

    fn take_one(&self, rank: u32) -> Result<Waiting, Error> {
        Ok(self.take(rank..=rank)?.remove(0))
    }

    /// That some ranks did not come, and what may be the reason.
    fn missed(&self, missing: &[u32], patience: Duration, inside: &Inside) -> Error {
        let names: Vec<_> = missing.iter().take(8).map(u32::to_string).collect();
        let more = if missing.len() > names.len() { ", ..." } else { "" };
        let refused = match inside.refused {
            0 => String::new(),
            number => format!("; turned away: {number}, the last one {}", inside.last_refused),
        };
        let said = format!(
            "not come to {} within {} s{refused}; were all {} processes started (with srun or mpirun, not \
             in the batch script itself), and can they reach that place? APUS_COORDINATOR=HOST:PORT says \
             another",
            self.ranks.place(),
            patience.as_secs(),
            self.ranks.size
        );
        Error::Agent { agent: format!("rank {}{more}", names.join(", ")), said }
    }

    /// Tells all ranks that it is over, also those that are on their way back.
    fn dismiss(&self) {
        let until = Instant::now() + FAREWELL;
        let mut inside = self.lock();
        inside.closing = true;
        for (rank, waiting) in std::mem::take(&mut inside.waiting) {
            // Who does not hear it is gone already.
            let _ = write_line(&mut &waiting.stream, &Assignment::Dismiss);
            inside.dismissed.insert(rank);
        }
        while !inside.closed() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let came = inside.came.clone();
                inside.dismissed.extend(came);
                return;
            }
            let waited = self.changed.wait_timeout(inside, left);
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Waiting {
    /// Whether it still waits: a rank that is gone has closed its end. It has nothing to say.
    fn is_there(&self) -> bool {
        let peeked = self.stream.set_nonblocking(true).and_then(|()| self.stream.peek(&mut [0]));
        let there = peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        there && self.stream.set_nonblocking(false).is_ok()
    }
}
