//! The soak: real processes over each transport, while processes are killed, paused and restarted,
//! links fail, addresses and MTUs change, and disks fill up.
//!
//! ```text
//!   client 1 ──┐      ┌── server 1     never killed: their memory and descriptors are watched
//!              ├──────┤
//!   client 2 ──┘      └── server 2     killed and restarted
//!      │                     │
//!      └──────▶ ledger ◀─────┘         files: how each call ended; which calls were executed
//!                  │
//!                audit                 at the end: checks every byte and statement against the ledger
//! ```
//!
//! The transports have concurrent campaigns, each in its own network. A campaign has one fault at a
//! time; the next starts when every affected pair has had an answer.
//!
//! | file | content |
//! |---|---|
//! | `options`, `transport` | the options; the transports and their endpoints |
//! | `message`, `ledger` | contents of requests and replies; the record of them |
//! | `times`, `heap_file` | files of times; files of heap sizes |
//! | `client`, `server` | the processes under test |
//! | `heap` | the allocated bytes of a process |
//! | `witness` | plain UDP on the same network |
//! | `process` | what each process runs |
//! | `network` | namespaces, or the loopback interface |
//! | `fault` | the faults and their order |
//! | `crew`, `campaign` | the processes of one transport; their faults |
//! | `wall_clock` | steps of the wall clock |
//! | `signals` | Ctrl-C |
//! | `audit`, `trend` | checks of statements against the ledger; growth |
//! | `declaration` | the report: rows, tables, broken promises |
//! | `campaigns` | the campaigns of all transports |
//!
//! # Invariants
//!
//! - **SOAK-1** The lab signals and ends only processes that it started; namespaces and disks end
//!   with the last process in them.
//! - **SOAK-2** The records of a process outlive its death.
//! - **SOAK-3** A fault that is impossible in a network is named in the result.

mod audit;
mod campaign;
mod campaigns;
mod client;
mod crew;
mod declaration;
mod fault;
mod heap;
mod heap_file;
mod ledger;
mod message;
mod network;
mod options;
mod process;
mod server;
mod signals;
mod times;
mod transport;
mod trend;
mod wall_clock;
mod witness;

pub use campaigns::run;
pub use options::SoakOptions;

pub(crate) use process::{JOB, agent};
