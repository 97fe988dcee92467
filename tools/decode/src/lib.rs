//! What do recorded packets say?
//!
//! [`Decoder`] reads a capture, in any of the formats that tcpdump, Wireshark and `apus_driver`'s recorder write,
//! and yields the Homa packets in it, of both wire profiles of `docs/spec/wire.md`: in words
//! ([`Packet::words`]), as JSON ([`json::packet`]), and as values. Each [`Packet`] knows its RPC, so that a response
//! is linked to its request, and what the packets before it tell about it ([`Note`]): bytes seen before, gaps, how far a
//! grant goes beyond the last one, who asked for a retransmission.
//!
//! ```text
//!   decoder              packets of a capture, one after the other
//!     ├ recording        records of pcap and pcapng files; where they are damaged
//!     ├ frame            the IP packet in a record
//!     ├ datagram         what the IP packet carries: a datagram that may be ours, an ICMP message about one
//!     ├ merged           where one packet ends that offload has merged with others
//!     ├ packet           one packet: its fields, or what is wrong with it
//!     └ rpc, message     RPCs as the capture shows them: what a packet means for its own
//!   words, json          a packet for people and for machines
//!   filter, summary      which packets; all of them together
//! ```
//!
//! `dissector/apus.lua` says the same in Wireshark; `tests/dissector` holds the two against each other.
//!
//! # Invariants
//!
//! - **D1** No file makes the decoder panic or hang, and memory is bounded by what the file holds: an error names
//!   the place, and what came before it has been decoded.
//! - **D2** What is said about a packet depends on the packets before it alone.

#![forbid(unsafe_code)]

mod datagram;
mod decoder;
mod error;
mod filter;
mod frame;
pub mod json;
mod merged;
mod message;
mod packet;
mod recording;
mod rpc;
mod summary;
mod words;

pub use decoder::{Decoder, Skipped};
pub use error::Error;
pub use filter::{Filter, Type, UnknownType};
pub use message::{Half, Message};
pub use packet::{Content, Packet, Quoted, Verdict};
pub use rpc::{Links, Note, Rpc, RpcIndex};
pub use summary::{OfType, Summary, Times};
pub use words::{Words, duration};
