//! Endpoints whose packets are sealed, over real sockets.

mod calls;
mod identities;
mod keys;
mod lifecycle;
mod metrics;
mod packets;
#[path = "../ports/mod.rs"]
mod ports;
mod secrecy;
