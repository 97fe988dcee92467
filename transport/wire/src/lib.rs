//! The wire format of Homa packets.
//!
//! One packet is a 28-byte common [`Header`] and a [`Body`] that depends on its [`Kind`]; a DATA
//! packet ends with a piece of a message. Two [`Profile`]s share this layout:
//!
//! - [`Profile::Kernel`]: IP protocol 146, byte for byte the format of the Linux kernel module.
//! - [`Profile::Udp`]: the same header inside a UDP datagram. The bytes that only exist to resemble
//!   TCP carry a version, flags, an incarnation, a low-water mark and features ([`UdpFields`]).
//!
//! [`Packet::parse`] turns untrusted bytes into a [`Packet`], whose types can be trusted, and
//! [`Packet::all`] a datagram into all of its packets. [`Packet::emit_header`] is the reverse.
//!
//! # Invariants
//!
//! - **CODEC-1** Parsing never panics and never reads past the slice, whatever the bytes are
//!   (`WIRE-6`).
//! - **CODEC-2** A parsed DATA packet lies inside its message: `offset + payload.len() <=
//!   message_length`. Its payload is empty only if the message is, which the kernel profile
//!   excludes.
//! - **CODEC-3** Packets written by this crate or the kernel module re-emit to the same bytes,
//!   including the fields that are ignored on receipt (`WIRE-7`).
//!
//! No allocation, no dependencies, no `unsafe`, `no_std`.
//!
//! Source of the layout: `docs/spec/wire.md` and `udp-profile.md` (requirements `WIRE-*`).
//!
//! # Sources
//!
//! HM `file` `symbol` in comments is that symbol of the Linux kernel's Homa module
//! (PlatformLab/HomaModule, commit 9edb958). `docs/reference` in the repository has the facts, and
//! the figures of papers that are cited.

#![no_std]
#![forbid(unsafe_code)]

mod ack;
mod bytes;
mod cutoffs;
mod data;
mod ended_client;
mod error;
mod features;
mod grant;
mod header;
mod kind;
mod lengths;
mod older;
mod packet;
mod packets;
mod profile;
mod refusal;
mod resend;
mod sealed;
mod sender_id;
mod waiting;

pub use ack::{Ack, AckList, MAX_ACKS};
pub use cutoffs::Cutoffs;
pub use data::{Data, WIRE_OVERHEAD};
pub use ended_client::acknowledge_for_ended_client;
pub use error::ParseError;
pub use features::Features;
pub use grant::Grant;
pub use header::{Dialect, Header, KernelFields, UdpFields};
pub use kind::Kind;
pub use lengths::{DATA_HEADER_LEN, HEADER_LEN, HeaderBuffer, MAX_HEADER_LEN};
pub use older::OlderLayout;
pub use packet::{Body, Packet};
pub use packets::{MAX_PACKETS, Packets, announced_len};
pub use profile::{Flags, Profile, UDP_VERSION};
pub use refusal::Refusal;
pub use resend::{EVERYTHING, Resend};
pub use sealed::{SEALED_VERSION, SealKind, SealedHeader, is_sealed};
pub use sender_id::{Role, SenderId};
pub use waiting::Waiting;

/// Number of priority levels that the protocol can name, 0 (lowest) to 7.
///
/// Source: docs/reference/homa-module.md, *Packet types*, SIGCOMM 2018 section 4 (switches offer
/// eight).
pub const PRIORITIES: usize = 8;
