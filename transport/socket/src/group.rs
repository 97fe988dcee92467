//! Groups: packets that leave in one send.
//!
//! A group has packets of one flow, contiguous in memory. Either they have equal size, so that the
//! system or the network card can split them (UDP_SEGMENT, requirement SEND-9), or they form one
//! datagram, and each states its length (requirement WIRE-29).
//!
//! # Invariants
//!
//! - **GROUP-1** All packets of a segmented group have [`Group::segment`] bytes. The last one may
//!   have fewer; the group then accepts no more.
//! - **GROUP-2** A segmented group of more than one packet has at most [`MAX_SEGMENTS`] packets and
//!   [`MAX_BYTES`] bytes.
//! - **GROUP-3** A group that forms one datagram has at most [`MAX_COALESCED`] packets and
//!   [`Group::segment`] bytes.

use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;

use crate::address::{self, Family, RawAddress};
use crate::class::DefaultClass;
use crate::cmsg::Control;

/// Maximum number of packets of one send. Source: `UDP_MAX_SEGMENTS` in Linux
/// `include/linux/udp.h`: 64, and 128 since 6.9. 64 is enough, and supported everywhere.
pub(crate) const MAX_SEGMENTS: usize = 64;

/// Maximum number of packets of one datagram. Source: WIRE-29.
const MAX_COALESCED: usize = 64;

/// Maximum number of bytes of one send of several packets: 65535, less the headers of IPv6 and UDP.
/// The kernel builds one packet of that size before it splits it (IPv4 would allow 20 bytes more).
pub(crate) const MAX_BYTES: usize = 65_535 - 40 - 8;

/// Maximum size of a group's memory, enough for any UDP packet.
const GROUP_MEMORY: usize = 1 << 16;

/// Initial size of a group's memory. Chosen by us: a page.
const LEAST_MEMORY: usize = 4096;

/// Number of a source port; 0 is the driver's own.
pub(crate) type PortNumber = u8;

/// Destination, source address, class and source port of packets. Only packets of one flow share a
/// group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    /// Destination as passed by the engine, possibly a mapped address.
    pub(crate) to: SocketAddr,
    /// Local address to send from; `None` lets the system choose.
    pub(crate) from: Option<IpAddr>,
    /// Traffic class byte, including the ECN bits.
    pub(crate) class: u8,
    /// The source port.
    pub(crate) port: PortNumber,
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
        self.control_without_source(control, segment, class);
        if let Some(from) = self.from {
            control.source(from.to_canonical());
        }
    }

    /// Writes the control messages for a send of this flow through a socket with a fixed source
    /// address.
    #[inline]
    pub(crate) fn control_without_source(
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
    }
}

/// How the packets of a group are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendMode {
    /// In one send, if the system supports it.
    Merged,
    /// One by one, because the merged send was refused with the error `cause`. `refused` records
    /// that a single packet was refused as well.
    OneByOne { refused: bool, cause: Errno },
}

/// How a packet shares a send with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// As one of several datagrams. The `last` packet of a burst may be shorter than the others.
    Segments { last: bool },
    /// In one datagram of up to `limit` bytes.
    Datagram { limit: usize },
}

impl Sharing {
    /// Returns how a packet may share a send whose burst allows datagrams of up to `coalesce`
    /// bytes.
    #[inline]
    pub(crate) const fn of(coalesce: usize, last: bool) -> Self {
        if coalesce == 0 { Self::Segments { last } } else { Self::Datagram { limit: coalesce } }
    }
}

/// Packets queued for one send.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) flow: Flow,
    /// Name of `flow.to` for the kernel.
    pub(crate) name: RawAddress,
    /// Control messages of the next send.
    pub(crate) control: Control,
    /// Bytes of each packet but the last; in a group that forms one datagram, the bytes of the
    /// datagram.
    pub(crate) segment: usize,
    /// Packets of a group that forms one datagram; 0 in other groups.
    coalesced: usize,
    is_datagram: bool,
    /// How the packets are sent.
    pub(crate) mode: SendMode,
    /// Capacity in bytes; equal to `filled` when the group is closed.
    room: usize,
    /// Bytes of packets, from the start of `memory`.
    filled: usize,
    /// Bytes of whole packets that were sent or given up.
    sent: usize,
    /// Sized for the largest group so far, in powers of two: most groups of an endpoint are never
    /// used, and full groups are rare (lab/log, 2026-11-24).
    memory: Vec<u8>,
}

impl Group {
    /// Creates a closed group, without memory.
    pub(crate) fn new() -> Self {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        Self {
            flow: Flow { to: nowhere, from: None, class: 0, port: 0 },
            name: RawAddress::new(nowhere, Family::V4).expect("an IPv4 address"),
            control: Control::new(),
            segment: 0,
            coalesced: 0,
            is_datagram: false,
            mode: SendMode::Merged,
            room: 0,
            filled: 0,
            sent: 0,
            memory: Vec::new(),
        }
    }

    /// Opens the group for a packet of `len` bytes and for similar packets.
    pub(crate) fn open(&mut self, flow: &Flow, name: RawAddress, len: usize, sharing: Sharing) {
        self.flow = *flow;
        self.name = name;
        (self.segment, self.is_datagram) = match sharing {
            Sharing::Segments { .. } => (len, false),
            Sharing::Datagram { limit } => (limit.min(GROUP_MEMORY).max(len), true),
        };
        self.clear();
    }

    /// Removes the packets but keeps their flow and size.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.mode = SendMode::Merged;
        self.room = if self.is_datagram {
            self.segment
        } else {
            (MAX_SEGMENTS * self.segment).min(MAX_BYTES).max(self.segment)
        };
        self.coalesced = 0;
        self.filled = 0;
        self.sent = 0;
    }

    /// Returns whether a packet of this size fits, and may share the send (GROUP-1, GROUP-3).
    #[inline(always)]
    pub(crate) fn has_room(&self, len: usize, sharing: Sharing) -> bool {
        self.filled + len <= self.room
            && match sharing {
                Sharing::Segments { last } => {
                    !self.is_datagram && (len == self.segment || last && len < self.segment)
                }
                Sharing::Datagram { limit } => {
                    self.is_datagram && self.segment == limit && self.coalesced < MAX_COALESCED
                }
            }
    }

    /// Returns whether a packet of this flow and size belongs in this group and fits.
    #[inline]
    pub(crate) fn takes(&self, flow: &Flow, len: usize, sharing: Sharing) -> bool {
        self.has_room(len, sharing) && self.flow == *flow
    }

    /// Returns the memory for the next packet, which must fit.
    #[inline(always)]
    pub(crate) fn append(&mut self, len: usize) -> &mut [u8] {
        let start = self.filled;
        self.filled += len;
        if self.is_datagram {
            self.coalesced += 1;
        } else if len < self.segment {
            self.room = self.filled;
        }
        if self.filled > self.memory.len() {
            self.grow();
        }
        &mut self.memory[start..self.filled]
    }

    /// Grows the memory so that all packets fit.
    #[cold]
    fn grow(&mut self) {
        let len = self.filled.next_power_of_two().clamp(LEAST_MEMORY, GROUP_MEMORY);
        // Reserve exactly: automatic growth would use up to twice the memory.
        self.memory.reserve_exact(len - self.memory.len());
        self.memory.resize(len, 0);
    }

    /// Returns the contiguous packets that were neither sent nor given up.
    #[inline]
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.memory[self.sent..self.filled]
    }

    /// Returns the number of packets in `bytes` of the group.
    #[inline]
    pub(crate) fn packets_in(&self, bytes: usize) -> usize {
        if self.is_datagram {
            return self.coalesced;
        }
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
