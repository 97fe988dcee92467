//! Interface of a transport, for load generators and servers.

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
    /// Returns its name in results, such as `tcp`, as accepted by [`super::parse`].
    fn name(&self) -> String;

    /// Returns its settings in words, so that readers can judge the comparison. System limits are
    /// those of the calling process: call this in the process and namespace of the transport.
    fn settings(&self) -> String;

    /// Returns the intended setting that the calling process cannot have, and why; `None` if it has
    /// all of them.
    fn caveat(&self) -> Option<String> {
        None
    }

    /// Returns the number of connections to each peer for a client with at most `outstanding`
    /// requests.
    fn connections(&self, outstanding: usize) -> usize;

    /// Returns whether each outstanding request occupies a connection, so that their number limits
    /// the requests.
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
    /// Address of the node for its peers.
    pub at: IpAddr,
    /// Poll mode of its threads.
    pub poll: PollMode,
    /// Whether it serves clients.
    pub serve: bool,
    /// Threads that will call [`Node::serve`]: 1 or more.
    pub receivers: usize,
    /// Rate of the link in Mbit/s; 0 lets the transport measure it.
    pub link_mbps: u32,
    /// Maximum IP packet size in bytes; the path may carry less.
    pub mtu: usize,
    /// Work of a receiver on each request before it answers.
    pub work: Work,
    /// Parameters of the transport by name.
    pub parameters: Vec<(String, u64)>,
    /// Other nodes of its host that a transport may schedule together with, by the name of their
    /// group.
    pub host_group: Option<String>,
    /// Keys of a transport that encrypts.
    pub keys: Option<ThrowAwayKeys>,
    /// Whether clients compare replies with their requests byte by byte, in addition to the
    /// lengths.
    pub compare: bool,
}

/// Returns a payload with bytes that vary by position.
pub(super) fn payload(size: usize) -> Vec<u8> {
    (0..size).map(|place| (place % 251) as u8).collect()
}

/// Returns the difference between a reply and its `request`.
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
    /// Returns its address for clients.
    fn address(&self) -> SocketAddr;

    /// Echoes requests, each as soon as it is complete, until `stop` is requested.
    /// [`NodeOptions::receivers`] threads call this, each with a different `receiver`, counted
    /// from 0.
    ///
    /// # Errors
    ///
    /// A system call fails.
    fn serve(&self, receiver: usize, stop: &Stop) -> Result<(), Error>;

    /// Ends [`Node::serve`] in all threads, including sleeping threads. The caller must request
    /// `stop` first.
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

/// A client driven by one thread of the load generator.
pub trait Client {
    /// Starts a request with a payload of `size` bytes to the peer with this index. `id` identifies
    /// it until its reply is complete; ids are less than the limit of outstanding requests.
    ///
    /// # Errors
    ///
    /// A system call fails, or the peer has disconnected.
    fn start(&mut self, id: u32, peer: usize, size: u32) -> Result<(), Error>;

    /// Starts requests that are due at the same time. Requests to one peer may leave together.
    /// Returns how many were started, in order: the transport cannot accept the rest before earlier
    /// requests have ended.
    ///
    /// # Errors
    ///
    /// As for [`Client::start`].
    fn start_all(&mut self, starts: &[Start]) -> Result<usize, Error> {
        starts.iter().try_for_each(|&Start { id, peer, size }| self.start(id, peer, size))?;
        Ok(starts.len())
    }

    /// Sends and receives as much as possible without blocking, and adds the ids of ended requests
    /// to `ended`. Without progress, waits for up to `wait`; zero never waits. May return earlier
    /// without a result.
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

    /// Returns why a request failed, if one did.
    pub fn problem(&self) -> Option<String> {
        self.why.clone().or_else(|| (!self.refused.is_empty()).then(|| Self::REFUSED.to_owned()))
    }

    /// Reason given for a refused request.
    pub(crate) const REFUSED: &str = "the server refused a request: it is overloaded";
}
