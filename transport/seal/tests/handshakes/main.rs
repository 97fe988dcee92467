//! Handshakes between two endpoints over a network in memory: with TLS, with the stub, and against
//! a plain TLS peer.

mod certificates;
mod crossing;
mod failures;
mod floods;
mod identities;
mod lives;
mod load;
mod network;
mod plain_tls;
mod rekeying;
