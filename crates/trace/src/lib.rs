//! Where do the microseconds of an RPC go?
//!
//! Each thread that does something for a message writes a [`Record`] of 32 bytes into a ring of its own: when, what
//! ([`Event`]), for which RPC. That costs some nanoseconds, so it is always compiled in. When something strange has
//! happened the rings are frozen, and what they hold is written to a file, a [`Trace`]; several hosts' files can be
//! laid side by side.
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
//! # Which RPCs
//!
//! What concerns a batch of packets, or a thread, is always recorded; what concerns a single RPC only if the RPC is
//! [traced](recorder::is_traced). That follows from its id alone, so that both hosts choose the same ones.
//!
//! # Modules
//!
//! [`event`] is the vocabulary, [`recorder`] what the process records, `ring` and `threads` where to, `clock` and
//! `tsc` what a tick is, [`trace`](Trace) and [`file`](FileError) what is kept of it, [`keep`] which files that leaves behind by
//! itself. docs/adr/0026 says why it is like this.

#![deny(unsafe_code)]

pub mod clock;
pub mod event;
mod file;
pub mod keep;
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
pub use peers::{Peer, PeerIndex};
pub use record::{RECORD_LEN, Record, Rpc, Side};
pub use recorder::{FreezeReason, Sampling};
pub use trace::{Frozen, Head, Thread, Trace};
