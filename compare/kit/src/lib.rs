//! What the programs of all peers have in common: the work, its measurement, and their processes.
//!
//! A *peer* is a library or protocol that a user would pick instead of apus. Its program is written as its own project writes its
//! best example, and calls [`run`] with two functions: a server, and a client that makes the calls of a [`Client`].
//!
//! ```text
//!   description  what a program says about its peer
//!   work         the work, and how a process waits
//!   message      contents of requests and replies
//!   place        addresses and names of servers
//!   waiting      attempts of a process that polls or sleeps
//!   program      the main function; servers and clients in processes of their own
//!   connection   measures a client that sends and receives
//!   calls        measures a client whose calls are futures
//!   measured     what was measured
//! ```

mod calls;
mod connection;
mod description;
mod measured;
mod message;
mod place;
mod program;
mod waiting;
mod work;

pub use apus_contenders::keys::ThrowAwayKeys;
pub use calls::{measure_calls, serve_async};
pub use connection::{Connection, measure_connection};
pub use description::{Class, Description, Waits};
pub use measured::Measured;
pub use message::{MAX_LENGTH, answer, number};
pub use place::{free_address, name_of};
pub use program::{Client, JOB, Peer, Server, Setup, Side, run};
pub use waiting::when_ready;
pub use work::{Wait, Work};

/// Why a measurement fails.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
