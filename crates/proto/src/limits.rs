//! Which limits are fixed, and do they fit together?
//!
//! Limits that a user may set are in [`crate::Config`]; these are structural. Each has a name, a
//! unit and a reason, and the relations between them are proved when the crate is compiled.

use std::ops::Range;

use apus_wire::{DATA_HEADER_LEN, Kind, MAX_ACKS, MAX_HEADER_LEN};

/// Gaps that an incoming message may have.
///
/// Ours: at 100 Gbit/s and with packets of 1.4 kB fewer than 1200 packets are under way, so that a sender
/// which follows the protocol cannot open more gaps; and the memory for the pieces between them stays
/// bounded. More are dropped and asked for again.
pub(crate) const MAX_GAPS: usize = 1_024;

/// Ranges of finished ids that are remembered per peer and direction.
///
/// Ours: between two ranges there is an RPC that lives, or one that was given up before it arrived.
/// Beyond this number the lowest gap is closed: its ids count as finished and are refused, which is
/// safe.
pub(crate) const MAX_ID_RANGES: usize = 4_096;

/// Blocks of finished ids that are remembered per peer in the kernel profile, where an id says little about how many
/// requests came before it.
///
/// Ours: as much memory as [`MAX_ID_RANGES`] take, 64 KiB; what that is enough for is said in `peer/sparse_ids`.
pub(crate) const MAX_ID_BLOCKS: usize = 4_096;

/// Payload bytes of a packet before the driver has said how long packets may be: an IPv6 packet of
/// 1500 bytes less IPv6 (40), UDP (8) and DATA headers.
pub(crate) const DEFAULT_PACKET_BYTES: usize = 1_500 - 40 - 8;

/// Smallest packet (header and payload) that a path must carry: IPv6's minimum MTU less its headers
/// (RFC 8200 section 5).
pub(crate) const MIN_PACKET_BYTES: usize = 1_280 - 40 - 8;

/// Packets in one burst; one segmentation-offload send of the Linux kernel carries 64.
pub(crate) const MAX_BURST_PACKETS: usize = 64;

/// Control packets that may wait for transmission.
///
/// Ours: one batch of received packets causes at most a few of them each, and the engine empties the
/// queue after each batch, so that this is only reached while the network takes nothing. All control
/// packets can be lost: timers repeat them.
pub(crate) const MAX_CONTROL_PACKETS: usize = 8_192;

/// Notes that may wait to be fetched.
///
/// Ours: a receive batch causes a few for each packet, and whoever wants them fetches them after each packet. Notes
/// are for looking at, so that losing further ones does no harm.
pub(crate) const MAX_NOTES: usize = 8_192;

/// RESENDs of one burst to a peer, whoever caused them. One burst is under way per peer at a time (row
/// T-5).
///
/// Ours: asks for at most 64 gaps, which is what one receive batch holds.
pub(crate) const MAX_RESEND_BURST: u32 = 64;

/// Data bytes that one RESEND burst may ask for, beyond its first RESEND.
///
/// Ours: `max_incoming` at 25 Gbit/s; retransmissions are not granted, so that their sum must be
/// bounded where they are asked for.
pub(crate) const MAX_RESEND_BYTES: u64 = 400_000;

/// How long the link is busy with what may be granted and not received, in microseconds, unless
/// `max_incoming` says otherwise. Source: the kernel's 400,000 bytes at its 25 Gbit/s.
pub(crate) const INCOMING_MICROS: u64 = 128;

/// The least that may be granted, however slow the link is: 10,000 bytes (`unsched_bytes_min`) of four
/// messages.
///
/// Ours, from sweeps at 27 and 40 Mbit/s (ADR 20): where the switch has no priorities, short messages wait for
/// whatever is granted. 80,000 bytes make their p99 one and a half times that of 40,000, and nothing better; with
/// 20,000 long messages begin to suffer.
pub(crate) const MIN_INCOMING: u64 = 40_000;

/// Silence is normal for as long as the link is busy with so many bytes: they may stand in the queues before
/// a packet, and go first.
///
/// Ours, because the kernel's 5 ms are made for fast links: they are 15 MB at its 25 Gbit/s and 40 full
/// packets at 100 Mbit/s, fewer than what may be granted and sent unscheduled. As much as 24 times the least that
/// may be granted.
pub(crate) const QUEUED_BYTES: u64 = 24 * MIN_INCOMING;

/// Questions (NEED_ACK with CONFIRM) about a held request that are sent without being asked for.
///
/// Ours, so that a forged address gets no more than three times what was sent in its name, IP and UDP
/// headers included (RFC 9000 section 8.1 allows as much): a stranger's shortest request and four
/// questions. Should all of them be lost, the client's RESENDs ask for more.
pub(crate) const MAX_QUESTIONS: u32 = 4;

/// Bytes of IPv4 and UDP headers around each packet.
const AROUND_PACKETS: usize = 20 + 8;

/// Longest time between two NEED_ACKs, in nanoseconds.
pub(crate) const MAX_NEED_ACK_INTERVAL: u64 = 100_000_000;

/// Length up to which memory for an incoming message is reserved in one piece; longer messages grow.
///
/// Ours: a claim of 64 MB in one packet costs nothing until the bytes arrive (CAP-13).
pub(crate) const RESERVE_AT_ONCE: usize = 1 << 20;

/// Lengths of messages whose memory is kept for the next ones.
///
/// Ours: allocators keep shorter ones by themselves (glibc up to 128 kB); longer ones grow while they
/// arrive ([`RESERVE_AT_ONCE`]).
pub(crate) const KEPT_LENGTHS: Range<usize> = 1 << 16..RESERVE_AT_ONCE + 1;

/// Most memory that is kept so. Ours: eight of the longest messages, as many as are granted at a time.
pub(crate) const MAX_KEPT_BYTES: usize = 8 << 20;

/// Peers looked at in one scan for idle ones, and time between two scans in nanoseconds. The kernel
/// evicts five per millisecond (row X-6).
pub(crate) const PEERS_PER_SCAN: usize = 256;
/// See [`PEERS_PER_SCAN`].
pub(crate) const PEER_SCAN_INTERVAL: u64 = 1_000_000_000;

const _: () = {
    assert!(MIN_PACKET_BYTES <= DEFAULT_PACKET_BYTES);
    // A packet has room for data.
    assert!(DATA_HEADER_LEN + 1_000 < MIN_PACKET_BYTES);
    // Any control packet fits into the smallest packet.
    assert!(MAX_HEADER_LEN <= MIN_PACKET_BYTES);
    // The answers to a full receive batch fit into the control queue.
    assert!(MAX_BURST_PACKETS * (MAX_ACKS + 2) < MAX_CONTROL_PACKETS);
    assert!(MAX_RESEND_BURST as usize <= MAX_GAPS);
    // The questions about the shortest request, against the request.
    let question = Kind::NeedAck.header_len() + AROUND_PACKETS;
    assert!(MAX_QUESTIONS as usize * question <= 3 * (DATA_HEADER_LEN + 1 + AROUND_PACKETS));
};
