//! Where do the microseconds go?
//!
//! Every thread that works for an endpoint records what it does, into a ring in memory, at 10 ns or so a record: looks
//! at the network and sends, sleeping and waking, anything that should be rare, and each stage of one RPC in 256. It is
//! on from the beginning, for all endpoints of the process. When something strange has happened, the rings still
//! hold what led to it: [`freeze`] them, and write them to a file with [`dump_to`]. `apus trace` makes sense of such
//! files, also of several hosts' together.
//!
//! ```
//! use apus::{Endpoint, trace};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! trace::set_sampling("all".parse()?); // each RPC, and not one in 256
//! # let server = Endpoint::bind("127.0.0.1:0")?;
//! # let address = server.local_addr();
//! # std::thread::spawn(move || while let Ok(request) = server.recv_request() { let _ = request.reply("HELLO"); });
//! let client = Endpoint::client()?;
//! client.call(address, "hello")?;
//!
//! trace::freeze(trace::FreezeReason::Demand);
//! # let folder = std::env::temp_dir().join(format!("apus-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let file = folder.join("client.tt");
//! trace::dump_to(&file)?;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Freezing by itself
//!
//! [`EndpointBuilder::freeze_triggers`](crate::EndpointBuilder::freeze_triggers) sets what freezes the trace without anybody being there:
//! a slow call, a restart, a lost packet. [`Endpoint::freeze_peers`](crate::Endpoint::freeze_peers) freezes those of
//! the peers, too, if they are set up to heed that ([`FreezeTriggers::obey_peers`]); [`FreezeTriggers::freeze_peers`] does so by itself.
//!
//! A process that nobody looks after leaves files behind: with [`EndpointBuilder::trace_files`](crate::EndpointBuilder::trace_files) each such
//! freeze is written into a folder by a thread of its own, and recording goes on. [`saved_files`] says what became of that.
//!
//! # What is not in it
//!
//! Payload. Of messages, their lengths; of peers, their addresses.

pub use apus_trace::auto_save::{SavedFiles, TraceFiles, saved_files};
pub use apus_trace::recorder::{
    ParseSamplingError, Status, dump_to, freeze, frozen, sampling, set_sampling, snapshot, status,
    thaw,
};
pub use apus_trace::{
    Event, FileError, FreezeReason, Frozen, Head, Peer, PeerIndex, Record, Rpc, Sampling, Side,
    Thread, Trace,
};

use std::time::Duration;

/// What freezes the process's trace by itself. Nothing does unless it is said.
///
/// ```
/// use apus::{Endpoint, trace::FreezeTriggers};
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let triggers = FreezeTriggers::new().slow_rpc(Duration::from_millis(10)).restart(true);
/// let endpoint = Endpoint::builder().freeze_triggers(triggers).bind("127.0.0.1:0")?;
/// # drop(endpoint);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct FreezeTriggers {
    pub(crate) slow: Option<Duration>,
    pub(crate) restart: bool,
    pub(crate) lost_packet: bool,
    pub(crate) tell_peers: bool,
    pub(crate) heed_peers: bool,
}

impl FreezeTriggers {
    /// None.
    pub const fn new() -> Self {
        Self {
            slow: None,
            restart: false,
            lost_packet: false,
            tell_peers: false,
            heed_peers: false,
        }
    }

    /// A call, traced or not, over the network or through memory, took longer than this from the moment at which the endpoint
    /// got it until its whole response was here. It freezes the trace when it ends, not when the time is over. Calls through
    /// memory then cost two looks at the clock more, 50 ns.
    pub const fn slow_rpc(mut self, time: Duration) -> Self {
        self.slow = Some(time);
        self
    }

    /// A request had to be sent again from its start since the server did not know it, or the server has been restarted.
    pub const fn restart(mut self, yes: bool) -> Self {
        self.restart = yes;
        self
    }

    /// A packet was sent again, by us or by a peer: it was lost, or so late that it was asked for.
    pub const fn lost_packet(mut self, yes: bool) -> Self {
        self.lost_packet = yes;
        self
    }

    /// When one of these freezes the trace, peers are asked to freeze theirs, with a packet or a word in shared memory each.
    pub const fn freeze_peers(mut self, yes: bool) -> Self {
        self.tell_peers = yes;
        self
    }

    /// Peers may freeze our trace. Only those with whom there is a session, or shared memory: a client that has been
    /// served, or a server that has served us. It does not travel on.
    pub const fn obey_peers(mut self, yes: bool) -> Self {
        self.heed_peers = yes;
        self
    }

    /// Nanoseconds after which a call is slow.
    pub(crate) fn slow_nanos(&self) -> u64 {
        self.slow.map_or(u64::MAX, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }
}
