//! Meddling: what a host on the path does to sealed packets.

use std::fmt;

/// How often a host on the path does what, for each thousand datagrams that pass. All 0: it does nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meddling {
    /// A datagram arrives twice.
    pub repeated: u32,
    /// A datagram arrives with a bit changed, and in half of the cases as it was, too.
    pub changed: u32,
    /// A datagram arrives without its end, and in half of the cases whole, too.
    pub shortened: u32,
    /// A datagram arrives at its host as if another had sent it, and does not arrive as it was.
    pub misattributed: u32,
    /// A datagram arrives at another host than it was sent to, and does not arrive at its own.
    pub misdelivered: u32,
    /// A datagram of before arrives once more.
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
