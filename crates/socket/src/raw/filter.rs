//! Which packets wake us?
//!
//! A program of classic BPF in the system (socket(7), SO_ATTACH_FILTER) sees each packet of the protocol and lets pass what
//! is for our port. ICMP errors do not come this way but into the socket's error queue; those of other processes'
//! packets are told apart there, by the port that the returned packet came from (`Carrier` in `apus-socket`).

use crate::address::Family;
use socket2::SockFilter;

/// Load the length of the IPv4 header, the low half of byte k times 4, into the index register: `BPF_LDX|BPF_B|BPF_MSH`.
const LOAD_IP_HEADER_LEN: u16 = 0xb1;
/// Load two bytes at index + k: `BPF_LD|BPF_H|BPF_IND`.
const LOAD_AT_INDEX: u16 = 0x48;
/// Load two bytes at k: `BPF_LD|BPF_H|BPF_ABS`.
const LOAD_AT: u16 = 0x28;
/// Go on at `jt` if what was loaded is k, else at `jf`: `BPF_JMP|BPF_JEQ|BPF_K`.
const IF_EQUAL: u16 = 0x15;
/// Keep k bytes of the packet: `BPF_RET|BPF_K`.
const KEEP: u16 = 0x06;

/// Where a packet has its destination port.
const DESTINATION: u32 = 2;

/// The program that lets pass what is for `port`. A packet that is too short to have a port does not pass: a load outside
/// of it ends the program (`bpf_prog_run` in Linux).
pub(crate) fn for_port(port: u16, family: Family) -> Vec<SockFilter> {
    let step = |code, k| SockFilter::new(code, 0, 0, k);
    let load = match family {
        // What it sees begins with the IP header, as what the socket gets: raw(7).
        Family::V4 => vec![step(LOAD_IP_HEADER_LEN, 0), step(LOAD_AT_INDEX, DESTINATION)],
        // And here without.
        Family::V6 => vec![step(LOAD_AT, DESTINATION)],
    };
    let decide =
        [SockFilter::new(IF_EQUAL, 0, 1, port.into()), step(KEEP, u32::MAX), step(KEEP, 0)];
    load.into_iter().chain(decide).collect()
}
