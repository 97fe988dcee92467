//! Socket filter: only packets for the driver's port wake it.
//!
//! A classic BPF program in the system (socket(7), SO_ATTACH_FILTER) checks each packet of the
//! protocol and passes those for the driver's port. ICMP errors do not pass the filter; they enter
//! the socket's error queue. `Carrier` discards those of other processes' packets, by the source
//! port of the returned packet.

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
/// Returns: keeps k bytes of the packet: `BPF_RET|BPF_K`.
const KEEP: u16 = 0x06;

/// Offset of the destination port in a packet.
const DESTINATION: u32 = 2;

/// Returns the program that passes packets for `port`. A packet that is too short to have a port
/// does not pass: a load out of bounds ends the program (`bpf_prog_run` in Linux).
pub(crate) fn for_port(port: u16, family: Family) -> Vec<SockFilter> {
    let step = |code, k| SockFilter::new(code, 0, 0, k);
    let load = match family {
        // The packet begins with the IP header, as the socket receives it: raw(7).
        Family::V4 => vec![step(LOAD_IP_HEADER_LEN, 0), step(LOAD_AT_INDEX, DESTINATION)],
        // The packet begins without the IP header.
        Family::V6 => vec![step(LOAD_AT, DESTINATION)],
    };
    let decide =
        [SockFilter::new(IF_EQUAL, 0, 1, port.into()), step(KEEP, u32::MAX), step(KEEP, 0)];
    load.into_iter().chain(decide).collect()
}
