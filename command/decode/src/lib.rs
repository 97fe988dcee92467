//! Decoder for captured Homa packets.
//!
//! [`Decoder`] reads a capture in any of the formats that tcpdump, Wireshark and `apus_driver`'s
//! recorder write, and yields its Homa packets, in both wire profiles of `docs/spec/wire.md`: as
//! values, as text ([`CapturedPacket::describe`]) and as JSON ([`json::packet`]). Each
//! [`CapturedPacket`] refers to its RPC, which links a response to its request. Its [`Note`] holds
//! facts derived from earlier packets: duplicate bytes, gaps, the number of bytes a grant adds, the
//! RESEND that caused a retransmission.
//!
//! ```text
//!   decoder              packets of a capture, in order
//!     ├ capture_file     records of pcap and pcapng files
//!     ├ frame            the IP packet in a record
//!     ├ datagram         the UDP datagram, Homa packet or ICMP error in an IP packet
//!     ├ offload          boundaries of packets merged by offload
//!     ├ unseal           sealed packets, opened with a key log
//!     ├ packet           one packet: its fields, or its violation of the wire format
//!     └ rpc, message,    RPCs and messages: links each packet
//!       note             to earlier ones
//!   description, json    a packet as text and as JSON
//!   filter, summary      selection of packets; totals of a capture
//! ```
//!
//! `dissector/apus.lua` decodes the same packets in Wireshark; `tests/decode/dissector.rs` compares
//! the two. `apus decode` is this crate's command line.
//!
//! # Invariants
//!
//! - **DECODER-1** No file makes the decoder panic or hang, and memory is bounded by the size of
//!   the file. An error names its offset, and all packets before it have been decoded.
//! - **DECODER-2** A packet's description depends only on the packet and on earlier packets.

#![forbid(unsafe_code)]

mod capture_file;
mod datagram;
mod decoder;
mod description;
mod error;
mod filter;
mod frame;
pub mod json;
mod message;
mod note;
mod offload;
mod packet;
mod rpc;
mod summary;
mod unseal;

pub use decoder::{Decoder, SkippedRecords};
pub use description::{Description, duration};
pub use error::Error;
pub use filter::{PacketFilter, PacketType, UnknownPacketType};
pub use message::{CapturedMessage, MessageKind};
pub use note::{Links, Note, RpcIndex};
pub use packet::{CapturedPacket, Content, QuotedPacket, Verdict};
pub use rpc::CapturedRpc;
pub use summary::{CompletionTimes, Summary, TypeCounts};
pub use unseal::{KeyLog, KeyLogError};
