//! Endpoints that call each other over a network that loses, duplicates, delays and reorders.
//!
//! One seed decides everything: sizes, faults, crashes, service times. After each run it must hold
//! that
//!
//! - every call ended with exactly one event (invariant CORE-3, requirement RPC-3),
//! - every response belongs to its request, byte by byte,
//! - no request was executed twice, however late a duplicate arrived (requirement AMO-2),
//! - a failed call told the truth about its execution (requirement AMO-5),
//! - no table holds any state (invariant CORE-4).
//!
//! This holds for all inputs of a fuzzer: [`corpus`] replays its findings. And it does not matter
//! how much of the messages is kept: [`keep_only`].

mod corpus;
mod dice;
mod flood;
mod handle_packet;
mod keep_only;
mod long_packets;
mod operations;
#[path = "../../../../fuzz/replay.rs"]
mod replay;
mod restarts;
mod scenarios;
mod world;
