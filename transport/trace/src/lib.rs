//! Time traces: where the microseconds of an RPC go.
//!
//! Each thread that works on a message writes [`Record`]s of 32 bytes into its own ring: time,
//! [`Event`], and RPC. A record costs some nanoseconds, so recording is always compiled in. After a
//! problem the rings are frozen and written to a file, a [`Trace`]; the files of several hosts can
//! be merged.
//!
//! ```
//! use apus_trace::{Event, Rpc, Sampling, Side, Trace, recorder};
//!
//! recorder::set_sampling(Sampling::All);
//! let peer = recorder::peer("10.0.0.1:999".parse().unwrap(), "10.0.0.2:4000".parse().unwrap());
//! if recorder::is_traced(12) {
//!     recorder::record_rpc(Rpc::new(12, Side::Client, peer), Event::Call, 0, 100);
//! }
//! recorder::freeze(recorder::FreezeReason::Demand);
//!
//! let mut file = Vec::new();
//! recorder::snapshot().write(&mut file).unwrap();
//! let trace = Trace::read(&mut file.as_slice()).unwrap();
//! let records = &trace.threads[0].records;
//! assert_eq!((records[0].event(), records[0].b), (Some(Event::Call), 100));
//! ```
//!
//! # Sampling
//!
//! Events of a batch of packets, or of a thread, are always recorded; events of a single RPC only
//! if the RPC is [traced](recorder::is_traced). That follows from its id alone, so that both hosts
//! choose the same RPCs.
//!
//! # Modules
//!
//! [`event`] is the vocabulary. [`recorder`] controls the recording, with `ring` and `threads` as
//! its storage, and `clock` and `tsc` as its time. [`trace`](Trace) and [`file`](FileError) are the
//! recorded data, and [`auto_save`] writes files after problems. docs/adr/0013 gives the reasons.

#![deny(unsafe_code)]

pub mod auto_save;
pub mod clock;
pub mod event;
mod file;
mod freeze_reason;
mod peers;
mod record;
pub mod recorder;
mod ring;
mod sync;
mod threads;
mod trace;
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "reading the time stamp counter")]
mod tsc;

pub use event::Event;
pub use file::{FileError, VERSION};
pub use freeze_reason::FreezeReason;
pub use peers::{Peer, PeerIndex};
pub use record::{RECORD_LEN, Record, Rpc, Side};
pub use recorder::Sampling;
pub use trace::{Frozen, Head, Thread, Trace};
