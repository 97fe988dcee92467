//! Handshakes: how two endpoints come to share keys, as a state machine without IO or clock.
//!
//! ```text
//!   client                                                    server
//!     | -- HELLO: ClientHello, padded to 1,200 bytes ------------> |   under load: RETRY with a cookie, no state
//!     | <------------- HELLO, FINISH: ServerHello .. Finished ---- |
//!     | -- FINISH: Certificate .. Finished ----------------------> |
//!     | -- sealed packets of the protocol -----------------------> |
//!     | <------------------------------- READY, tickets, sealed -- |   until then FINISH is sent again
//! ```
//!
//! A handshake replaces the association with its peer when it is complete, and changes nothing before that: a forged HELLO, a
//! lost one or one that is repeated later costs a bounded amount of work.
//!
//! # Invariants
//!
//! - **HANDSHAKE-1** Until a client has shown that it receives at its address, it is sent at most three times the bytes that it has sent.
//! - **HANDSHAKE-2** Handshakes in progress, peers, and bytes per handshake are bounded by [`Limits`].
//! - **HANDSHAKE-3** Of two handshakes that meet, the one with the higher id goes on, and the other one waits; once. One whose keys are in use at
//!   its client goes on in any case, as long as its server may be about to read FINISH (SEAL-15). While one waits, its answers are not
//!   read, and an end that answers a handshake with a lower id sends a HELLO of its own only 200 ms after the last answer: two never end in keys at their clients.
//! - **HANDSHAKE-4** Keys do not give way to those of a handshake that began earlier at this end (SEAL-16).
//! - **HANDSHAKE-5** Keys that both ends have do not give way: an end that is asked for others although it has some shows that it has them, sealed,
//!   and the end that has asked keeps them (SEAL-17).

mod client;
mod cookie;
mod flight;
mod refusals;
mod server;
mod stream;
mod table;

pub use refusals::Refusals;
pub use table::{Datagram, Established, Handshakes, Limits, SealEvent};
