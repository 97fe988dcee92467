//! How do calls go to peers of the same host?
//!
//! Through memory that both processes map ([`apus_local`]), if the peer's address is on this host and it agrees. The
//! endpoint finds that out by itself: the first calls to a peer go over the network while it is greeted, and if
//! it answers, the others go through memory. Whoever calls sees no difference but the time.
//!
//! ```text
//!   Submission ─▶ Routes: a pair? ─┬ no ──▶ Transport ─▶ network       (core lock)
//!                                  └ yes ─▶ Pair::send                 (core lock, sending lock of the pair)
//!   Locked::drop ─▶ Path::connect: who was to be greeted                 (no lock)
//!   pass ─▶ Receiver: Local::receive ─▶ LocalEvent                             (receiving locks of the pairs, one by one)
//!        ─▶ Core::handle_local ─▶ requests, calls                      (core lock)
//! ```
//!
//! # What is the same on both ways
//!
//! - **At most once.** If a pair ends before the response to a call came, the call fails if the server may have
//!   read the request; if not, or if the call was said to be idempotent, it goes over the network instead.
//! - **Limits.** `max_client_rpcs` and `max_receive_bytes` count both ways together, `max_server_rpcs` each of them; what
//!   a pair may hold of messages that are under way are `max_send_bytes_per_peer` and `max_receive_bytes_per_peer`.
//!   Too many requests that wait are refused, whichever way they came ([`super::backlog`]).
//! - **Deadlines and cancelling.** A call ends here at once; the server is told.
//!
//! # Lock order
//!
//! The core lock comes before those of [`apus_local`] (registry, pairs). Messages are read without the core lock.
//!
//! # Invariants
//!
//! - **W1** An end of a call is believed only of the pair that the call was sent over.
//! - **W2** `Underway::serving` is the number of requests that came through memory and have neither been answered nor
//!   let go.

mod calls;
mod cork;
mod path;
mod receiver;
mod requests;
mod routes;

pub(super) use calls::Underway;
pub(crate) use path::Path;
pub(crate) use receiver::Receiver;
