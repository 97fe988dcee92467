//! How does a process tell others what its endpoints do?
//!
//! Every process that has an endpoint listens on a unix socket in a folder of its user, and answers one request per
//! connection: its counters, its live RPCs, its time trace. `apus metrics`, `apus top` and `apus trace` ask; [`processes`] and
//! [`Process::ask`] are for other tools.
//!
//! ```text
//!   Presence (one per endpoint) ─▶ Service: socket, thread ─▶ request ─▶ its row in REQUESTS ─▶ answer
//!   processes() ─▶ Process ─▶ ask("metrics") ──────────────────┘
//! ```
//!
//! - **Who may ask:** processes of the same user, and root. The folder belongs to the user and is closed to others (0700), and
//!   the kernel says who is at the other end of a connection (`SO_PEERCRED`). How an endpoint works cannot be changed from
//!   outside; what can be is whether the time trace goes on or is frozen.
//! - **Where:** `$APUS_RUNTIME_DIR` if that is set, else `$XDG_RUNTIME_DIR/apus`, else `/tmp/apus-UID`; the name is the process id.
//! - **What it costs:** a thread that sleeps, two descriptors, and a file that goes with the last endpoint; a fraction of a millisecond
//!   when the first endpoint of a process starts, and when the last one ends. What a killed process
//!   has left is removed by the next one that starts or looks.
//! - **How to do without:** [`EndpointBuilder::observable`](crate::EndpointBuilder::observable), or `APUS_LIVE=0` in the environment. If the system
//!   refuses something, endpoints work without it.

mod client;
mod folder;
mod presence;
mod requests;
mod service;
mod tracing;

pub use client::{Error, Process, processes};
pub use requests::{RpcRow, own};
pub use tracing::TraceStatus;

pub(crate) use presence::Presence;
