//! Replay of the fuzzers' findings.
//!
//! The bodies of the fuzz targets are here, so that plain `cargo test` runs them; `fuzz/` at the
//! root of the repository feeds them with new inputs, and the tests of this crate with those that
//! are kept in `fuzz/corpus`. How to fuzz is in `fuzz/README.md`.

use crate::replay::replay;
use crate::{handle_packet, operations};

#[test]
fn handle_packet() {
    replay("handle_packet", handle_packet::run);
}

#[test]
fn operations() {
    replay("operations", operations::run);
}
