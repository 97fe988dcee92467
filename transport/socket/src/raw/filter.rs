//! Socket filters: a driver wakes only for packets to its port, and a process that answers for
//! ended endpoints wakes only for NEED_ACKs to endpoints of apus.
//!
//! A classic BPF program in the system (socket(7), SO_ATTACH_FILTER) checks each packet of the
//! protocol and passes the relevant ones. ICMP errors bypass the filter; they enter the socket's
//! error queue. `Carrier` discards errors about other processes' packets, by the source port of the
//! returned packet.

use crate::address::Family;
use socket2::SockFilter;

/// Loads the length of the IPv4 header, the low half of byte k times 4, into the index register:
/// `BPF_LDX|BPF_B|BPF_MSH`.
const LOAD_IP_HEADER_LEN: u16 = 0xb1;
/// Loads two bytes at index + k: `BPF_LD|BPF_H|BPF_IND`.
const LOAD_AT_INDEX: u16 = 0x48;
/// Loads two bytes at k: `BPF_LD|BPF_H|BPF_ABS`.
const LOAD_AT: u16 = 0x28;
/// Jumps by `jt` if the loaded value is k, else by `jf`: `BPF_JMP|BPF_JEQ|BPF_K`.
const IF_EQUAL: u16 = 0x15;
/// Returns and keeps k bytes of the packet: `BPF_RET|BPF_K`.
const KEEP: u16 = 0x06;

/// Loads a byte at index + k: `BPF_LD|BPF_B|BPF_IND`.
const LOAD_BYTE_AT_INDEX: u16 = 0x50;
/// Loads a byte at k: `BPF_LD|BPF_B|BPF_ABS`.
const LOAD_BYTE_AT: u16 = 0x30;
/// Jumps by `jt` if the loaded value has any bit of k, else by `jf`: `BPF_JMP|BPF_JSET|BPF_K`.
const IF_ANY_BIT: u16 = 0x45;

/// Offset of the destination port in a packet. Source, also of the other offsets:
/// docs/reference/homa-module.md, *Common header*.
const DESTINATION: u32 = 2;
/// Offset of the packet type.
const TYPE: u32 = 11;
/// Value of the type NEED_ACK.
const NEED_ACK: u32 = 0x17;
/// Offsets of the first and the last byte of the sender's id.
const SENDER_ID: (u32, u32) = (20, 27);

/// Returns the program that passes packets for `port`. A packet that is too short to have a port
/// does not pass: a load out of bounds ends the program (`bpf_prog_run` in Linux).
pub(crate) fn for_port(port: u16, family: Family) -> Vec<SockFilter> {
    let step = |code, k| SockFilter::new(code, 0, 0, k);
    let load = match family {
        // The packet starts with the IP header, as the socket receives it: raw(7).
        Family::V4 => vec![step(LOAD_IP_HEADER_LEN, 0), step(LOAD_AT_INDEX, DESTINATION)],
        // The packet starts after the IP header.
        Family::V6 => vec![step(LOAD_AT, DESTINATION)],
    };
    let decide =
        [SockFilter::new(IF_EQUAL, 0, 1, port.into()), step(KEEP, u32::MAX), step(KEEP, 0)];
    load.into_iter().chain(decide).collect()
}

/// Returns the program that passes NEED_ACKs, for any port, from servers about ids of this host's
/// ranges, whose highest bit is set ([`ids`](crate::raw::ids)).
pub(crate) fn for_need_acks(family: Family) -> Vec<SockFilter> {
    let step = |code, k| SockFilter::new(code, 0, 0, k);
    let (index, load) = match family {
        Family::V4 => (Some(step(LOAD_IP_HEADER_LEN, 0)), LOAD_BYTE_AT_INDEX),
        Family::V6 => (None, LOAD_BYTE_AT),
    };
    let check = [
        step(load, TYPE),
        SockFilter::new(IF_EQUAL, 0, 5, NEED_ACK),
        step(load, SENDER_ID.0),
        SockFilter::new(IF_ANY_BIT, 0, 3, 0x80),
        step(load, SENDER_ID.1),
        // The lowest bit marks a packet from a server.
        SockFilter::new(IF_ANY_BIT, 0, 1, 0x01),
        step(KEEP, u32::MAX),
        step(KEEP, 0),
    ];
    index.into_iter().chain(check).collect()
}
