//! Distribution of packets over the sockets of a group.
//!
//! A classic BPF program in the system (socket(7), SO_ATTACH_REUSEPORT_CBPF) chooses the socket by
//! the sender: the port of its socket plus the two halves of its address, modulo the number of
//! sockets. This spreads adjacent ports of one client evenly, unlike the system's own hash, and
//! also clients at one port of several hosts. The port of a sprayed packet is the one in its header
//! (WIRE-36). For unknown headers the system's hash decides.
//!
//! Sockets are numbered in binding order.
//!
//! Rationale: with the system's hash, both paths of a client met in one shard in half of all runs
//! with two shards, and every steal contends for a lock (19 to 77 misses per 10^4 messages instead
//! of less than 1). The program reads no packet, which may be sealed. A client can choose its shard
//! and gains nothing: others steal from a flooded one.

use libc::sock_filter;

use super::bpf::{
    ADD_INDEX, IF_ANY_BIT, IF_AT_LEAST, IF_EQUAL, INDEX_HEADER_LEN, LOAD_BYTE, LOAD_INDEX,
    LOAD_LENGTH, LOAD_PAIR, LOAD_PAIR_AT_INDEX, LOAD_WORD, MODULO, RETURN, RETURN_VALUE,
    SHIFT_RIGHT, STORE, TO_INDEX,
};

/// Offsets from here on count from the IP header: SKF_NET_OFF.
const IP: u32 = 0xfff0_0000;
/// Offsets of the last four bytes of the sender's address, and of the IPv6 next header.
const SENDER_V4: u32 = IP + 12;
const SENDER_V6: u32 = IP + 20;
const NEXT_HEADER: u32 = IP + 6;
/// Bytes of the IPv6 header; the UDP header follows, starting with the sender's port.
const HEADER_V6: u32 = 40;
const UDP: u32 = 17;

// Layout of packets: docs/spec, WIRE-1 and WIRE-36.

/// Bytes of the common header.
const HEADER: u32 = 28;
/// Offsets of the sender's port, of the byte with the spray mark, and of the packet type; the mark,
/// and the type of DATA.
const SPORT: u32 = 0;
const MARK: (u32, u32) = (12, 8);
const TYPE: (u32, u32) = (11, 0x10);

/// An invalid socket number: the system chooses by its hash.
const NONE: u32 = u32::MAX;

/// Returns the program for a group of `sockets`, 1 or more. `sprayed`: whether sprayed packets
/// reach it.
pub(super) fn over(sockets: u32, sprayed: bool) -> Vec<sock_filter> {
    let branch = |code, k, jt, jf| sock_filter { code, jt, jf, k };
    let step = |code, k| branch(code, k, 0, 0);
    // The two halves of the address, plus the port in cell 0.
    let choose = |sender| {
        let halves =
            [step(LOAD_WORD, sender), step(TO_INDEX, 0), step(SHIFT_RIGHT, 16), step(ADD_INDEX, 0)];
        let port = [step(LOAD_INDEX, 0), step(ADD_INDEX, 0)];
        let number = [step(MODULO, sockets), step(RETURN_VALUE, 0)];
        halves.into_iter().chain(port).chain(number)
    };
    // Store the port of a sprayed packet in cell 0.
    let take_sprayed = [
        step(LOAD_LENGTH, 0),
        branch(IF_AT_LEAST, HEADER, 0, 6),
        step(LOAD_BYTE, MARK.0),
        branch(IF_ANY_BIT, MARK.1, 0, 4),
        step(LOAD_BYTE, TYPE.0),
        branch(IF_EQUAL, TYPE.1, 0, 2),
        step(LOAD_PAIR, SPORT),
        step(STORE, 0),
    ];
    let take_sprayed = if sprayed { &take_sprayed[..] } else { &[] };
    let behind_v4 = 11 + take_sprayed.len() as u8;
    let version = [step(LOAD_BYTE, IP), step(SHIFT_RIGHT, 4), branch(IF_EQUAL, 4, 0, behind_v4)];
    let v4 = [step(INDEX_HEADER_LEN, IP), step(LOAD_PAIR_AT_INDEX, IP), step(STORE, 0)];
    let v6 = [
        step(LOAD_BYTE, NEXT_HEADER),
        branch(IF_EQUAL, UDP, 1, 0),
        step(RETURN, NONE),
        step(LOAD_PAIR, IP + HEADER_V6),
        step(STORE, 0),
    ];
    let take_sprayed = || take_sprayed.iter().copied();
    let v4 = v4.into_iter().chain(take_sprayed()).chain(choose(SENDER_V4));
    let v6 = v6.into_iter().chain(take_sprayed()).chain(choose(SENDER_V6));
    version.into_iter().chain(v4).chain(v6).collect()
}
