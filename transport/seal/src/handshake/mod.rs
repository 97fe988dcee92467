//! Handshakes: a sans-IO state machine that gives two endpoints shared keys.
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
//! A complete handshake replaces the association with its peer; an incomplete one changes no keys.
//! A forged, lost or replayed HELLO therefore costs a bounded amount of work.
//!
//! Times are [`std::time::Duration`]s since an origin that the caller chooses, and never decrease.
//!
//! # Invariants
//!
//! - **HANDSHAKE-1** Until a client has proved that it receives at its address, it is sent at most
//!   three times the bytes received from it.
//! - **HANDSHAKE-2** [`Limits`] bounds the handshakes in progress, the peers, and the handshakes
//!   started per second; a handshake's buffers are bounded as well.
//! - **HANDSHAKE-3** If both ends start a handshake with each other, one of the two leads to keys
//!   and the other one ends (SEAL-15). A HELLO with id `other` reaches an end whose own handshake
//!   with that peer has the id `own`:
//!   - `own` complete (its keys are in use, READY is missing): the HELLO is dropped until FINISH
//!     has been sent four times, and answered after that.
//!   - `own` incomplete, `other < own`, and `own` is not resting or rests for less than 200 ms
//!     more: the HELLO is dropped.
//!   - Otherwise the HELLO is answered. If it starts a new handshake and `own` is incomplete, `own`
//!     rests for a second; it does so once.
//!
//!   A resting handshake sends no packets and reads no answers. It is removed when the other
//!   handshake completes. A handshake that starts while this end answers handshakes of the same
//!   peer first rests until 240 ms after the newest of these arrived.
//! - **HANDSHAKE-4** A handshake that started earlier at this end never replaces the keys of one
//!   that started later (SEAL-16).
//! - **HANDSHAKE-5** Keys that both ends hold are kept. An end that receives a HELLO although it
//!   has keys proves that with a sealed READY, and the client then drops its handshake (SEAL-17).

mod client;
mod cookie;
mod flight;
mod refusals;
mod server;
mod stream;
mod table;

pub use refusals::Refusals;
pub use table::{Datagram, Established, Handshakes, Limits, SealEvent, ServerLife};
