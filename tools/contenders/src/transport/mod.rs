//! What carries requests and replies of any size, many at the same time?
//!
//! One small trait, so that what is measured differs in the transport and in nothing else: the load
//! generator, the messages, the threads and how they wait are the same for all.
//!
//! ```text
//!   Transport   a way to do it, by its name (`apus`, `tcp`, `tcp-pool=4:bbr`, …)
//!     └─ open ─▶ Node         one host's end: echoes requests, and
//!                  └─ connect ─▶ Client    sends requests to peers
//! ```

mod apus;
mod tcp;
mod work;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ::apus::PollMode;

use apus_testbed::error::{Error, require};
use apus_testbed::process::Stop;

pub use self::apus::Apus;
pub use self::tcp::serve as serve_streams;
pub use self::tcp::{Connections, Tcp};
pub use self::work::Work;

/// A way to carry requests and replies.
pub trait Transport: Send + Sync {
    /// Its name in results, like `tcp`; [`parse`] understands it.
    fn name(&self) -> String;

    /// How it is set up, for people who ask whether the comparison is fair.
    fn settings(&self) -> String;

    /// Connections to each peer of a client with at most so many requests under way.
    fn connections(&self, outstanding: usize) -> usize;

    /// Opens one host's end.
    ///
    /// # Errors
    ///
    /// The system refuses something.
    fn open(&self, opening: &Opening) -> Result<Box<dyn Node>, Error>;
}

/// How a node is to be opened.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The address that peers reach it at.
    pub at: IpAddr,
    /// How its threads wait.
    pub poll: PollMode,
    /// Whether clients come.
    pub serve: bool,
    /// Threads that will call [`Node::serve`]: 1 or more.
    pub receivers: usize,
    /// Rate of the link in Mbit/s; 0 leaves it to the transport to find out.
    pub link_mbps: u32,
    /// Longest IP packet in bytes.
    pub mtu: usize,
    /// What a receiver does with each request before it answers.
    pub work: Work,
    /// Parameters of the transport, by name.
    pub parameters: Vec<(String, u64)>,
}

impl Opening {
    /// On this host alone, with one receiver and default parameters.
    #[must_use]
    pub const fn on_loopback(poll: PollMode, serve: bool) -> Self {
        Self {
            at: IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
            poll,
            serve,
            receivers: 1,
            link_mbps: 0,
            mtu: 9000,
            work: Work::NONE,
            parameters: Vec::new(),
        }
    }
}

/// One host's end of a transport. Its threads share it.
pub trait Node: Send + Sync {
    /// Where clients reach it.
    fn address(&self) -> SocketAddr;

    /// Echoes requests, each as soon as it is complete, until `stop` is asked. Called by as many threads
    /// as [`Opening::receivers`] says, each with another `receiver`, counted from 0.
    ///
    /// # Errors
    ///
    /// The system refuses something.
    fn serve(&self, receiver: usize, stop: &Stop) -> Result<(), Error>;

    /// Ends [`Node::serve`], in every thread, also in those that sleep. `stop` has been asked before.
    fn shutdown(&self);

    /// What the transport has counted so far, by name.
    fn counters(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }

    /// A client of `peers` that never has more than `outstanding` requests under way. Connections, if
    /// there are any, are there when this returns.
    ///
    /// # Errors
    ///
    /// The system refuses something, or a peer does not answer.
    fn connect(&self, peers: &[SocketAddr], outstanding: usize) -> Result<Box<dyn Client>, Error>;
}

/// The client as the load generator drives it, from one thread.
pub trait Client {
    /// Begins a request with a payload of `size` bytes to the peer of that number. `id` names it until its
    /// reply is complete; ids are smaller than the number of requests that may be outstanding.
    ///
    /// # Errors
    ///
    /// The system refuses something, or the peer is gone.
    fn start(&mut self, id: u32, peer: usize, size: u32) -> Result<(), Error>;

    /// Does what can be done now: sends, receives, adds the ids of requests that have ended to `ended`. If
    /// nothing can be done it waits for something to happen, at most as long as `wait`; zero never waits.
    /// May return earlier than that, with nothing.
    ///
    /// # Errors
    ///
    /// The system refuses something, a peer is gone, or a reply is not as long as its request.
    fn poll(&mut self, wait: Duration, ended: &mut Ended) -> Result<(), Error>;
}

/// Requests that have ended, by their ids.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// Those with a reply.
    pub completed: Vec<u32>,
    /// Those that the server refused, because it has more than it can do.
    pub refused: Vec<u32>,
    /// Those that will never have a reply for another reason.
    pub failed: Vec<u32>,
    /// What the transport said of the first one that failed.
    pub why: Option<String>,
}

impl Ended {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.completed.is_empty() && self.refused.is_empty() && self.failed.is_empty()
    }

    /// Why a request has no reply, if there is one that has none.
    pub fn problem(&self) -> Option<String> {
        self.why.clone().or_else(|| (!self.refused.is_empty()).then(|| Self::REFUSED.to_owned()))
    }

    /// What is said of a request that was refused.
    pub(crate) const REFUSED: &str = "the server refused a request: it is overloaded";
}

/// What can be set of apus by name, and whether values are in range.
pub use self::apus::{check_parameters, parameters};

/// The transport of that name: `apus`, or `tcp`, `tcp-pool[=N]` or `tcp-per-request`, each of these with
/// `:CONGESTION_CONTROL` behind it or without.
///
/// # Errors
///
/// There is none of that name, or the kernel does not offer that congestion control.
pub fn parse(name: &str) -> Result<Box<dyn Transport>, Error> {
    if name == Apus::NAME {
        return Ok(Box::new(Apus));
    }
    let tcp: Option<Tcp> = name.parse().ok();
    let problem = format!(
        "there is no transport `{name}`; try apus, tcp, tcp-pool=4 or tcp-per-request, and for TCP with \
         another congestion control tcp:bbr"
    );
    require(tcp.is_some(), "transports", &problem)?;
    let tcp = tcp.expect("checked above");
    tcp.check()?;
    Ok(Box::new(tcp))
}
