//! Groups: packets that leave in one send.
//!
//! A group has packets of equal size and of one flow, contiguous in memory, so that one send takes
//! all of them and the system, or the network card, cuts them apart (UDP_SEGMENT). Requirement
//! SEND-9.
//!
//! # Invariants
//!
//! - **GROUP-1** All packets of a group have [`Group::segment`] bytes. The last one may have fewer,
//!   and then the group accepts no more.
//! - **GROUP-2** A group of more than one packet has at most [`MAX_SEGMENTS`] packets and
//!   [`MAX_BYTES`] bytes.

use std::net::{IpAddr, SocketAddr};

use crate::address::{self, Family, RawAddress};
use crate::class::DefaultClass;
use crate::cmsg::Control;

/// Maximum number of packets of one send. Source: `UDP_MAX_SEGMENTS` in Linux
/// `include/linux/udp.h`: 64, and 128 since 6.9. 64 is enough, and supported everywhere.
pub(crate) const MAX_SEGMENTS: usize = 64;

/// Maximum number of bytes of one send of several packets: 65535, less the headers of IPv6 and UDP.
/// The kernel builds one packet of that size before it cuts it (IPv4 would allow 20 bytes more).
pub(crate) const MAX_BYTES: usize = 65_535 - 40 - 8;

/// Bytes of a group's memory, enough for any UDP packet.
const GROUP_MEMORY: usize = 1 << 16;

/// Destination, source and class of packets. Only packets of the same flow share a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    /// Destination as the engine names it, possibly a mapped address.
    pub(crate) to: SocketAddr,
    /// Local address to send from; `None` lets the system choose.
    pub(crate) from: Option<IpAddr>,
    /// Traffic class byte without the ECN bits.
    pub(crate) class: u8,
}

impl Flow {
    /// Writes the control messages for a send of this flow.
    #[inline]
    pub(crate) fn control(
        &self,
        control: &mut Control,
        segment: Option<usize>,
        class: &mut DefaultClass,
    ) {
        control.clear();
        if let Some(segment) = segment {
            control.segment(segment);
        }
        if class.needs_control(self.class) {
            control.traffic_class(self.class, Family::of(address::canonical(self.to)));
        }
        if let Some(from) = self.from {
            control.source(from.to_canonical());
        }
    }
}

/// How the packets of a group are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendMode {
    /// In one send, if the system supports it.
    Merged,
    /// One by one, because the merged send was refused. `refused` records that a single packet was
    /// refused, too.
    OneByOne { refused: bool },
}

/// Packets that wait for a common send.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) flow: Flow,
    /// Name of `flow.to` for the kernel.
    pub(crate) name: RawAddress,
    /// Control messages of the next send.
    pub(crate) control: Control,
    /// Bytes of each packet but the last.
    pub(crate) segment: usize,
    /// How the packets are sent.
    pub(crate) mode: SendMode,
    /// Capacity in bytes; equal to `filled` when the group is closed.
    room: usize,
    /// Bytes of packets, from the beginning of `memory`.
    filled: usize,
    /// Bytes of these that were sent or given up: whole packets.
    sent: usize,
    memory: Box<[u8]>,
}

impl Group {
    /// Returns a group that accepts no packet before it is opened.
    pub(crate) fn new() -> Self {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        Self {
            flow: Flow { to: nowhere, from: None, class: 0 },
            name: RawAddress::new(nowhere, Family::V4).expect("an IPv4 address"),
            control: Control::new(),
            segment: 0,
            mode: SendMode::Merged,
            room: 0,
            filled: 0,
            sent: 0,
            memory: vec![0; GROUP_MEMORY].into(),
        }
    }

    /// Opens the group for packets of `segment` bytes.
    pub(crate) fn open(&mut self, flow: &Flow, name: RawAddress, segment: usize) {
        self.flow = *flow;
        self.name = name;
        self.segment = segment;
        self.clear();
    }

    /// Removes the packets, but keeps their flow and size.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.mode = SendMode::Merged;
        self.room = (MAX_SEGMENTS * self.segment).min(MAX_BYTES).max(self.segment);
        self.filled = 0;
        self.sent = 0;
    }

    /// Returns whether a packet of this size fits. `last` says that the packet may be shorter
    /// (GROUP-1).
    #[inline(always)]
    pub(crate) fn has_room(&self, len: usize, last: bool) -> bool {
        self.filled + len <= self.room && (len == self.segment || last && len < self.segment)
    }

    /// Returns whether a packet of this flow and size belongs into this group, and fits.
    #[inline]
    pub(crate) fn takes(&self, flow: &Flow, len: usize, last: bool) -> bool {
        self.has_room(len, last) && self.flow == *flow
    }

    /// Returns the memory for the next packet, which must fit.
    #[inline(always)]
    pub(crate) fn append(&mut self, len: usize) -> &mut [u8] {
        let start = self.filled;
        self.filled += len;
        if len < self.segment {
            self.room = self.filled;
        }
        &mut self.memory[start..self.filled]
    }

    /// Returns the contiguous packets that were neither sent nor given up.
    #[inline]
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.memory[self.sent..self.filled]
    }

    /// Returns the number of packets in `bytes` of the group.
    #[inline]
    pub(crate) fn packets_in(&self, bytes: usize) -> usize {
        // Avoids the division in the usual case.
        if bytes <= self.segment { 1 } else { bytes.div_ceil(self.segment) }
    }

    /// Records that the next `bytes` were sent or given up.
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
