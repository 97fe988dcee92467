//! Calls to peers on the same host, through memory that both processes map ([`apus_local`]).
//!
//! The endpoint detects automatically whether a peer's address is on this host and whether the peer
//! agrees. The first calls to a peer use the network while the connection is made; later ones use
//! shared memory. The application sees no difference but the time.
//!
//! ```text
//!   Core::call ─▶ Routes: a pair? ─┬ no ──▶ Network ─▶ driver         (core lock)
//!                                  └ yes ─▶ Pair::send                (core lock, send lock of the pair)
//!   Core::pair_to, pair_of_client ─▶ Pair::batch                      (the same locks, for several messages)
//!   Locked::drop ─▶ Path::connect                                     (no lock)
//!   pass ─▶ Receiver: Local::receive_into ─▶ Arrivals                 (receive locks of the pairs, one by one)
//!        ─▶ LocalContext::handle ─▶ Inbox, Calls                      (core lock)
//! ```
//!
//! # Promises that hold on both paths
//!
//! - **At most once.** If a pair ends before the response to a call arrives, the call fails if the
//!   server may have read the request. If not, or if the call is idempotent, it is repeated over
//!   the network.
//! - **Limits.** `max_client_rpcs` and `max_receive_bytes` count both paths together,
//!   `max_server_rpcs` each of them. `max_send_bytes_per_peer` and `max_receive_bytes_per_peer`
//!   bound the contents of a pair. Requests beyond the bound of the backlog are refused on both
//!   paths ([`Backlog`](crate::engine::state::Backlog)).
//! - **Deadlines and cancelling.** A call ends here at once; the server is notified.
//!
//! # Lock order
//!
//! The core lock comes before the locks of [`apus_local`] (registry, pairs). Messages are read
//! without the core lock.
//!
//! # Invariants
//!
//! - **LOCALCALL-1** The end of a call is accepted only from the pair that the call was sent over.
//! - **LOCALCALL-2** [`ServedRequests`](served_requests) counts the requests received through
//!   shared memory that have neither been answered nor dropped.

mod calls;
mod clients;
mod context;
mod cork;
mod outstanding_calls;
mod path;
mod requests;
mod routes;
mod served_requests;
mod state;

pub(crate) use calls::LocalCallOptions;
pub(crate) use context::LocalContext;
pub(crate) use path::{ConnectStart, Path};
pub(crate) use state::LocalState;
