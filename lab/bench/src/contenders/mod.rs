//! Transports under test, and their load generators.
//!
//! A [`Contender`](contender::Contender) moves messages between a client and a server; each
//! experiment measures several of them, one after the other. apus is used through its public
//! interface, like in an application. [`apus_measure`] provides the plan, the meter and the
//! exchange of two endpoints. The baselines are UDP, TCP and unix sockets, as fast as we can make
//! them.
//!
//! ```text
//!   contender           interface of a contender
//!   apus, baseline      one request type, one client, one server
//!   keys                throw-away keys of encrypting contenders
//!   shared_words        memory shared by two processes, as atomics
//!   transport, load     requests and replies of any size between many hosts; open and closed loops
//! ```

pub mod apus;
pub mod baseline;
pub mod contender;
pub mod keys;
pub mod load;
#[allow(unsafe_code, reason = "memory that two processes map")]
pub mod shared_words;
pub mod transport;
