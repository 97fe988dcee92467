//! Interface of a transport: what a load generator and a server need of it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use apus::PollMode;

use super::work::Work;
use crate::contenders::keys::ThrowAwayKeys;
use apus_testbed::error::Error;
use apus_testbed::process::Stop;

/// A way to carry requests and replies.
pub trait Transport: Send + Sync {
    /// Returns its name in results, like `tcp`, which [`super::parse`] accepts.
    fn name(&self) -> String;

    /// Returns its settings in words, so that readers can judge the comparison. What the system allows is that of the
    /// calling process: ask in the process, and in the namespace, in which the transport runs.
    fn settings(&self) -> String;

    /// Returns which intended setting the calling process cannot have, and why; `None` if it has all of them.
    fn caveat(&self) -> Option<String> {
        None
    }

    /// Returns the number of connections to each peer for a client with at most `outstanding`
    /// requests.
    fn connections(&self, outstanding: usize) -> usize;

    /// Returns whether each outstanding request occupies a connection, so that their number limits the requests.
    fn is_bounded_by_connections(&self) -> bool {
        false
    }

    /// Opens the node of one host.
    ///
    /// # Errors
    ///
    /// A system call fails.
    fn open(&self, opening: &NodeOptions) -> Result<Box<dyn Node>, Error>;
}

/// Options of a node.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Address at which peers reach it.
    pub at: IpAddr,
    /// Poll mode of its threads.
    pub poll: PollMode,
    /// Whether it serves clients.
    pub serve: bool,
    /// Threads that will call [`Node::serve`]: 1 or more.
    pub receivers: usize,
    /// Rate of the link in Mbit/s; 0 lets the transport measure it.
    pub link_mbps: u32,
    /// Longest IP packet in bytes; the path may carry less.
    pub mtu: usize,
    /// Work of a receiver on each request before it answers.
    pub work: Work,
    /// Parameters of the transport by name.
    pub parameters: Vec<(String, u64)>,
    /// Other nodes of its host that a transport may schedule together with, by the name of their group.
    pub host_group: Option<String>,
    /// Keys of a transport that encrypts.
    pub keys: Option<ThrowAwayKeys>,
    /// Whether clients compare the contents of replies with those of their requests, beside the lengths.
    pub compare: bool,
}

/// Returns a payload whose bytes differ from place to place.
pub(super) fn payload(size: usize) -> Vec<u8> {
    (0..size).map(|place| (place % 251) as u8).collect()
}

/// Returns what is wrong with the contents of a reply to `request`.
pub(super) fn differs(from: SocketAddr, reply: &[u8], request: &[u8]) -> Option<Error> {
    let place = reply.iter().zip(request).position(|(one, other)| one != other)?;
    Some(Error::Peer(format!("{from} answered with another byte {place} of {}", request.len())))
}

impl NodeOptions {
    /// Returns options for loopback, with one receiver and default parameters.
    #[must_use]
    pub const fn on_loopback(poll: PollMode, serve: bool) -> Self {
        Self {
            at: IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
            poll,
            serve,
            receivers: 1,
            link_mbps: 0,
            mtu: 65_535,
            work: Work::NONE,
            parameters: Vec::new(),
            host_group: None,
            keys: None,
            compare: false,
        }
    }
}

/// A transport on one host, shared by its threads.
pub trait Node: Send + Sync {
    /// Returns the address at which clients reach it.
    fn address(&self) -> SocketAddr;

    /// Echoes requests, each as soon as it is complete, until `stop` is asked.
    /// [`NodeOptions::receivers`] threads call this, each with another `receiver` from 0.
    ///
    /// # Errors
    ///
    /// A system call fails.
    fn serve(&self, receiver: usize, stop: &Stop) -> Result<(), Error>;

    /// Ends [`Node::serve`] in all threads, including those that sleep. `stop` has been asked
    /// before.
    fn shutdown(&self);

    /// Returns the transport's counters by name.
    fn counters(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }

    /// Returns a client of `peers` that never has more than `outstanding` requests. All connections
    /// are established when this returns.
    ///
    /// # Errors
    ///
    /// A system call fails, or a peer does not answer.
    fn connect(&self, peers: &[SocketAddr], outstanding: usize) -> Result<Box<dyn Client>, Error>;
}

/// A client that one thread of the load generator drives.
pub trait Client {
    /// Starts a request with a payload of `size` bytes to the peer with this index. `id` identifies
    /// it until its reply is complete; ids are less than the limit of outstanding requests.
    ///
    /// # Errors
    ///
    /// A system call fails, or the peer has disconnected.
    fn start(&mut self, id: u32, peer: usize, size: u32) -> Result<(), Error>;

    /// Starts requests that are due at the same time. Those to one peer may leave together. Returns how many have
    /// begun, from the first on: the transport has no room for the others before earlier ones have ended.
    ///
    /// # Errors
    ///
    /// As for [`Client::start`].
    fn start_all(&mut self, starts: &[Start]) -> Result<usize, Error> {
        starts.iter().try_for_each(|&Start { id, peer, size }| self.start(id, peer, size))?;
        Ok(starts.len())
    }

    /// Sends and receives what is possible now, and adds the ids of requests that have ended to
    /// `ended`. If nothing is possible, waits for up to `wait`; zero never waits. May return
    /// earlier without a result.
    ///
    /// # Errors
    ///
    /// A system call fails, a peer has disconnected, or a reply differs in length from its request.
    fn poll(&mut self, wait: Duration, ended: &mut Completions) -> Result<(), Error>;
}

/// A request to be started; see [`Client::start`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Identifies the request until its reply is complete.
    pub id: u32,
    /// Index of the peer.
    pub peer: usize,
    /// Bytes of the payload.
    pub size: u32,
}

/// Requests that have ended, by id.
#[derive(Clone, Debug, Default)]
pub struct Completions {
    /// Requests with a reply.
    pub completed: Vec<u32>,
    /// Requests that an overloaded server refused.
    pub refused: Vec<u32>,
    /// Requests that failed for another reason.
    pub failed: Vec<u32>,
    /// Reason of the first failure.
    pub why: Option<String>,
}

impl Completions {
    /// Returns whether no request has ended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.completed.is_empty() && self.refused.is_empty() && self.failed.is_empty()
    }

    /// Returns why a request has no reply, if one has none.
    pub fn problem(&self) -> Option<String> {
        self.why.clone().or_else(|| (!self.refused.is_empty()).then(|| Self::REFUSED.to_owned()))
    }

    /// Reason given for a refused request.
    pub(crate) const REFUSED: &str = "the server refused a request: it is overloaded";
}
