//! What leaves together?
//!
//! Packets of equal size that go the same way, one behind the other in memory, so that one send takes
//! them all and the system, or the network card, cuts them apart again (UDP_SEGMENT). Requirement
//! SEND-9.
//!
//! # Invariants
//!
//! - **G1** All packets of a group have [`Group::segment`] bytes; the last one may have fewer, and
//!   then the group takes no more.
//! - **G2** A group that has more than one packet has at most [`MAX_SEGMENTS`] and [`MAX_BYTES`].

use std::net::{IpAddr, SocketAddr};

use crate::address::{self, Family, RawAddress};
use crate::class::UsualClass;
use crate::cmsg::Control;

/// Packets that one send may have. Source: `UDP_MAX_SEGMENTS` in Linux `include/linux/udp.h`: 64, and
/// 128 since 6.9; 64 is enough, and works everywhere.
pub(crate) const MAX_SEGMENTS: usize = 64;

/// Bytes that one send of several packets may have: 65535, less the headers of IPv6 and UDP. The
/// kernel builds one packet of that size before it cuts it (IPv4 would allow 20 bytes more).
pub(crate) const MAX_BYTES: usize = 65_535 - 40 - 8;

/// Bytes of a group's memory: enough for any UDP packet.
const GROUP_MEMORY: usize = 1 << 16;

/// The way that packets go. Only packets of the same flow share a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    /// As the engine names it: perhaps a mapped address.
    pub(crate) to: SocketAddr,
    /// `None` lets the system choose.
    pub(crate) from: Option<IpAddr>,
    /// Traffic class byte without the ECN bits.
    pub(crate) class: u8,
}

impl Flow {
    /// Writes what the kernel must know about a send of this flow.
    #[inline]
    pub(crate) fn control(
        &self,
        control: &mut Control,
        segment: Option<usize>,
        class: &mut UsualClass,
    ) {
        control.clear();
        if let Some(segment) = segment {
            control.segment(segment);
        }
        if class.is_unusual(self.class) {
            control.traffic_class(self.class, Family::of(address::canonical(self.to)));
        }
        if let Some(from) = self.from {
            control.source(from.to_canonical());
        }
    }
}

/// How the packets of a group leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// In one send, if the system can.
    Merged,
    /// Each in a send of its own, because together they were refused. `refused`: and one of them by
    /// itself, too.
    OneByOne { refused: bool },
}

/// Packets that wait to leave in one send.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) flow: Flow,
    /// `flow.to` as the kernel wants it.
    pub(crate) name: RawAddress,
    /// Control messages of the next send.
    pub(crate) control: Control,
    /// Bytes of each packet but the last.
    pub(crate) segment: usize,
    /// How the packets leave.
    pub(crate) manner: Manner,
    /// Bytes that the group may hold; equal to `filled` when it is closed.
    room: usize,
    /// Bytes of packets, from the beginning of `memory`.
    filled: usize,
    /// Bytes of these that are sent or given up: whole packets.
    sent: usize,
    memory: Box<[u8]>,
}

impl Group {
    /// A group that takes nothing before it is opened.
    pub(crate) fn new() -> Self {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        Self {
            flow: Flow { to: nowhere, from: None, class: 0 },
            name: RawAddress::new(nowhere, Family::V4).expect("an IPv4 address"),
            control: Control::new(),
            segment: 0,
            manner: Manner::Merged,
            room: 0,
            filled: 0,
            sent: 0,
            memory: vec![0; GROUP_MEMORY].into(),
        }
    }

    /// Makes it a group for packets of `segment` bytes.
    pub(crate) fn open(&mut self, flow: &Flow, name: RawAddress, segment: usize) {
        self.flow = *flow;
        self.name = name;
        self.segment = segment;
        self.clear();
    }

    /// Forgets the packets, but not their flow and size.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.manner = Manner::Merged;
        self.room = (MAX_SEGMENTS * self.segment).min(MAX_BYTES).max(self.segment);
        self.filled = 0;
        self.sent = 0;
    }

    /// Whether a packet of this size fits; `last` is a packet that may be shorter (G1).
    #[inline(always)]
    pub(crate) fn has_room(&self, len: usize, last: bool) -> bool {
        self.filled + len <= self.room && (len == self.segment || last && len < self.segment)
    }

    /// Whether a packet of this flow and size belongs here, and fits.
    #[inline]
    pub(crate) fn takes(&self, flow: &Flow, len: usize, last: bool) -> bool {
        self.has_room(len, last) && self.flow == *flow
    }

    /// Memory for the next packet. It fits.
    #[inline(always)]
    pub(crate) fn append(&mut self, len: usize) -> &mut [u8] {
        let start = self.filled;
        self.filled += len;
        if len < self.segment {
            self.room = self.filled;
        }
        &mut self.memory[start..self.filled]
    }

    /// Packets that are neither sent nor given up, one behind the other.
    #[inline]
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.memory[self.sent..self.filled]
    }

    /// Number of packets in `bytes` of the group.
    #[inline]
    pub(crate) fn packets_in(&self, bytes: usize) -> usize {
        // Most often one; a division takes its time.
        if bytes <= self.segment { 1 } else { bytes.div_ceil(self.segment) }
    }

    /// The next `bytes` are sent or given up.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.sent += bytes;
        debug_assert!(self.sent <= self.filled);
    }

    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.sent == self.filled
    }
}
