//! Rank 0: the coordinator of a job.
//!
//! It listens for the other ranks. A rank that presents the token waits in the
//! [`registry`](super::registry) for a task. A task removes the rank from the registry; the rank
//! reconnects immediately for the next task. Rank 0 is a node as well: its agents are its child
//! processes.

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::net::Shutdown;

use super::handshake::Hello;
use super::node::host_name;
use super::ranks::Ranks;
use super::registry::{Registry, WaitingRank, accept_ranks};
use apus_measure::error::{Doing, Error};
use apus_measure::process::{Crew, RunningAgent, Task, no_remedy};

/// Rank 0 of a job. Dropping it dismisses the other ranks.
#[derive(Debug)]
pub struct Coordinator {
    program: OsString,
    registry: Arc<Registry>,
    /// Listening socket and the thread that accepts ranks; `None` for a single rank.
    acceptor: Option<(TcpListener, JoinHandle<()>)>,
}

impl Coordinator {
    /// Starts accepting ranks.
    pub(super) fn listen(ranks: Ranks, program: OsString) -> Result<Self, Error> {
        let place = ranks.place();
        let registry = Arc::new(Registry::new(ranks));
        if registry.ranks.size == 1 {
            return Ok(Self { program, registry, acceptor: None });
        }
        let listener = listen(&registry.ranks).doing(|| {
            format!("listen for the other ranks at {place}; APUS_COORDINATOR=HOST:PORT selects another place")
        })?;
        let door = listener.try_clone().doing(|| format!("listen at {place}"))?;
        let accepting = Arc::clone(&registry);
        let acceptor = thread::spawn(move || accept_ranks(&door, &accepting));
        Ok(Self { program, registry, acceptor: Some((listener, acceptor)) })
    }

    /// Returns the number of ranks, this one included.
    pub(super) fn nodes(&self) -> usize {
        self.registry.ranks.size as usize
    }

    /// Returns the address that it listens on; `None` for a single rank.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.acceptor.as_ref().and_then(|(listener, _)| listener.local_addr().ok())
    }

    /// Returns the number of ranks that have connected so far, this one included.
    #[must_use]
    pub fn joined(&self) -> usize {
        self.registry.joined() + 1
    }

    /// Starts an agent for each task on the first `nodes` ranks, round robin, the first agent here.
    /// Waits for ranks that have not connected.
    pub(super) fn start(&self, nodes: usize, tasks: Vec<Task>) -> Result<Crew, Error> {
        let others = self.registry.take(1..=last_rank(nodes.min(tasks.len())))?;
        let ranks = &self.registry.ranks;
        let bind = ranks.bind.unwrap_or_else(|| {
            let reached_at = others.iter().map(|other| other.reached_at);
            reached_at
                .clone()
                .find(|at| !at.is_loopback())
                .or_else(|| reached_at.min())
                .unwrap_or(Ipv4Addr::LOCALHOST.into())
        });
        check_reachability(bind, &others)?;
        let mut others = others.into_iter();
        let bodies = (0..nodes).cycle().zip(tasks).map(|(rank, task)| match rank {
            0 => {
                let task = task.on_host(&format!("{} (rank 0)", host_name()), bind);
                let body = RunningAgent::process(&[], &self.program, no_remedy());
                (body.doing(|| format!("start {}", task.name)), task)
            }
            // A rank that already has a task reconnects immediately.
            _ => {
                match others.next().map_or_else(|| self.registry.take_one(last_rank(rank + 1)), Ok)
                {
                    Ok(waiting) => agent_of(&waiting, task),
                    Err(error) => (Err(error), task),
                }
            }
        });
        Crew::begin_all(bodies)
    }
}

/// Returns the last of the first `nodes` ranks.
fn last_rank(nodes: usize) -> u32 {
    u32::try_from(nodes.saturating_sub(1)).expect("not more than there are ranks")
}

/// Returns the agent that runs this task on a waiting rank.
fn agent_of(waiting: &WaitingRank, task: Task) -> (Result<RunningAgent, Error>, Task) {
    let Hello { rank, host, bind, .. } = &waiting.hello;
    let task = task.on_host(&format!("{host} (rank {rank})"), *bind);
    let body = RunningAgent::connection(&waiting.stream);
    (body.doing(|| format!("talk to {}", task.name)), task)
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        let Some((listener, acceptor)) = self.acceptor.take() else { return };
        self.registry.dismiss();
        // Wakes the accepting thread. Errors here would have occurred before.
        let _ = rustix::net::shutdown(&listener, Shutdown::Both);
        let _ = acceptor.join();
    }
}

/// Checks that all ranks can reach each other, as far as their addresses show.
fn check_reachability(first: IpAddr, others: &[WaitingRank]) -> Result<(), Error> {
    let others = others.iter().map(|other| (other.hello.rank, other.hello.bind));
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

/// Listens on all addresses, unless all ranks are on this host. The coordinator's host name is no
/// alternative: it may resolve to an address that no other host can use, or not at all.
fn listen(ranks: &Ranks) -> io::Result<TcpListener> {
    let port = ranks.port;
    if let Ok(address) = ranks.coordinator.parse::<IpAddr>()
        && address.is_loopback()
    {
        return TcpListener::bind((address, port));
    }
    TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
        // This host has no IPv6.
        _ => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)),
    })
}
