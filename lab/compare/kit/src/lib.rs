//! What the programs of all peers have in common: the work, its measurement, and their processes.
//!
//! A *peer* is a library or protocol that a user would pick instead of apus. Its program is written as its own project writes its
//! best example, and calls [`run`] with two functions: a server, and a client that connects to servers.
//!
//! ```text
//!   description  what a program says about its peer
//!   work         the work, and how a process waits
//!   message      contents of requests and replies
//!   place        addresses and names of servers
//!   waiting      attempts of a process that polls or sleeps
//!   executor     runtime of clients
//!   connector    the client of a peer
//!   measured     what was measured
//!   calls        clients whose calls are futures, and servers that are
//!   connection   clients that send and receive
//!   caller       clients that await all of their servers together
//!   node         a peer as a transport: server and client of several others
//!   memory       memory of a server for its connections
//!   program      the main function; servers and clients in processes of their own
//! ```

mod caller;
mod calls;
mod connection;
mod connector;
mod description;
mod executor;
mod measured;
mod memory;
mod message;
mod node;
mod place;
mod program;
mod waiting;
mod work;

pub use apus_bench::contenders::keys::ThrowAwayKeys;
pub use caller::{Caller, InOrder, caller};
pub use calls::{calls, serve_async};
pub use connection::{Connection, connections};
pub use connector::Connector;
pub use description::{Class, Description, Waits};
pub use measured::Measured;
pub use memory::{Clients, MEMORY_JOB, MemorySetup, memory_agent};
pub use message::{MAX_LENGTH, answer, number};
pub use place::{free_address, name_of};
pub use program::{Client, JOB, Peer, Server, Setup, Side, run};
pub use waiting::when_ready;
pub use work::{Wait, Work};

/// Why a measurement fails.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
