//! Fixed limits.
//!
//! Limits that a user may set are in [`crate::Config`]; these are structural. Each has a name, a
//! unit and a reason, and the relations between them are checked when the crate is compiled.

use std::ops::Range;

use apus_wire::{DATA_HEADER_LEN, Kind, MAX_ACKS, MAX_HEADER_LEN};

/// Gaps that an incoming message may have.
///
/// Rationale: at 100 Gbit/s and with packets of 1.4 kB fewer than 1200 packets are in flight, so a
/// sender that follows the protocol cannot open more gaps. The memory for the pieces between them
/// stays bounded. Packets that would open more are dropped, and their bytes are requested again.
pub(crate) const MAX_GAPS: usize = 1_024;

/// Gaps that any incoming message may have. Chosen by us: short messages, whose packets may arrive in
/// any order, and the first packets of longer ones.
pub(crate) const FREE_GAPS: usize = 4;

/// Received bytes for which an incoming message may have another gap.
///
/// Rationale: a sender cuts messages into packets of more than 1,000 bytes, and each island holds at
/// least one of them. An island of a byte costs a hundred bytes of memory.
pub(crate) const BYTES_PER_GAP: usize = 256;

/// Ranges of finished ids that are remembered per peer and direction.
///
/// Rationale: between two ranges there is a live RPC, or one that was given up before it arrived.
/// Beyond this number the lowest gap is closed: its ids count as finished and are refused, which is
/// safe.
pub(crate) const MAX_ID_RANGES: usize = 4_096;

/// Blocks of finished ids remembered per peer in the kernel profile, where an id reveals little
/// about the number of earlier requests.
///
/// Chosen by us: as much memory as [`MAX_ID_RANGES`] take, 64 KiB; `peer/sparse_ids` explains for
/// how long that suffices.
pub(crate) const MAX_ID_BLOCKS: usize = 4_096;

/// Memory for finished ids that are kept one by one, over all clients, in bytes. One host gets half.
///
/// Chosen by us: eight times what gaps for `max_server_rpcs` live requests take by default.
pub(crate) const MAX_ID_MEMORY: u64 = 8 << 20;

/// Sessions that are considered when memory of finished ids must be freed. Chosen by us: little work
/// for a packet; each frees half of its memory.
pub(crate) const SESSIONS_PER_SEARCH: usize = 16;

/// Payload bytes of a packet before the driver has reported the longest packet: an IPv6 packet of
/// 1500 bytes less IPv6 (40), UDP (8) and DATA headers.
pub(crate) const DEFAULT_PACKET_BYTES: usize = 1_500 - 40 - 8;

/// Smallest packet (header and payload) that a path must carry: IPv6's minimum MTU (RFC 8200
/// section 5) less the headers of IPv6 (40) and UDP (8), and the tag of a sealed packet (16).
pub(crate) const MIN_PACKET_BYTES: usize = 1_280 - 40 - 8 - 16;

/// Packets in one burst; one segmentation-offload send of the Linux kernel carries 64.
pub(crate) const MAX_BURST_PACKETS: usize = 64;

/// Control packets that may wait for transmission.
///
/// Rationale: each received packet causes at most a few, and the engine empties the queue after
/// each batch, so the limit is only reached while the network accepts no packets. All control
/// packets can be lost: timers repeat them.
pub(crate) const MAX_CONTROL_PACKETS: usize = 8_192;

/// Most notes stored until they are fetched.
///
/// Rationale: each packet causes a few, and the engine fetches them after each packet. Notes are
/// for observation only, so losing further ones does no harm.
pub(crate) const MAX_NOTES: usize = 8_192;

/// RESENDs of one burst to a peer, over all messages. Each peer has at most one burst outstanding
/// (HM `homa_timer.c` `homa_timer_check_rpc`).
///
/// Chosen by us: requests at most 64 gaps, as many packets as one receive batch holds.
pub(crate) const MAX_RESEND_BURST: u32 = 64;

/// Data bytes that one RESEND burst may request, beyond its first RESEND.
///
/// Chosen by us: `max_incoming` at 25 Gbit/s. Retransmissions are not granted, so that their sum
/// must be bounded where they are requested.
pub(crate) const MAX_RESEND_BYTES: u64 = 400_000;

/// Microseconds of link time that granted and not received bytes may take, unless `max_incoming` is
/// configured. Source: the kernel's 400,000 bytes at its 25 Gbit/s.
pub(crate) const INCOMING_MICROS: u64 = 128;

/// The least that may be granted, however slow the link is: 10,000 bytes (`unsched_bytes_min`) of
/// four messages.
///
/// Chosen by us, from sweeps at 27 and 40 Mbit/s (docs/networks.md): where the switch has no
/// priorities, short messages wait for all granted bytes. 80,000 bytes make their p99 one and a
/// half times that of 40,000, without any benefit; with 20,000 long messages start to suffer.
pub(crate) const MIN_INCOMING: u64 = 40_000;

/// Silence is normal while the link is busy with this number of bytes: they may be queued before
/// a packet.
///
/// Chosen by us, because the kernel's 5 ms are made for fast links: they are 15 MB at its 25 Gbit/s
/// and 40 full packets at 100 Mbit/s, fewer than may be granted and sent unscheduled. 24 times the
/// smallest limit of granted bytes.
pub(crate) const QUEUED_BYTES: u64 = 24 * MIN_INCOMING;

/// NEED_ACKs outstanding per peer. Chosen by us: enough to free thousands of responses a second
/// whose acks were lost, and little for a busy peer.
pub(crate) const MAX_NEED_ACKS: u32 = 16;

/// Bytes that a message may always send at once. Chosen by us: "a few hundred bytes" in SIGCOMM
/// 2018 section 3.6; with its headers, such a packet is little longer than a control packet, so
/// that responses arrive no faster than requests leave.
pub(crate) const FIRST_BYTES: u32 = 128;

/// Timeouts of silence after which the client of a request in service is gone, if it does not
/// answer either.
///
/// Chosen by us: 5 s by default. A client that is stopped for a second, as by the migration of its
/// virtual machine, must not lose a call that lasts for minutes.
pub(crate) const CLIENT_GONE_TIMEOUTS: u64 = 5;

/// Longest time between two NEED_ACKs, in nanoseconds.
pub(crate) const MAX_NEED_ACK_INTERVAL: u64 = 100_000_000;

/// Length up to which memory for an incoming message is allocated in one piece; longer messages
/// grow.
///
/// Rationale: a claim of 64 MB in one packet is free until the bytes arrive (CAP-13).
pub(crate) const RESERVE_AT_ONCE: usize = 1 << 20;

/// Part of the receive budget, and of each host's share, that is left to short messages: one in
/// this number.
///
/// Chosen by us: 32 MiB of the default are 500 messages of 60,000 bytes, and two thirds of the
/// longest message.
pub(crate) const SHORT_SHARE: u64 = 8;

/// Resend intervals without progress after which a message returns the room for its missing bytes.
///
/// Chosen by us: 40 ms by default. A loss, or a sender that serves others first, is over before
/// that; if it is not, the room is reserved again with the next packet.
pub(crate) const STALLED_INTERVALS: u64 = 8;

/// New bytes that are progress: a message that gets fewer in a while stalls, unless they complete
/// it.
///
/// Chosen by us: less than one full packet. Otherwise a byte now and then would keep any room.
pub(crate) const PROGRESS_BYTES: u32 = 1_000;

/// Lengths of messages whose memory is kept for later ones.
///
/// Rationale: allocators keep shorter blocks themselves (glibc up to 128 kB); longer messages grow
/// while they arrive ([`RESERVE_AT_ONCE`]).
pub(crate) const KEPT_LENGTHS: Range<usize> = 1 << 16..RESERVE_AT_ONCE + 1;

/// Most memory that is kept for later messages. Chosen by us: eight of the longest messages, as
/// many as are granted at a time.
pub(crate) const MAX_KEPT_BYTES: usize = 8 << 20;

/// Responses of a host that are considered when one of them must make room. Chosen by us: little work
/// for a command; if all of them make progress, the next command considers others.
pub(crate) const RESPONSES_PER_SEARCH: usize = 16;

/// Peers checked by one scan for idle ones. The kernel evicts five per millisecond (HM
/// `homa_peer.c` `homa_peer_gc`).
pub(crate) const PEERS_PER_SCAN: usize = 256;
/// Peers of a host that are considered when one of them must make room. Chosen by us: little work
/// for a packet, and usually the first one is idle.
pub(crate) const PEERS_PER_EVICTION: usize = 16;
/// Hosts whose peers are considered, the largest first. Chosen by us: the peers of the largest may
/// all be busy.
pub(crate) const HOSTS_PER_EVICTION: usize = 4;
/// Time between two scans for idle peers, in nanoseconds.
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
    // BAD-5: an unknown client is answered by less than it has sent.
    assert!(Kind::NeedAck.header_len() <= DATA_HEADER_LEN);
};
