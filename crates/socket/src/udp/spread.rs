//! Which socket of a group a packet is for.
//!
//! A classic BPF program in the system (socket(7), SO_ATTACH_REUSEPORT_CBPF) numbers the sockets of a group by the sender:
//! the port of its socket plus the two halves of its address, modulo the number of sockets. So the ports of a client that lie
//! one behind the other are spread evenly, which the system's own hash does not do, and clients at one port of several
//! hosts are, too. Where the program does not know the headers, the system's hash decides.
//!
//! The numbers are the order in which the sockets were bound.

use libc::sock_filter;

/// Offsets from here on count from the IP header: SKF_NET_OFF.
const IP: u32 = 0xfff0_0000;
/// Offsets of the last four bytes of the sender's address, and of the protocol behind the header of IPv6.
const SENDER_V4: u32 = IP + 12;
const SENDER_V6: u32 = IP + 20;
const NEXT_HEADER: u32 = IP + 6;
/// Bytes of the header of IPv6, behind which the UDP header begins with the sender's port.
const HEADER_V6: u32 = 40;
const UDP: u32 = 17;

/// Loads a word, two bytes or a byte at k: `BPF_LD|BPF_{W,H,B}|BPF_ABS`.
const LOAD_WORD: u16 = 0x20;
const LOAD_PAIR: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
/// Loads two bytes at index + k: `BPF_LD|BPF_H|BPF_IND`.
const LOAD_PAIR_AT_INDEX: u16 = 0x48;
/// Loads the length of the IPv4 header into the index register: `BPF_LDX|BPF_B|BPF_MSH`.
const INDEX_HEADER_LEN: u16 = 0xb1;
/// Stores the value in a cell, and loads the index from it: `BPF_ST`, `BPF_LDX|BPF_W|BPF_MEM`.
const STORE: u16 = 0x02;
const LOAD_INDEX: u16 = 0x61;
/// Copies the value into the index: `BPF_MISC|BPF_TAX`.
const TO_INDEX: u16 = 0x07;
/// Arithmetic: `BPF_ALU|BPF_{RSH,MOD}|BPF_K`, `BPF_ALU|BPF_ADD|BPF_X`.
const SHIFT_RIGHT: u16 = 0x74;
const MODULO: u16 = 0x94;
const ADD_INDEX: u16 = 0x0c;
/// Jumps by `jt` if the value is k, else by `jf`: `BPF_JMP|BPF_JEQ|BPF_K`.
const IF_EQUAL: u16 = 0x15;
/// Returns the value, or k: `BPF_RET|BPF_{A,K}`.
const RETURN_VALUE: u16 = 0x16;
const RETURN: u16 = 0x06;
/// The number of no socket: the system chooses by its hash.
const NONE: u32 = u32::MAX;

/// Returns the program for a group of `sockets`, 1 or more.
pub(super) fn over(sockets: u32) -> Vec<sock_filter> {
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
    let version = [step(LOAD_BYTE, IP), step(SHIFT_RIGHT, 4), branch(IF_EQUAL, 4, 0, 11)];
    let v4 = [step(INDEX_HEADER_LEN, IP), step(LOAD_PAIR_AT_INDEX, IP), step(STORE, 0)];
    let v6 = [
        step(LOAD_BYTE, NEXT_HEADER),
        branch(IF_EQUAL, UDP, 1, 0),
        step(RETURN, NONE),
        step(LOAD_PAIR, IP + HEADER_V6),
        step(STORE, 0),
    ];
    let v4 = v4.into_iter().chain(choose(SENDER_V4));
    let v6 = v6.into_iter().chain(choose(SENDER_V6));
    version.into_iter().chain(v4).chain(v6).collect()
}
