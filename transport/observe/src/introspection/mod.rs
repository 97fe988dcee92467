//! Inspection of live [apus](https://docs.rs/apus) processes: counters, live RPCs, senders and the
//! time trace, over a unix socket.
//!
//! Every process with an endpoint listens on a unix socket in a folder of its user, and responds to
//! one request per connection. `apus metrics`, `apus top` and `apus trace` are clients;
//! [`processes`] and [`Process`] serve other tools, and an application can [`publish`] its own
//! responses and [counters](publish_metrics). Applications find all of this in
//! `apus::introspection`.
//!
//! ```text
//!   Registration (one per endpoint) ─▶ service: socket, thread ─▶ request ─▶ its row in REQUESTS ─▶ response
//!   processes() ─▶ Query::all ─▶ exchange: "metrics" to each ──────┘              │
//!                                                         Observable: the endpoint's side
//! ```
//!
//! - **Access:** processes of the same user, and root. The folder belongs to the user and has mode
//!   0700, and the kernel identifies the process at the other end (`SO_PEERCRED`). No request
//!   changes how an endpoint works; requests can freeze and resume the time trace.
//! - **Place:** `$APUS_RUNTIME_DIR` if it is set, else `$XDG_RUNTIME_DIR/apus`, else
//!   `/tmp/apus-UID`; the name is the process id.
//! - **Cost:** a sleeping thread, two descriptors, and a file that is removed with the last
//!   endpoint; a fraction of a millisecond when the first endpoint of a process starts and when the
//!   last one ends. The file of a killed process is removed by the next process that starts or
//!   connects.
//! - **Opt-out:** `EndpointBuilder::observable` of `apus`, `APUS_LIVE=0` in the environment, or the
//!   cargo feature `introspection` of `apus`. If the system refuses a resource, endpoints work
//!   without this service.
//!
//! Rationale: an operator who needs this has not prepared for it, so it is on by default. An
//! abstract socket has no folder that keeps other users out, and each network namespace has its
//! own; counters in shared memory need a layout that all versions agree on; an HTTP port is open to
//! every user.

mod application;
mod client;
mod connection;
mod exchange;
mod folder;
mod process;
mod process_state;
mod query;
mod registration;
mod registry;
mod requests;
mod response;
mod rpc_row;
mod sender_row;
mod service;
mod topic;
mod trace_status;

pub use application::{PublishedMetrics, publish_metrics};
pub use client::processes;
pub use process::{Error, Process};
pub use query::Query;
pub use registration::Registration;
pub use registry::Observable;
pub use requests::own_snapshot;
pub use rpc_row::RpcRow;
pub use sender_row::{SenderInfo, SenderRow, Senders};
pub use topic::{Published, publish};
pub use trace_status::TraceStatus;
