//! Meddling: actions of a host on the path of sealed packets.

use std::fmt;

/// Frequency of each action of a host on the path, per thousand passing datagrams. All 0: no
/// interference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meddling {
    /// A datagram arrives twice.
    pub repeated: u32,
    /// A datagram arrives with a bit changed, and in half of the cases also unchanged.
    pub changed: u32,
    /// A datagram arrives truncated, and in half of the cases also whole.
    pub shortened: u32,
    /// A datagram arrives at its host with another sender instead of the real one.
    pub misattributed: u32,
    /// A datagram arrives at another host instead of its destination.
    pub misdelivered: u32,
    /// An earlier datagram arrives once more.
    pub replayed: u32,
    /// A packet arrives that no host has sent.
    pub forged: u32,
}

impl fmt::Display for Meddling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { repeated, changed, shortened, misattributed, misdelivered, replayed, forged } =
            self;
        write!(
            f,
            "of 1,000 datagrams {repeated} repeated, {changed} changed, {shortened} shortened, {misattributed} misattributed, \
             {misdelivered} misdelivered, {replayed} replayed, {forged} forged"
        )
    }
}
