//! Common parts of all peer programs: the work, its measurement, and their processes.
//!
//! A *peer* is a library or protocol that a user would pick instead of apus. Its program follows
//! the best example of its project, and calls [`run`] with two functions: a server, and a client
//! that connects to servers.
//!
//! ```text
//!   description  a program's description of its peer
//!   work         the work, and the waiting mode of a process
//!   message      contents of requests and replies
//!   place        addresses and names of servers
//!   waiting      attempts of a process that polls or sleeps
//!   executor     runtime of clients
//!   connector    the client of a peer
//!   measured     measurements
//!   calls        clients whose calls are futures, and asynchronous servers
//!   connection   clients that send and receive
//!   caller       clients that await all of their servers together
//!   node         a peer as a transport: server and client of several others
//!   memory       memory of a server for its connections
//!   program      the main function; servers and clients in separate processes
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
