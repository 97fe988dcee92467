//! Instructions of classic BPF programs that choose a socket (`linux/filter.h`), as used by
//! `coalescing` and `spread`. An instruction works on one value, an index register, 16 cells, and
//! its constant k.

/// Loads four bytes, two or one at k: `BPF_LD|BPF_{W,H,B}|BPF_ABS`.
pub(super) const LOAD_WORD: u16 = 0x20;
pub(super) const LOAD_PAIR: u16 = 0x28;
pub(super) const LOAD_BYTE: u16 = 0x30;
/// Loads two bytes at index + k: `BPF_LD|BPF_H|BPF_IND`.
pub(super) const LOAD_PAIR_AT_INDEX: u16 = 0x48;
/// Loads the length of the datagram, without UDP header: `BPF_LD|BPF_W|BPF_LEN`.
pub(super) const LOAD_LENGTH: u16 = 0x80;
/// Loads the length of the IPv4 header at k into the index: `BPF_LDX|BPF_B|BPF_MSH`.
pub(super) const INDEX_HEADER_LEN: u16 = 0xb1;
/// Stores the value in cell k, and loads the index from it: `BPF_ST`, `BPF_LDX|BPF_W|BPF_MEM`.
pub(super) const STORE: u16 = 0x02;
pub(super) const LOAD_INDEX: u16 = 0x61;
/// Copies the value into the index: `BPF_MISC|BPF_TAX`.
pub(super) const TO_INDEX: u16 = 0x07;
/// Adds the index: `BPF_ALU|BPF_ADD|BPF_X`.
pub(super) const ADD_INDEX: u16 = 0x0c;
/// Subtracts k, shifts by it, or computes the remainder: `BPF_ALU|BPF_{SUB,RSH,MOD}|BPF_K`.
pub(super) const SUBTRACT: u16 = 0x14;
pub(super) const SHIFT_RIGHT: u16 = 0x74;
pub(super) const MODULO: u16 = 0x94;
/// Jumps by `jt` if the value is k, else by `jf`: `BPF_JMP|BPF_JEQ|BPF_K`.
pub(super) const IF_EQUAL: u16 = 0x15;
/// Jumps by `jt` if the value is k or more, or has a bit of k, else by `jf`:
/// `BPF_JMP|BPF_{JGE,JSET}|BPF_K`.
pub(super) const IF_AT_LEAST: u16 = 0x35;
pub(super) const IF_ANY_BIT: u16 = 0x45;
/// Jumps by `jt` if the value is greater than the index, else by `jf`: `BPF_JMP|BPF_JGT|BPF_X`.
pub(super) const IF_MORE_THAN_INDEX: u16 = 0x2d;
/// Returns the value, or k: `BPF_RET|BPF_{A,K}`.
pub(super) const RETURN_VALUE: u16 = 0x16;
pub(super) const RETURN: u16 = 0x06;
