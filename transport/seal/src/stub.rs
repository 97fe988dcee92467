//! Handshakes and a cipher that protect nothing, for simulators and fuzzers: quick, and the same in each run.
//!
//! The cipher binds a packet to its key, number, header and payload by a checksum, so that a checker sees everything that a
//! real one would refuse; and who knows a key can open and forge, so that a simulated host can learn old keys.

mod cipher;
mod negotiation;

pub use cipher::{StubCipher, StubKeys};
pub use negotiation::{StubNegotiator, StubPolicy};
