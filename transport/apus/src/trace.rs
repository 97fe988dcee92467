//! The time trace: a flight recorder of the threads of all endpoints, on by default.
//!
//! Every thread that works for an endpoint records events into a ring in memory, at about 10 ns per
//! record: polls, sends, sleeping and waking, rare events such as retransmissions, and all stages
//! of one RPC in 256. After an incident the rings still hold the events before it: [`freeze`] them,
//! write them to a file with [`dump_to`], and [`resume`]. `apus trace` analyses such files, also
//! files of several hosts together. All endpoints of a process share one trace, and the functions
//! of this module concern all of them.
//!
//! ```
//! use apus::{Endpoint, trace};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! trace::set_sampling(trace::Sampling::All); // every RPC instead of one in 256
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
//! trace::resume();
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Triggers
//!
//! [`EndpointBuilder::freeze_triggers`](crate::EndpointBuilder::freeze_triggers) sets which events
//! freeze the trace: a slow call, a restart, a lost packet.
//! [`EndpointHandle::freeze_peers`](crate::EndpointHandle::freeze_peers) also freezes the traces of
//! peers that [allow it](FreezeTriggers::obey_peers); [`FreezeTriggers::freeze_peers`] does so on
//! every trigger.
//!
//! With [`EndpointBuilder::trace_files`](crate::EndpointBuilder::trace_files) a thread writes each
//! such freeze to a file and resumes recording. [`saved_files`] returns the number of written
//! files.
//!
//! # Privacy
//!
//! A trace has the lengths of messages and the addresses of peers, and no payload.

pub use apus_trace::auto_save::{SavedFiles, TraceFiles, saved_files};
pub use apus_trace::clock::{Calibration, ClockReading, ClockSource};
pub use apus_trace::event::{EventScope, Field, FieldSource, Unit};
pub use apus_trace::recorder::{
    ParseSamplingError, Status, dump_to, freeze, frozen, resume, sampling, set_sampling, snapshot,
    status,
};
pub use apus_trace::{
    Event, FileError, FreezeReason, Frozen, Head, Peer, PeerIndex, Record, Rpc, Sampling, Side,
    Thread, Trace,
};

use std::time::Duration;

/// The events that freeze the process's trace. All are disabled by default.
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
    pub(crate) freeze_peers: bool,
    pub(crate) obey_peers: bool,
}

impl FreezeTriggers {
    /// Returns a set without triggers.
    pub const fn new() -> Self {
        Self {
            slow: None,
            restart: false,
            lost_packet: false,
            freeze_peers: false,
            obey_peers: false,
        }
    }

    /// Freezes the trace when a call ends that took longer than `time`, from its acceptance by the
    /// endpoint until its response was complete. Every call counts, sampled or not, over the
    /// network or through shared memory. The clock is then read twice per call through shared
    /// memory, which costs 50 ns.
    pub const fn slow_rpc(mut self, time: Duration) -> Self {
        self.slow = Some(time);
        self
    }

    /// Sets whether the trace freezes when a request is retransmitted from its start, because its
    /// server did not recognise it or was restarted.
    pub const fn restart(mut self, freeze: bool) -> Self {
        self.restart = freeze;
        self
    }

    /// Sets whether the trace freezes when a packet is retransmitted, by this endpoint or by a
    /// peer: it was lost, or so late that the receiver sent a RESEND.
    pub const fn lost_packet(mut self, freeze: bool) -> Self {
        self.lost_packet = freeze;
        self
    }

    /// Sets whether a triggered freeze is passed on to peers. It costs a packet, or a word in
    /// shared memory, per peer.
    pub const fn freeze_peers(mut self, freeze: bool) -> Self {
        self.freeze_peers = freeze;
        self
    }

    /// Sets whether peers may freeze this trace: only those with a session or with shared memory,
    /// that is a client that was served or a server that responded. Such a freeze is not passed on
    /// to other peers.
    pub const fn obey_peers(mut self, obey: bool) -> Self {
        self.obey_peers = obey;
        self
    }

    /// Returns the duration in nanoseconds beyond which a call is slow; `u64::MAX` if the trigger
    /// is disabled.
    pub(crate) fn slow_nanos(&self) -> u64 {
        self.slow.map_or(u64::MAX, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }
}
